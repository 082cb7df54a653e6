//! Files and output that cannot be written: the verb reports an error, keeps the old file and leaves no
//! part of a new one. The limit on file sizes, and a device that is always full, represent a full disk.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use harness::binary;
use serde_json::json;
use tempfile::TempDir;

/// A legacy server whose only tool has a long description.
const SERVER: &str = r#"
ok() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
long=$(printf '%04000d' 0)
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
    *'"initialize"'*) ok '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}';;
    *'"tools/list"'*) ok "{\"tools\":[{\"name\":\"t\",\"description\":\"$(cat word) $long\",\"inputSchema\":{\"type\":\"object\"}}]}";;
  esac
done
"#;

#[expect(
    clippy::disallowed_methods,
    reason = "tests start the programs that they test"
)]
fn command(program: &Path) -> Command {
    Command::new(program)
}

/// `broker-gen` in this folder, after this piece of shell.
fn run(folder: &Path, before: &str, args: &[&str]) -> Output {
    let mut command = command(Path::new("/bin/sh"));
    command
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(binary("broker-gen"))
        .args(args)
        .env_remove("CI")
        .current_dir(folder);
    command
        .output()
        .expect("the file system and the shell work")
}

/// At most 1 KiB, or half of that where a shell counts in smaller blocks.
const LIMIT: &str = "ulimit -f 1;";

fn scene() -> TempDir {
    let folder = tempfile::tempdir().expect("the file system and the shell work");
    let source = json!({"command": ["/bin/sh", "server.sh"], "cwd": "."});
    fs::write(folder.path().join("server.sh"), SERVER).expect("the file system and the shell work");
    let config = json!({"tree": [{"path": "/s", "type": "node", "source": source}]});
    fs::write(folder.path().join("c.json"), config.to_string())
        .expect("the file system and the shell work");
    fs::write(folder.path().join("word"), "one").expect("the file system and the shell work");
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .expect("the file system and the shell work")
        .flatten();
    let mut names: Vec<_> = names
        .map(|entry| {
            entry
                .file_name()
                .into_string()
                .expect("the file system and the shell work")
        })
        .collect();
    names.sort();
    names
}

fn is_refused(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|code| code != 0),
        "{}: {said}",
        output.status
    );
    assert!(said.contains("cannot be written"), "{said}");
    assert!(said.contains("help: Free disk space"), "{said}");
}

#[test]
fn lock_and_audits_are_unchanged_when_the_disk_is_full() {
    let scene = scene();
    let folder = scene.path();
    let lock = ["lock", "--config", "c.json"];
    let output = run(folder, "", &lock);
    assert!(output.status.success(), "{output:?}");
    let old = fs::read(folder.join("c.lock.json")).expect("the file system and the shell work");
    assert!(old.len() > 1 << 10);
    let before = files(folder);

    fs::write(folder.join("word"), "two").expect("the file system and the shell work");
    is_refused(&run(folder, LIMIT, &lock));
    assert_eq!(
        fs::read(folder.join("c.lock.json")).expect("the file system and the shell work"),
        old
    );
    assert_eq!(files(folder), before);

    let audits = "# by hand\n".repeat(200);
    fs::write(folder.join("c.audits.toml"), &audits).expect("the file system and the shell work");
    let before = files(folder);
    let who = "A. Reviewer <a@example.org>";
    let accept = ["accept", "--config", "c.json", "--who", who, "--all"];
    is_refused(&run(folder, LIMIT, &accept));
    let now = fs::read_to_string(folder.join("c.audits.toml"))
        .expect("the file system and the shell work");
    assert_eq!(now, audits);
    assert_eq!(files(folder), before);
    // Once the disk has room again, the verbs work without a repair.
    for args in [&lock[..], &accept] {
        let output = run(folder, "", args);
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn generated_files_are_unchanged_when_the_disk_is_full() {
    let scene = scene();
    let folder = scene.path();
    let generate = ["generate", "--config", "c.json", "--out", "generated"];
    for args in [&["lock", "--config", "c.json"][..], &generate] {
        let output = run(folder, "", args);
        assert!(output.status.success(), "{output:?}");
    }
    let generated = folder.join("generated");
    let texts = || {
        let read = |name: String| fs::read(generated.join(name));
        let texts: Result<Vec<_>, _> = files(&generated).into_iter().map(read).collect();
        texts.expect("the file system and the shell work")
    };
    let old = texts();
    fs::write(folder.join("word"), "two").expect("the file system and the shell work");
    let output = run(folder, "", &["lock", "--config", "c.json"]);
    assert!(output.status.success(), "{output:?}");
    is_refused(&run(folder, LIMIT, &generate));
    assert_eq!(texts(), old);
    assert!(run(folder, "", &generate).status.success());
    assert_ne!(texts(), old);
}

#[test]
fn new_crate_leaves_no_files_when_the_disk_is_full() {
    let scene = scene();
    let folder = scene.path();
    is_refused(&run(
        folder,
        LIMIT,
        &["new", "of-my-own", "--broker", "0.1.0"],
    ));
    let output = run(folder, "", &["new", "of-my-own", "--broker", "0.1.0"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn standard_output_on_a_full_device_is_an_error() {
    let scene = scene();
    for (before, code) in [("exec > /dev/full;", 1), ("exec > /dev/null;", 0)] {
        for args in [&["schema", "config"][..], &["completions", "bash"]] {
            let output = run(scene.path(), before, args);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{said}");
            let is_told = said.contains("standard output cannot be written: No space left");
            assert_eq!(is_told, code != 0, "{said}");
        }
    }
}
