//! The hook before a commit, run by git itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use harness::{Bench, binary, contains};

use super::page::{block, config, repository, tool};
use super::runner::{git, shell};

/// `git commit` with the hook; whether it committed, and its output.
fn commit(bench: &Bench) -> (bool, String) {
    let beside = binary("broker-gen");
    let beside = beside.parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = shell(&bench.path(""))
        .args([
            "-c",
            "exec git -c user.name=N -c user.email=n@example.org commit -q -m x 2>&1",
        ])
        .env("PATH", format!("{}:{path}", beside.display()))
        .output()
        .expect("git runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

#[test]
fn hook_refuses_what_is_staged_and_not_what_is_in_the_folder() {
    let bench = repository();
    let folder = bench.path("");
    fs::create_dir(bench.path(".githooks")).expect("a folder");
    bench.write(
        ".githooks/pre-commit",
        &block("A hook before a commit", "sh"),
    );
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(bench.path(".githooks/pre-commit"), executable).expect("executable");
    git(&folder, &["config", "core.hooksPath", ".githooks"]);

    // A stale lock is staged; that the folder has a current one does not matter.
    bench.script("b", &serde_json::json!({"tools": [tool("read", "Reads.")]}));
    bench.write("config.json", &config("b.json").to_string());
    git(&folder, &["add", "-A"]);
    bench.fine(&["lock", "--config", "config.json"]);
    let (done, text) = commit(&bench);
    assert!(!done, "{text}");
    // The place in the message is a file of the repository.
    contains(&text, &["lock_stale", "--> config.json:1:"]);
    assert!(!text.contains("/config.json"), "{text}");

    git(&folder, &["add", "-A"]);
    // Nor does it matter that the folder has a stale one.
    bench.write("config.json", &config("a.json").to_string());
    let (done, text) = commit(&bench);
    assert!(done, "{text}");

    // A hidden character of a lock is found before it is in a commit.
    bench.one_tool("a", tool("read", "Reads.\u{200b}\u{202e}"));
    bench.verb(&["lock"]);
    let output = bench.run(&["lock", "--config", "config.json"]);
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    git(&folder, &["add", "-A"]);
    let (done, text) = commit(&bench);
    assert!(!done, "{text}");
}
