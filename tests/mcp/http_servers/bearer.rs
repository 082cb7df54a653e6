//! A server that wants a bearer token: the right one works, a wrong one is named as the cause, and neither is shown.

use std::path::Path;

use harness::{
    Bench, Broker, DirectHttpServer, ListeningServer, Output, Run, contains, wait_until,
};
use serde_json::{Value, json};

use super::servers::{self, broker_gen};

const RIGHT: &str = "right-token-9c1e77f0a3";
const WRONG: &str = "wrong-token-52bb08d6e4";

/// A folder with a config whose only source is the protected server of this SDK.
struct Protected {
    server: ListeningServer,
    bench: Bench,
}

impl Protected {
    /// `credentials` are members of the source that name the token.
    fn new(generation: &str, credentials: &Value) -> Self {
        let server = servers::python(generation, RIGHT);
        let mut source = json!({"url": server.url("/protected/mcp"), "on_unreachable": "serve"});
        for (key, value) in credentials.as_object().expect("members") {
            source[key] = value.clone();
        }
        let bench = Bench::new();
        let config = json!({"tree": [{"path": "/tools", "type": "node", "source": source}]});
        bench.write("c.json", &config.to_string());
        Self { server, bench }
    }

    /// `broker-gen` with this token, as a variable and as a file.
    fn run(&self, args: &[&str], token: &str) -> Run {
        self.bench.write("token", token);
        broker_gen(&self.bench, args).env("TOOLS_TOKEN", token)
    }

    fn verb(&self, args: &[&str], token: &str) -> Output {
        let output = self.run(args, token).output();
        has_no_token(&output.stdout);
        has_no_token(&output.stderr);
        output
    }

    fn broker(&self, token: &str) -> Broker {
        Broker::start(self.run(&["serve", "0"], token))
    }
}

#[track_caller]
fn has_no_token(text: &str) {
    assert!(!text.contains(RIGHT) && !text.contains(WRONG), "{text}");
}

fn is_refused(generation: &str, credentials: &Value) {
    let protected = Protected::new(generation, credentials);
    let refused = protected.verb(&["lock"], WRONG);
    assert_ne!(refused.code, Some(0), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["/tools", "needs_auth", "HTTP status 401", "invalid_token"],
    );
    assert_eq!(protected.bench.lock_state(), None);
    let locked = protected.verb(&["lock"], RIGHT);
    assert_eq!(locked.code, Some(0), "{}{}", locked.stdout, locked.stderr);
    has_no_token(&protected.bench.lock_text());

    let diagnosis = protected.verb(&["doctor"], RIGHT);
    assert_eq!(diagnosis.code, Some(0), "{}", diagnosis.stdout);
    let diagnosis = protected.verb(&["doctor"], WRONG);
    assert_eq!(diagnosis.code, Some(1), "{}", diagnosis.stdout);
    contains(&diagnosis.stdout, &["error[needs_auth]", "HTTP status 401"]);

    right_token_is_served(&protected);
    wrong_token_is_shown(&protected);
}

fn right_token_is_served(protected: &Protected) {
    let broker = protected.broker(RIGHT);
    wait_until("it serves the tools", || {
        broker.get("/readyz").status == 200
    });
    let url = protected.server.url("/protected/mcp");
    let mut direct = DirectHttpServer::with_token(&url, Some(RIGHT));
    let args = json!({"text": "é"});
    let answer = direct.call("echo", &args);
    assert_eq!(
        Some(&broker.result("/tools/echo", args)),
        answer.get("result")
    );
    assert_eq!(status_of(&broker).code, Some(0));
    let (_, log) = broker.terminate();
    has_no_token(&log);
}

fn wrong_token_is_shown(protected: &Protected) {
    let broker = protected.broker(WRONG);
    wait_until("the source has failed", || {
        broker.source("/tools")["state"] == "failed"
    });
    // The start notices the failure after the source does.
    let echo = || broker.call("/tools/echo", json!({"text": "x"}));
    wait_until("the start has its outcome", || echo().code() != "starting");
    let call = echo();
    assert_eq!(
        (call.status, call.code().as_str()),
        (503, "source_unavailable"),
        "{}",
        call.text()
    );
    contains(&call.text(), &["needs_auth"]);
    has_no_token(&call.text());
    let source = broker.source("/tools");
    assert_eq!(
        (&source["state"], &source["cause"]),
        (&json!("failed"), &json!("needs_auth")),
        "{source}"
    );
    has_no_token(&broker.get("/sources").text());
    let status = status_of(&broker);
    assert_eq!(status.code, Some(1), "{}", status.stdout);
    contains(&status.stdout, &["/tools", "failed", "needs_auth"]);
    has_no_token(&status.stdout);
    let (_, log) = broker.terminate();
    contains(&log, &["needs_auth"]);
    has_no_token(&log);
}

fn status_of(broker: &Broker) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_mcp-broker"));
    Run::new(program)
        .args(["status", broker.address()])
        .output()
}

#[test]
fn wrong_token_in_a_header_is_needs_auth_and_never_shown() {
    let header = json!({"headers": {"Authorization": "Bearer ${TOOLS_TOKEN}"}});
    is_refused("v1", &header);
}

#[test]
fn wrong_token_in_a_file_is_needs_auth_and_never_shown() {
    is_refused("v2", &json!({"auth": {"token_file": "token"}}));
}
