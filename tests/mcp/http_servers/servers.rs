//! The servers of these tests: programs made with the Python SDKs, the TypeScript reference server, the Rust SDK.

use std::path::{Path, PathBuf};

use harness::{Bench, Broker, ListeningServer, Output, Run, binary, official_python};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http_servers")
}

/// The servers of a Python SDK, `v1` or `v2`. The protected one takes `token`.
pub(super) fn python(generation: &str, token: &str) -> ListeningServer {
    let script = folder().join(format!("python_{generation}.py"));
    let program = official_python(generation);
    ListeningServer::start(Run::new(&program).args([script]).env("TOKEN", token))
}

/// The TypeScript reference server over a transport of it: `streamableHttp` or `sse`.
pub(super) fn everything(transport: &str) -> ListeningServer {
    let packages = folder().join("../real-broker/servers/node_modules");
    let program = packages.join("@modelcontextprotocol/server-everything/dist/index.js");
    assert!(
        program.exists(),
        "the reference server is not installed; run tests/real-broker/install"
    );
    let loader = folder().join("loopback.mjs");
    let run = Run::new(Path::new("node"))
        .args(["--import"])
        .args([loader]);
    ListeningServer::start(run.args([program]).args([transport]))
}

/// The server of the Rust SDK; the second argument may limit it to the legacy era.
pub(super) fn rust(args: &[&str]) -> ListeningServer {
    let run = Run::new(&binary("oracle-server"));
    ListeningServer::start(run.args(["http"]).args(args))
}

/// `broker-gen` in a folder with the config `c.json`.
pub(super) fn broker_gen(bench: &Bench, args: &[&str]) -> Run {
    let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    run.args(&args[..1])
        .args(["--config", "c.json"])
        .args(&args[1..])
}

/// Writes the config and locks it, which must succeed.
pub(crate) fn lock(bench: &Bench, config: &Value) -> Output {
    bench.write("c.json", &config.to_string());
    let output = broker_gen(bench, &["lock"]).output();
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    output
}

/// A broker without a build over the config and its lock.
pub(crate) fn serve(bench: &Bench) -> Broker {
    Broker::start_ready(broker_gen(bench, &["serve", "0"]))
}
