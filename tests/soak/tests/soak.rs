//! The soak in the form that every change must pass: every call is accounted for while sources are
//! killed. `MCP_BROKER_SOAK_CALLS` sets the number of calls.

use std::path::Path;

use harness::{Run, access};

fn soak(set_up: impl FnOnce(Run) -> Run) {
    let calls = std::env::var("MCP_BROKER_SOAK_CALLS").unwrap_or_else(|_| "2000".to_owned());
    let run = Run::new(Path::new(env!("CARGO_BIN_EXE_soak"))).args(["--calls", &calls]);
    let soak = set_up(run).output();
    assert_eq!(soak.code, Some(0), "{}{}", soak.stdout, soak.stderr);
    assert!(
        soak.stdout.contains("sources were killed"),
        "{}",
        soak.stdout
    );
}

#[test]
fn soak_under_kills_accounts_for_every_call() {
    soak(|run| run);
}

#[test]
fn soak_under_rules_of_access_accounts_for_every_call() {
    soak(|run| run.env(access::VARIABLE, "1"));
}
