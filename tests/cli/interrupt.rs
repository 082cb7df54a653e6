//! An interrupted `lock` leaves no process of its sources.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::{binary, wait_until};

#[expect(
    clippy::disallowed_methods,
    reason = "tests start the programs that they test"
)]
fn command(program: &Path) -> Command {
    Command::new(program)
}

#[test]
fn interrupt_ends_every_started_process() {
    interrupt(Stdio::null());
}

#[test]
fn interrupt_with_unread_output_ends_every_started_process() {
    let pipe = harness::UnreadPipe::new();
    interrupt(pipe.stdio());
}

fn interrupt(stderr: Stdio) {
    let folder = tempfile::tempdir().expect("the file system and the shell work");
    let config = folder.path().join("config.json");
    // Like an installer: a shell whose child holds on, and that never speaks MCP.
    let script = "sleep 977 & echo $! > child.new; mv child.new child; wait";
    let source = serde_json::json!({"command": ["/bin/sh", "-c", script], "cwd": "."});
    let tree = serde_json::json!({"tree": [{"path": "/s", "type": "node", "source": source}]});
    fs::write(&config, tree.to_string()).expect("the file system and the shell work");
    let mut lock = command(&binary("broker-gen"))
        .args(["lock", "--config"])
        .arg(&config)
        // On an unattended machine `lock` starts no source.
        .env_remove("CI")
        .env_remove("MCP_BROKER_LOCKED")
        .stderr(stderr)
        .spawn()
        .expect("the file system and the shell work");
    let child = folder.path().join("child");
    wait_until("the source has started its own child", || child.exists());
    let pid = fs::read_to_string(child)
        .expect("the file system and the shell work")
        .trim()
        .to_owned();
    let running = |pid: &str| {
        let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    assert!(running(&pid));
    let status = command(Path::new("/bin/kill"))
        .args(["-TERM", &lock.id().to_string()])
        .status()
        .expect("the file system and the shell work");
    assert!(status.success());
    assert_eq!(
        lock.wait()
            .expect("the file system and the shell work")
            .code(),
        Some(130)
    );
    assert!(!running(&pid), "the source's child is still there");
    assert!(!folder.path().join("config.lock.json").exists());
}
