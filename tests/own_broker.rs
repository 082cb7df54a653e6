//! A crate made by `broker-gen new`: it locks, it builds offline without a change, and its broker
//! runs and calls a tool.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Broker, Run, binary};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of this build, `target` or another, so that crates that are built already are shared.
fn target() -> PathBuf {
    let program = binary("broker-gen");
    let profile = program.parent().expect("a profile");
    profile.parent().expect("the target folder").to_owned()
}

fn cargo(folder: &Path, args: &[&str]) -> String {
    let profile = if cfg!(debug_assertions) {
        "dev"
    } else {
        "release"
    };
    let output = Run::new(Path::new(env!("CARGO")))
        .folder(folder)
        .args(args)
        .args(["--offline", "--profile", profile])
        // As in this workspace, so that what it built is used again.
        .args(["--config", "profile.dev.debug=\"line-tables-only\""])
        .env("CARGO_TARGET_DIR", target())
        .output();
    assert_eq!(output.code, Some(0), "cargo {args:?}: {}", output.stderr);
    output.stderr
}

#[test]
fn a_crate_made_by_new_locks_builds_and_serves() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let own = folder.path().join("own-broker-of-a-test");
    let generate = |args: &[&str], folder: &Path| {
        let path = std::env::var("PATH").unwrap_or_default();
        let beside = binary("toolbox-mcp");
        let beside = beside.parent().expect("it lies in a folder").display();
        Run::new(&binary("broker-gen"))
            .args(args)
            .folder(folder)
            .env("PATH", format!("{beside}:{path}"))
            .output()
    };
    let broker = root().to_str().expect("UTF-8");
    let made = generate(
        &["new", "own-broker-of-a-test", "--broker", broker],
        folder.path(),
    );
    assert_eq!(made.code, Some(0), "{}", made.stderr);

    // The versions that this workspace builds with are there without a network.
    fs::copy(root().join("Cargo.lock"), own.join("Cargo.lock")).expect("a lock of crates");
    let refused = Run::new(Path::new(env!("CARGO")))
        .folder(&own)
        .args(["build", "--offline"])
        .env("CARGO_TARGET_DIR", target())
        .output();
    assert_ne!(refused.code, Some(0), "a build without a lock");
    assert!(
        refused
            .stderr
            .contains("broker-gen lock --config config.json"),
        "{}",
        refused.stderr
    );

    let locked = generate(&["lock", "--config", "config.json"], &own);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    cargo(&own, &["build"]);

    let program = binary("own-broker-of-a-test");
    let version = Run::new(&program).args(["--version"]).output();
    assert!(
        version
            .stdout
            .contains("built from config.json, config sha256/1:"),
        "{}",
        version.stdout
    );
    let tree = Run::new(&program).args(["--dump-tree=json"]).output();
    let tree: Value = serde_json::from_str(&tree.stdout).expect("JSON");
    assert_eq!(tree["tree"]["children"][0]["path"], "/util");

    let running = Broker::start_ready(Run::new(&program).args(["127.0.0.1:0"]).folder(&own));
    let result = running.result("/util/hash_text", json!({"text": "hello"}));
    assert_eq!(
        result["structuredContent"]["digest"],
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    );
    let health = running.get("/healthz").json();
    assert_eq!(health["catalog_digest"], tree["catalog_digest"]);
    assert_eq!(health["built_from"]["config"], "config.json");
    let (status, stderr) = running.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    // Built into the folder of others: nothing of it stays.
    fs::remove_file(&program).expect("it was built");
}

#[test]
fn generate_writes_exactly_what_the_build_compiled_in() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let out = folder.path().join("generated");
    let made = Run::new(&binary("broker-gen"))
        .folder(root())
        .args(["generate", "--config", "smoke_config.json", "--out"])
        .args([&out])
        .output();
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let files = |folder: &Path| -> Vec<(String, Vec<u8>)> {
        let mut found: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("readable").path())
            .map(|path| {
                let name = path
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
                (name, fs::read(&path).expect("readable"))
            })
            .collect();
        found.sort();
        found
    };
    let (ours, built) = (files(&out), files(Path::new(env!("OUT_DIR"))));
    let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
        files.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&ours), names(&built));
    assert!(ours == built, "the bytes differ");
    for (name, bytes) in &ours {
        let text = String::from_utf8_lossy(bytes);
        assert!(
            !text.contains(&*root().to_string_lossy()),
            "{name} names a folder of this machine"
        );
    }
}
