//! Idle sessions of MCP clients: what the broker keeps for each.

use harness::faults::FaultFixture;
use harness::figure::figure;
use harness::mcp_http::McpSession;
use harness::{ResourceUsage, raise_file_limit, wait_until};
use serde_json::json;

/// As many as one owner may have.
const SESSIONS: usize = 1_000;
/// The bounds of the resident memory, in KiB for each session.
const IDLE_KIB: u64 = 16;
const STREAM_KIB: u64 = 48;
/// Calls and sessions before the first measurement, which fill the caches of the allocator.
const WARM_UP: usize = 50;

/// Open files of this process, one for each stream. A process that it starts has the same limit.
const FILES: u64 = 4_096;

fn resident(stage: &FaultFixture) -> u64 {
    ResourceUsage::measure(stage.broker.pid()).resident
}

fn count(stage: &FaultFixture) -> u64 {
    let count = stage.broker.get("/sources").json()["mcp_sessions"].as_u64();
    count.expect("the sessions are counted")
}

#[test]
fn idle_sessions_take_little_memory_with_and_without_a_stream() {
    let _machine = harness::whole_machine();
    raise_file_limit(FILES);
    let stage = FaultFixture::new(&json!({}));
    let begin = || McpSession::begin(stage.broker.address(), "/mcp/direct");
    for _ in 0..WARM_UP {
        assert_eq!(begin().bare("DELETE", "*/*").status, 204);
        assert_eq!(stage.echo("x").status, 200);
    }
    let before = resident(&stage);
    let sessions: Vec<_> = (0..SESSIONS).map(|_| begin()).collect();
    assert_eq!(count(&stage), SESSIONS as u64);
    let idle = resident(&stage);
    let open: Vec<_> = sessions.iter().map(McpSession::stream).collect();
    let streaming = resident(&stage);
    let each = |more: u64, less: u64| more.saturating_sub(less) as f64 / SESSIONS as f64;
    let (idle_kib, stream_kib) = (each(idle, before), each(streaming, before));
    figure(
        "F-34-sessions",
        &format!(
            "{SESSIONS} idle sessions: {idle_kib:.1} KiB each, {stream_kib:.1} KiB each with an open stream"
        ),
    );
    assert!(
        idle_kib <= IDLE_KIB as f64,
        "{idle_kib} KiB without a stream"
    );
    assert!(
        stream_kib <= STREAM_KIB as f64,
        "{stream_kib} KiB with a stream"
    );
    drop(open);
    for session in &sessions {
        assert_eq!(session.bare("DELETE", "*/*").status, 204);
    }
    wait_until("all sessions have ended", || count(&stage) == 0);
    stage.is_as_before();
}
