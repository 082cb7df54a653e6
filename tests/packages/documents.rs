//! The documents of a release: sums, the list of its crates, the statement about a broker.

use super::*;

fn script(name: &str) -> Run {
    Run::new(&Path::new(ROOT).join("packaging").join(name))
}

fn json_of(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).expect("it was written")).expect("JSON")
}

#[test]
fn sums_are_checked_by_sha256sum() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("a"), "abc").expect("writable");
    fs::write(folder.path().join("b"), "").expect("writable");
    let check = || {
        Run::new(Path::new("sha256sum"))
            .args(["--check", "--strict", "SHA256SUMS"])
            .folder(folder.path())
            .output()
    };
    fine(script("sums").args([folder.path()]));
    assert_eq!(check().stdout, "a: OK\nb: OK\n");
    fs::write(folder.path().join("b"), "changed").expect("writable");
    assert_eq!(check().code, Some(1));
}

#[test]
fn list_of_crates_has_every_crate_of_the_programs_and_none_of_the_tests() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("sbom.json");
    fine(script("sbom").args([&file]));
    let document = json_of(&file);
    assert_eq!(document["bomFormat"], "CycloneDX");
    let components = document["components"].as_array().expect("a list");
    let find = |name: &str| components.iter().find(|found| found["name"] == name);
    let tokio = find("tokio").expect("a crate of the broker");
    assert_eq!(tokio["hashes"][0]["alg"], "SHA-256");
    assert!(tokio["licenses"][0]["expression"].is_string());
    for name in ["mcp-broker", "broker-gen", "broker-runtime", "clap_mangen"] {
        assert!(find(name).is_some(), "{name}");
    }
    for name in ["rmcp", "proptest", "harness", "toolbox-mcp"] {
        assert!(find(name).is_none(), "{name}");
    }
    let references: Vec<_> = components.iter().map(|found| &found["bom-ref"]).collect();
    let dependencies = document["dependencies"].as_array().expect("a list");
    let used = dependencies
        .iter()
        .filter_map(|one| one["dependsOn"].as_array());
    for reference in used.flatten() {
        assert!(references.contains(&reference), "{reference}");
    }
}

#[test]
fn statement_is_only_written_about_a_broker_of_its_lock() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let config = json!({"mcpServers": {"tools": {"command": binary("toolbox-mcp")}}});
    fs::write(at("c.json"), config.to_string()).expect("writable");
    let broker_gen = programs().join("broker-gen");
    let runtime = programs().join("mcp-broker-runtime");
    let verb = |args: &[&str]| {
        fine(Run::new(&broker_gen).folder(folder.path()).args(args));
    };
    verb(&["lock", "--config", "c.json"]);
    verb(&[
        "pack",
        "--config",
        "c.json",
        "-o",
        "broker",
        "--runtime",
        runtime.to_str().expect("a text"),
    ]);
    let state = |broker: &str, runtime: &Path| {
        script("statement")
            .args([
                &at("statement.json"),
                &broker_gen,
                &at(broker),
                &at("c.json"),
            ])
            .args([&at("c.lock.json"), runtime])
            .output()
    };
    let refused = state("broker", &binary("mcp-broker"));
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    contains(
        &refused.stderr,
        &["the broker does not match", "runtime_unusable"],
    );
    assert!(!at("statement.json").exists());
    let written = state("broker", &runtime);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let statement = json_of(&at("statement.json"));
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    let sum = fine(Run::new(Path::new("sha256sum")).args([at("broker")]));
    let subject = &statement["subject"][0];
    assert_eq!(subject["name"], "broker");
    assert!(
        sum.stdout
            .starts_with(subject["digest"]["sha256"].as_str().expect("a sum"))
    );
    let inputs = statement["predicate"]["buildDefinition"]["resolvedDependencies"].as_array();
    let names: Vec<_> = inputs
        .expect("a list")
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["c.json", "c.lock.json", "mcp-broker-runtime"]);
}
