//! The session with a server, whose caller is the core: a timeout, and a caller that leaves.

use std::time::Duration;

use broker_mcp::{CallFailure, ServerCall};

use crate::client::common::{ServerFixture, WAIT_TIMEOUT, eventually};
use crate::client::session::open;

#[tokio::test]
async fn call_that_hangs_times_out_and_is_cancelled_at_the_server() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server("call() { :; }")).await;
    let timeout = Duration::from_millis(50);
    let failure = session
        .call(ServerCall::new("echo", b"{}"), timeout)
        .await
        .unwrap_err();
    assert!(
        matches!(
            failure,
            CallFailure::Timeout {
                maybe_executed: true,
                ..
            }
        ),
        "{failure:?}"
    );
    eventually("the cancel arrives", || {
        fixture.read("log").contains("notifications/cancelled")
    })
    .await;
    let log = fixture.read("log");
    let sent = log
        .lines()
        .find(|line| line.contains("tools/call"))
        .unwrap();
    let id = sent
        .split(r#""id":"#)
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    assert!(log.contains(&format!(r#""requestId":{id},"#)), "{log}");
    session.stop().await;
}

#[tokio::test]
async fn call_of_a_caller_that_leaves_is_cancelled_at_the_server() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server("call() { :; }")).await;
    {
        let mut leaving = Box::pin(session.call(ServerCall::new("echo", b"{}"), WAIT_TIMEOUT));
        tokio::select! {
            _ = &mut leaving => panic!("it hangs"),
            () = eventually("the call arrives", || fixture.read("log").contains("tools/call")) => {}
        }
    }
    eventually("the cancel arrives", || {
        fixture.read("log").contains("notifications/cancelled")
    })
    .await;
    session.stop().await;
}
