//! After a failure: the sessions and streams that end, and the clients that are used again.

use broker_mcp::{CallFailure, Carrier, ClientErrorKind, ServerCall, State};
use harness::{http_script, on_echo};
use serde_json::{Value, json};

use super::{HttpFixture, WAIT_TIMEOUT, echo, echo_by, eventually, start, until};

fn at(request: &Value) -> u64 {
    request["at_ms"].as_u64().expect("a time")
}

#[tokio::test]
async fn client_is_used_again_after_its_connections_broke() {
    for era in ["legacy", "modern"] {
        let fixture = HttpFixture::of_era(era, &json!({"get": 405}));
        let client = fixture.client();
        client.initialize().await.unwrap();
        let text = json!({"text": "x"});
        let call = || client.call_tool("echo", &text);
        let reset = json!({"get": 405, "rules": [on_echo(&json!("reset"))]});
        fixture.script(&http_script(era, &reset));
        for _ in 0..6 {
            let error = call().await.unwrap_err();
            let is_broken = matches!(error.kind(), ClientErrorKind::Unreachable { .. });
            assert!(is_broken, "{era}: {error:?}");
        }
        fixture.script(&http_script(era, &json!({"get": 405})));
        call().await.unwrap();
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn error_of_a_call_that_names_a_session_does_not_end_the_session() {
    let error = json!({"code": -32602, "message": "`session_id` is required"});
    let fault = json!({"status": 400, "body": error});
    let fixture = HttpFixture::with_fault("legacy", &fault);
    let session = fixture.session().await;
    for _ in 0..2 {
        let failure = echo(&session, "x").await.unwrap_err();
        let is_of_call = matches!(failure, CallFailure::Rpc { code: -32602, .. });
        assert!(is_of_call, "{failure:?}");
    }
    fixture.script(&http_script("legacy", &json!({})));
    echo(&session, "x").await.unwrap();
    let opened = fixture.requests(&json!({"rpc_method": "initialize"}));
    assert_eq!(opened.len(), 1);
}

#[tokio::test]
async fn session_ends_after_the_answers_of_the_calls_under_way() {
    let reset = json!({"get": 405, "rules": [on_echo(&json!("reset"))]});
    let fixture = HttpFixture::of_era("legacy", &reset);
    let source = fixture.instance().await;
    let slow = source.call(ServerCall::new("slow", br#"{"ms":2000}"#), WAIT_TIMEOUT);
    let broken = async {
        eventually("the slow call is executed", || fixture.events("call") == 1).await;
        for _ in 0..5 {
            echo_by(&source, "x").await.unwrap_err();
        }
        until(&source, |status| status.state != State::Ready).await;
    };
    let (answer, ()) = tokio::join!(slow, broken);
    assert!(answer.is_ok(), "{answer:?}");
    let deleted = || fixture.requests(&json!({"method": "DELETE"}));
    eventually("the session is ended", || !deleted().is_empty()).await;
    let called = fixture.requests(&json!({"tool": "slow"}));
    assert!(at(&deleted()[0]) >= at(&called[0]) + 2000);
    source.stop().await;
}

#[tokio::test]
async fn session_of_a_start_that_is_stopped_is_ended() {
    let hang = json!({"on": {"method": "tools/list"}, "do": "hang"});
    let fixture = HttpFixture::of_era("legacy", &json!({"get": 405, "rules": [hang]}));
    let source = start(fixture.spec());
    eventually("the tools are asked for", || {
        !fixture
            .requests(&json!({"rpc_method": "tools/list"}))
            .is_empty()
    })
    .await;
    source.stop().await;
    eventually("the session is ended", || {
        fixture.requests(&json!({"method": "DELETE"})).len() == 1
    })
    .await;
}

#[tokio::test]
async fn stream_that_is_refused_after_it_ended_is_opened_again() {
    let get = json!({"http_method": "GET"});
    let rules = json!([
        {"on": get, "nth": 1, "do": {"open_ms": 100}},
        {"on": get, "nth": 2, "do": {"status": 409}},
    ]);
    let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
    let source = fixture.instance().await;
    eventually("the stream is open again", || {
        fixture.requests(&json!({"method": "GET"})).len() == 3
    })
    .await;
    source.stop().await;
}

#[tokio::test]
async fn older_transport_is_used_after_a_refusal_with_a_json_rpc_error() {
    for status in [400, 404, 405] {
        let error = json!({"code": -32000, "message": "Method not allowed."});
        let refusal = json!({"status": status, "body": error});
        let on = json!({"http_method": "POST", "path": "/sse"});
        let older = json!({"transport": "sse", "rules": [{"on": on, "do": refusal}]});
        let fixture = HttpFixture::of_era("legacy", &older);
        let session = fixture.session().await;
        assert_eq!(session.carrier(), Carrier::HttpSse, "{status}");
        session.stop().await;
    }
}

#[tokio::test]
async fn call_that_the_token_does_not_permit_fails_alone() {
    for era in ["legacy", "modern"] {
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
        let fault = json!({"status": 403, "headers": {"WWW-Authenticate": challenge}});
        let fixture = HttpFixture::with_fault(era, &fault);
        let source = fixture.instance().await;
        let failure = echo_by(&source, "x").await.unwrap_err();
        let is_of_call = matches!(
            failure,
            CallFailure::Http {
                status: 403,
                maybe_executed: false
            }
        );
        assert!(is_of_call, "{era}: {failure:?}");
        let other = source.call(ServerCall::new("slow", br#"{"ms":1}"#), WAIT_TIMEOUT);
        other.await.unwrap();
        assert_eq!(source.status().borrow().state, State::Ready);
        source.stop().await;
    }
}
