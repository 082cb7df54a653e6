//! The package that a source ran: its record in the lock, and the report of `check` on another one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use broker_review::provenance::records::npm::npx_folder;
use harness::{Bench, Output, binary, changed_meanwhile, contains};
use serde_json::{Value, json};

use super::bench::tool;

/// A bench whose package runners are scripts that start the scripted server, with a separate home folder.
pub(super) struct Runners {
    bench: Bench,
}

impl Runners {
    pub(super) fn new(command: &Value) -> Self {
        let bench = Bench::new();
        for name in ["npx", "uvx", "pipx", "docker"] {
            let file = bench.path(&format!("bin/{name}"));
            fs::create_dir_all(file.parent().expect("it is in a folder")).expect("writable");
            let script = "#!/bin/sh\nexec chaos-mcp --script a.json --journal a.log\n";
            fs::write(&file, script).expect("writable");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        bench.configure([("a", json!({"command": command}))]);
        bench.one_tool("a", tool("x"));
        Self { bench }
    }

    pub(super) fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[])
    }

    pub(super) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let home = self.bench.path("home").to_string_lossy().into_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let beside = binary("broker-gen");
        let beside = beside.parent().expect("it is in a folder").display();
        let path = format!("{}:{beside}:{path}", self.bench.path("bin").display());
        let own = [("HOME", home.as_str()), ("PATH", &path)];
        self.bench.verb_with(args, &[&own, variables].concat())
    }

    /// `lock`, which must succeed, and the recorded package.
    pub(super) fn lock(&self) -> (String, Value) {
        let output = self.run(&["lock"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let text = self.bench.lock_text();
        let folder = self.bench.path("").to_string_lossy().into_owned();
        assert!(
            !text.contains(&folder),
            "the lock contains a folder: {text}"
        );
        let lock = self.bench.lock_json();
        (output.stderr, lock["sources"][0]["package"].clone())
    }

    /// `check`: its exit code, and the findings about the package.
    fn check(&self) -> (Option<i32>, Vec<Value>) {
        let output = self.run(&["check", "--format", "json"]);
        let report: Value = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr));
        let sources = report["sources"].as_array().expect("a list").clone();
        let findings = sources.iter().flat_map(|source| {
            let findings = source["findings"].as_array().expect("a list").clone();
            findings.into_iter()
        });
        let of_package = |finding: &Value| {
            let rule = finding["rule"].as_str().expect("a rule");
            rule.starts_with("package-")
        };
        (output.code, findings.filter(of_package).collect())
    }

    /// The rule, class and severity of the one finding about the package.
    #[track_caller]
    fn found(&self, code: i32, expected: [&str; 3]) -> Value {
        let (exit, findings) = self.check();
        assert_eq!((exit, findings.len()), (Some(code), 1), "{findings:?}");
        let one = &findings[0];
        let got = [&one["rule"], &one["class"], &one["severity"]];
        assert_eq!(got, expected, "{one}");
        one.clone()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.bench.path(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    /// Installs a package for this spec, as npx would.
    fn npx_cache(&self, spec: &str, name: &str, version: &str, integrity: &str) {
        let folder = npx_folder(&[spec.to_owned()]);
        let entry = json!({"version": version, "integrity": integrity});
        self.write(
            &format!("home/.npm/_npx/{folder}/node_modules/.package-lock.json"),
            &json!({"packages": {format!("node_modules/{name}"): entry}}).to_string(),
        );
    }

    /// A package of Python in an environment.
    pub(super) fn dist(&self, environment: &str, name: &str, version: &str, file: &str) -> String {
        let packages = format!("{environment}/lib/python3.11/site-packages");
        let info = format!("{packages}/{}-{version}.dist-info", name.replace('-', "_"));
        let record =
            format!("{name}/a.py,sha256={file},3\n{name}.dist-info/INSTALLER,sha256=x,1\n");
        self.write(&format!("{info}/RECORD"), &record);
        info
    }
}

const SPEC: &str = "@scope/server@1.2.3";

#[test]
fn npm_package_that_was_replaced_is_a_security_finding() {
    let runners = Runners::new(&json!(format!("npx -y {SPEC} --flag")));
    runners.npx_cache(SPEC, "@scope/server", "1.2.3", "sha512-AAAA==");
    let (said, package) = runners.lock();
    let expected = json!({
        "kind": "npm", "name": "@scope/server", "version": "1.2.3",
        "integrity": "sha512-AAAA==", "pinned": true,
    });
    assert_eq!(package, expected);
    contains(&said, &["/a: runs the npm package `@scope/server` 1.2.3"]);
    assert!(!said.contains("warning"), "{said}");
    let before = runners.bench.lock_text();
    assert_eq!(runners.check(), (Some(0), Vec::new()));
    runners.lock();
    assert_eq!(runners.bench.lock_text(), before);

    runners.npx_cache(SPEC, "@scope/server", "1.2.3", "sha512-BBBB==");
    let found = runners.found(3, ["package-integrity-changed", "security", "error"]);
    assert_eq!(
        (&found["pointer"], &found["old"], &found["new"]),
        (
            &json!("/package/integrity"),
            &json!("sha512-AAAA=="),
            &json!("sha512-BBBB==")
        )
    );
    contains(
        found["remedy"].as_str().expect("a text"),
        &["broker-gen lock --config c.json --source /a"],
    );

    // The two locks say the same offline.
    fs::write(runners.bench.path("old.lock.json"), before).expect("writable");
    for state in ["wrote c.lock.json", "c.lock.json is up to date"] {
        let kept = runners.run(&["lock"]);
        assert_eq!(kept.code, Some(8), "{}", kept.stderr);
        contains(
            &kept.stderr,
            &[
                state,
                "warning[package_changed]: `/a`: the npm package `@scope/server` 1.2.3 has another content",
                "the source `/a`, kept: package_changed",
                "broker-gen lock --config c.json --source /a",
            ],
        );
    }
    contains(
        &runners.bench.lock_text(),
        &["sha512-AAAA==", "\"kept\": \"package_changed\""],
    );
    assert_eq!(runners.check(), (Some(0), Vec::new()), "as it was locked");
    let taken = runners.run(&["lock", "--source", "/a"]);
    assert_eq!(taken.code, Some(0), "{}", taken.stderr);
    contains(
        &taken.stderr,
        &["warning[package_changed]: `/a`: the npm package"],
    );
    assert!(
        !runners.lock().0.contains("package_changed"),
        "it was taken"
    );
    let output = runners.bench.run(&["diff", "old.lock.json", "c.lock.json"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    contains(
        &output.stdout,
        &["security: source /a", "[package-integrity-changed]"],
    );
}

#[test]
fn package_of_a_changed_command_is_named_beside_the_locked_one() {
    let runners = Runners::new(&json!(["npx", "-y", SPEC]));
    runners.npx_cache(SPEC, "@scope/server", "1.2.3", "sha512-AAAA==");
    runners.lock();
    let newer = "@scope/server@1.3.0";
    let source = json!({"command": ["npx", "-y", newer]});
    runners.bench.configure([("a", source)]);
    let output = runners.run(&["check"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "the word `@scope/server@1.2.3` of `command` is now `@scope/server@1.3.0`",
            "the lock has the npm package `@scope/server` 1.2.3, and the command names `@scope/server` 1.3.0",
        ],
    );
}

#[test]
fn package_not_found_is_not_reported_as_unchanged() {
    let runners = Runners::new(&json!(["npx", "-y", SPEC]));
    let (said, package) = runners.lock();
    assert_eq!(package, Value::Null);
    contains(
        &said,
        &[
            "warning[package_unseen]: the package of `/a` was not found: the cache of npm does not have",
        ],
    );
    assert_eq!(runners.check(), (Some(0), Vec::new()));

    // Recorded nowhere, found now.
    runners.npx_cache(SPEC, "@scope/server", "1.2.3", "sha512-AAAA==");
    runners.found(0, ["package-unrecorded", "same", "note"]);

    runners.lock();
    fs::remove_dir_all(runners.bench.path("home")).expect("it is there");
    let found = runners.found(0, ["package-unseen", "same", "warning"]);
    let message = found["message"].as_str().expect("a text");
    contains(message, &["the package was not found", "may differ"]);

    // The cache has what another command installed.
    runners.npx_cache(SPEC, "@scope/server", "1.2.4", "sha512-AAAA==");
    runners.found(0, ["package-unseen", "same", "warning"]);
}

#[test]
fn package_without_a_version_is_a_warning_or_an_error_with_strict() {
    for (command, said) in [
        ("npx -y pkg", "the package `pkg` names no version"),
        (
            "npx -y pkg@latest",
            "the package `pkg` asks for `latest`, which is not one version",
        ),
        ("uvx pkg", "the package `pkg` names no version"),
        (
            "cd . && exec npx -y pkg",
            "the package `pkg` names no version",
        ),
        (
            "docker run -i --rm a/b:1",
            "the image `a/b` is named by the tag `1`, which can be moved",
        ),
        (
            "uvx --from git+https://me:pw@x.example/r pkg",
            "`git+https://…@x.example/r` names no version or commit",
        ),
    ] {
        let runners = Runners::new(&json!(command));
        let warning =
            format!("warning[package_unpinned]: `/a` may run another version later: {said}");
        let error = warning.replacen("warning", "error", 1);
        let refused = runners.run(&["lock", "--strict"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        contains(
            &refused.stderr,
            &[&error, "c.json:1:", "the lock was not written"],
        );
        assert!(
            runners.bench.journal("a", "start").is_empty(),
            "it was started all the same"
        );
        let (output, _) = runners.lock();
        contains(&output, &[&warning]);
        assert!(!output.contains("me:pw"), "{output}");

        let checked = runners.run(&["check"]);
        contains(&checked.stderr, &[&warning]);
        assert_eq!(checked.code, Some(0), "{}", checked.stderr);
        let refused = runners.run(&["check", "--strict"]);
        contains(&refused.stderr, &[&error]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    }
}

#[test]
fn package_version_change_without_a_pin_is_a_note() {
    let runners = Runners::new(&json!("npx -y pkg"));
    runners.npx_cache("pkg", "pkg", "1.0.0", "sha512-AAAA==");
    let (_, package) = runners.lock();
    assert_eq!(
        (&package["version"], &package["pinned"]),
        (&json!("1.0.0"), &json!(false))
    );
    runners.npx_cache("pkg", "pkg", "1.1.0", "sha512-BBBB==");
    runners.found(0, ["package-version-changed", "same", "note"]);
}

#[test]
fn npm_cache_folder_is_read_from_npmrc() {
    let runners = Runners::new(&json!(["npx", "-y", SPEC]));
    runners.npx_cache(SPEC, "@scope/server", "1.2.3", "sha512-AAAA==");
    let bench = &runners.bench;
    fs::rename(bench.path("home/.npm"), bench.path("elsewhere")).expect("one file system");
    assert_eq!(runners.lock().1, Value::Null);
    let cache = bench.path("elsewhere").to_string_lossy().into_owned();
    runners.write(
        "home/.npmrc",
        &format!("//r.example/:_authToken=x\ncache={cache}\n"),
    );
    assert_eq!(runners.lock().1["integrity"], "sha512-AAAA==");
}

#[test]
fn lock_with_pin_writes_the_version_that_ran_into_the_config() {
    let runners = Runners::new(&json!([]));
    let config = "\u{feff}{\n\t\"tree\": [ {\"path\": \"/a\",\r\n \"source\":\n{\"command\": \"npx -y @scope/server --flag\", \"inherit_env\": [\"HOME\"]}} ]\n}";
    runners.bench.write("c.json", config);
    for spec in ["@scope/server", SPEC] {
        runners.npx_cache(spec, "@scope/server", "1.2.3", "sha512-AAAA==");
    }
    let said = runners.lock().0;
    contains(
        &said,
        &[
            "package_unpinned",
            "may run another version later",
            "`broker-gen lock --pin`",
        ],
    );
    assert_eq!(runners.bench.read("c.json"), config);

    let output = runners.run(&["lock", "--pin"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "/a: pinned `@scope/server` as `@scope/server@1.2.3`",
            "c.json.bak",
        ],
    );
    let pinned = config.replace("@scope/server", SPEC);
    assert_eq!(runners.bench.read("c.json"), pinned);
    assert_eq!(runners.bench.read("c.json.bak"), config);
    let package = runners.bench.lock_json()["sources"][0]["package"].clone();
    assert_eq!(
        (&package["pinned"], &package["version"]),
        (&json!(true), &json!("1.2.3"))
    );
    assert_eq!(runners.run(&["verify"]).code, Some(0));
    // Nothing is left to do.
    assert_eq!(runners.run(&["lock", "--pin", "--strict"]).code, Some(0));
    assert_eq!(runners.bench.read("c.json"), pinned);
}

#[test]
fn lock_with_pin_writes_the_config_behind_a_link() {
    let runners = Runners::new(&json!("npx -y @scope/server"));
    for spec in ["@scope/server", SPEC] {
        runners.npx_cache(spec, "@scope/server", "1.2.3", "sha512-AAAA==");
    }
    let bench = &runners.bench;
    let config = bench.read("c.json");
    fs::create_dir(bench.path("store")).expect("a folder can be made");
    fs::rename(bench.path("c.json"), bench.path("store/c.json")).expect("one folder");
    std::os::unix::fs::symlink("store/c.json", bench.path("c.json")).expect("a link can be made");
    let output = runners.run(&["lock", "--pin"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let pinned = config.replace("@scope/server", SPEC);
    assert_eq!(bench.read("store/c.json"), pinned);
    let found = fs::symlink_metadata(bench.path("c.json"));
    assert!(found.is_ok_and(|found| found.is_symlink()));
}

#[test]
fn lock_with_pin_leaves_a_config_that_another_program_changed_meanwhile() {
    let runners = Runners::new(&json!("npx -y @scope/server"));
    for spec in ["@scope/server", SPEC] {
        runners.npx_cache(spec, "@scope/server", "1.2.3", "sha512-AAAA==");
    }
    let bench = &runners.bench;
    let edited = format!("{}\n", bench.read("c.json"));
    let output = changed_meanwhile(
        &bench.path(""),
        || runners.run(&["lock", "--pin"]),
        || bench.write("c.json", &edited),
    );
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let said = "c.json` is not written: another program changed it while this run worked";
    let parts = [
        "file_write",
        said,
        "Run the command again",
        "the lock was not written",
    ];
    contains(&output.stderr, &parts);
    assert_eq!(bench.read("c.json"), edited);
    assert!(!bench.path("c.json.bak").exists());
    assert_eq!(runners.run(&["lock", "--pin"]).code, Some(0));
    assert_eq!(
        bench.read("c.json"),
        edited.replace("@scope/server", SPEC),
        "the edit of the other program is kept"
    );
}

#[test]
fn lock_with_pin_leaves_the_file_of_a_client_alone() {
    let runners = Runners::new(&json!([]));
    let config = r#"{"mcpServers": {"a": {"command": "uvx", "args": ["my-server"], "inherit_env": ["HOME"]}}}"#;
    runners.bench.write("c.json", config);
    runners.dist(
        "home/.cache/uv/environments-v2/i/r",
        "my-server",
        "1.0",
        "AAA",
    );
    let output = runners.run(&["lock", "--pin"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    contains(&output.stderr, &["`--write-client-file`"]);
    assert_eq!(runners.bench.read("c.json"), config);

    let output = runners.run(&["lock", "--pin", "--write-client-file"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let pinned = config.replace("my-server", "my-server@1.0");
    assert_eq!(runners.bench.read("c.json"), pinned);
    assert_eq!(runners.bench.read("c.json.bak"), config);
}

#[test]
fn lint_says_the_age_of_a_release_that_npm_knows() {
    let runners = Runners::new(&json!(format!("npx -y {SPEC}")));
    runners.npx_cache(SPEC, "@scope/server", "1.2.3", "sha512-AAAA==");
    runners.lock();
    // A program that knows the time only online.
    let npm = "#!/bin/sh\ncase \"$*\" in *--offline*) exit 1;; \"view @scope/server time --json\") echo '{\"1.2.3\": \"2020-01-01T00:00:00.000Z\"}';; esac\n";
    runners.write("bin/npm", npm);
    let file = runners.bench.path("bin/npm");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("ours");
    let offline = runners.run(&["lint"]);
    assert!(!offline.stderr.contains("released"), "{}", offline.stderr);
    let online = runners.run(&["lint", "--online"]);
    contains(
        &online.stderr,
        &["`@scope/server@1.2.3` was released", "days ago"],
    );
}

#[test]
fn npm_project_folder_is_searched_before_the_cache() {
    let runners = Runners::new(&json!(["npx", "-y", SPEC]));
    runners.npx_cache(SPEC, "@scope/server", "1.2.3", "sha512-AAAA==");
    let entry = json!({"version": "1.2.3", "integrity": "sha512-CCCC=="});
    let lock = json!({"packages": {"node_modules/@scope/server": entry}}).to_string();
    runners.write("node_modules/.package-lock.json", &lock);
    assert_eq!(runners.lock().1["integrity"], "sha512-CCCC==");
}

#[test]
fn python_package_is_locked_with_archive_or_record() {
    let runners = Runners::new(&json!("uvx my-server==1.0"));
    let environment = "home/.cache/uv/environments-v2/i/r";
    runners.dist(environment, "my-server", "1.0", "AAA");
    let (_, package) = runners.lock();
    let record = package["integrity"].as_str().expect("a text").to_owned();
    assert!(record.starts_with("record-sha256:"), "{package}");
    assert_eq!(
        (&package["kind"], &package["name"]),
        (&json!("pypi"), &json!("my-server"))
    );
    runners.dist(environment, "my-server", "1.0", "BBB");
    runners.found(3, ["package-integrity-changed", "security", "error"]);

    // What uv knows of the archive is what the index says, so it comes first.
    let digits = "ab".repeat(32);
    runners.write(
        "home/.cache/uv/wheels-v5/pypi/my-server/1.0-py3-none-any.http",
        &format!("..Sha256@@{digits}.."),
    );
    runners.found(0, ["package-unseen", "same", "warning"]);
    assert_eq!(runners.lock().1["integrity"], format!("sha256:{digits}"));
}

#[test]
fn python_package_with_two_versions_is_unseen() {
    let runners = Runners::new(&json!("uvx my-server"));
    runners.dist(
        "home/.cache/uv/environments-v2/i/r",
        "my-server",
        "1.0",
        "AAA",
    );
    assert_eq!(runners.lock().1["version"], "1.0");
    runners.dist(
        "home/.cache/uv/environments-v2/i/s",
        "my-server",
        "1.1",
        "BBB",
    );
    let found = runners.found(0, ["package-unseen", "same", "warning"]);
    contains(
        found["message"].as_str().expect("a text"),
        &["the versions 1.0, 1.1 of `my-server`"],
    );
    contains(
        &runners.lock().0,
        &[
            "it is unknown which one ran",
            "help: Name one version: `my-server==VERSION`; ",
        ],
    );
}

#[test]
fn python_package_of_pipx_or_entry_point_is_locked() {
    let runners = Runners::new(&json!("pipx run my-server==1.0"));
    runners.dist("home/.cache/pipx/h", "my-server", "1.0", "AAA");
    assert_eq!(runners.lock().1["version"], "1.0");

    let runners = Runners::new(&json!(["venv/bin/serve"]));
    let info = runners.dist("venv", "my-server", "1.0", "AAA");
    runners.write(
        &format!("{info}/entry_points.txt"),
        "[console_scripts]\nserve = a:b\n",
    );
    runners.write("venv/pyvenv.cfg", "home = /x\n");
    fs::create_dir_all(runners.bench.path("venv/bin")).expect("writable");
    fs::copy(
        runners.bench.path("bin/npx"),
        runners.bench.path("venv/bin/serve"),
    )
    .expect("there");
    let (_, package) = runners.lock();
    assert_eq!(
        (&package["kind"], &package["name"]),
        (&json!("pypi"), &json!("my-server"))
    );
}

#[test]
fn container_image_is_locked_with_its_digest() {
    let digest = format!("sha256:{}", "c".repeat(64));
    let runners = Runners::new(&json!(format!("docker run -i --rm a/b:1@{digest}")));
    let (said, package) = runners.lock();
    let expected = json!({
        "kind": "oci", "name": "a/b", "version": "1", "integrity": digest, "pinned": true,
    });
    assert_eq!(package, expected);
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn file_named_by_path_is_locked_with_its_digest() {
    for command in [json!(["./server.sh"]), json!(["sh", "server.sh"])] {
        let runners = Runners::new(&command);
        let bench = &runners.bench;
        fs::copy(bench.path("bin/npx"), bench.path("server.sh")).expect("there");
        let (_, package) = runners.lock();
        assert_eq!(
            (&package["kind"], &package["name"]),
            (&json!("file"), &json!("server.sh"))
        );
        assert_eq!(runners.check(), (Some(0), Vec::new()));
        let mut script = fs::read_to_string(bench.path("server.sh")).expect("there");
        script.push_str("# another\n");
        fs::write(bench.path("server.sh"), script).expect("writable");
        runners.found(3, ["package-integrity-changed", "security", "error"]);
    }
    // What a bare name finds is a matter of the machine.
    let runners = Runners::new(&json!(["chaos-mcp", "--script", "a.json"]));
    assert_eq!(runners.lock().1, Value::Null);
}
