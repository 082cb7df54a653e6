//! The packages as a person installs them: from each, without a compiler, a config is locked, a broker is packed, and a call is
//! answered.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use harness::{Broker, Output, Run, binary, contains};
use serde_json::{Value, json};
use tempfile::TempDir;

mod documents;
mod installs;

/// The folders in which a person without a compiler has programs.
const PATH: &str = "/usr/bin:/bin";
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A folder with the programs of this build, without symbols, since packages of them are made faster.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<TempDir> = OnceLock::new();
    let folder = PROGRAMS.get_or_init(|| {
        let folder = TempDir::new().expect("a folder");
        for name in ["broker-gen", "mcp-broker-runtime"] {
            fine(Run::new(Path::new("strip")).args([
                Path::new("-o"),
                &folder.path().join(name),
                &binary(name),
            ]));
        }
        folder
    });
    folder.path()
}

/// Runs a program that must succeed.
fn fine(run: Run) -> Output {
    let output = run.output();
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    output
}

/// Makes a package in a folder; returns its files.
fn make(kind: &str, out: &Path) -> Vec<PathBuf> {
    let script = Path::new(ROOT).join("packaging").join(kind).join("make");
    let made = fine(Run::new(&script).args(["--level", "1", "--binary"]).args([
        programs(),
        Path::new("--out"),
        out,
    ]));
    made.stdout.lines().map(PathBuf::from).collect()
}

/// Makes the package that has one file.
fn make_one(kind: &str, out: &Path) -> PathBuf {
    let mut files = make(kind, out);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// Unpacks an archive with `tar` or `dpkg-deb`.
fn unpack(program: &str, args: &[&str], archive: &Path, folder: &Path) {
    let last = match program {
        "tar" => vec![archive, Path::new("-C"), folder],
        _ => vec![archive, folder],
    };
    fine(Run::new(Path::new(program)).args(args).args(last));
}

/// Runs a program of a package as a person without a compiler.
fn installed(program: &Path, home: &Path) -> Run {
    Run::new(program)
        .env("PATH", PATH)
        .env("HOME", home)
        .folder(home)
}

/// Locks a config, packs a broker, and calls a tool of it.
fn first_hour(broker_gen: &Path) {
    let home = TempDir::new().expect("a folder");
    let server = binary("toolbox-mcp");
    let config = json!({"mcpServers": {"tools": {"command": server}}});
    fs::write(home.path().join("mcp.json"), config.to_string()).expect("writable");
    let verb = |args: &[&str]| fine(installed(broker_gen, home.path()).args(args));
    verb(&["lock", "--config", "mcp.json"]);
    verb(&["pack", "--config", "mcp.json", "-o", "broker"]);
    verb(&["verify", "--config", "mcp.json", "--binary", "broker"]);
    let packed = home.path().join("broker");
    let broker = Broker::start_ready(installed(&packed, home.path()).args(["127.0.0.1:0"]));
    let sorted = broker.result("/tools/json_format", json!({"text": "{\"b\":1,\"a\":2}"}));
    assert!(sorted.to_string().contains("a"), "{sorted}");
}
