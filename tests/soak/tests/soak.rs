//! The soak in the form that every change must pass: every call is accounted for while sources are
//! killed. `MCP_BROKER_SOAK_CALLS` sets the number of calls.

use std::path::Path;

use harness::Run;

#[test]
fn soak_under_kills_accounts_for_every_call() {
    let calls = std::env::var("MCP_BROKER_SOAK_CALLS").unwrap_or_else(|_| "2000".to_owned());
    let soak = Run::new(Path::new(env!("CARGO_BIN_EXE_soak")))
        .args(["--calls", &calls])
        .output();
    assert_eq!(soak.code, Some(0), "{}{}", soak.stdout, soak.stderr);
    assert!(
        soak.stdout.contains("sources were killed"),
        "{}",
        soak.stdout
    );
}
