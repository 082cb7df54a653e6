//! The public client for one server over HTTP.

use std::time::Duration;

use broker_mcp::{ClientError, ClientErrorKind, HttpClient};
use serde_json::{Value, json};

use super::{HttpFixture, eventually};

const ERAS: [&str; 3] = ["legacy", "modern", "both"];

fn kind<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ClientErrorKind {
    result.expect_err("it fails").kind().clone()
}

async fn echo(client: &HttpClient, text: &str) -> Result<Value, ClientError> {
    client.call_tool("echo", &json!({ "text": text })).await
}

#[tokio::test]
async fn client_lists_and_calls_in_each_era() {
    for era in ERAS {
        let fixture = HttpFixture::of_era(era, &json!({}));
        let client = fixture.client();
        let capabilities = client.initialize().await.unwrap();
        assert_eq!(capabilities["tools"]["listChanged"], true, "{era}");
        assert_eq!(client.session_id().is_some(), era == "legacy");
        let tools = client.list_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names[..2], [&json!("echo"), &json!("add")], "{era}");
        let sum = client.call_tool("add", &json!({"a": 1, "b": 2})).await;
        assert_eq!(sum.unwrap()["content"][0]["text"], "3", "{era}");
        client.close().await.unwrap();
        let deleted = fixture.requests(&json!({"method": "DELETE"}));
        assert_eq!(deleted.len(), usize::from(era == "legacy"), "{era}");
    }
}

#[tokio::test]
async fn client_adds_the_path_mcp_to_an_endpoint_without_one() {
    let fixture = HttpFixture::of_era("both", &json!({}));
    for end in ["", "/"] {
        let endpoint = format!("http://{}{end}", fixture.server.address);
        let client = HttpClient::new(&endpoint, None).unwrap();
        client.initialize().await.unwrap();
        assert!(!client.list_tools().await.unwrap().is_empty());
    }
    let other = HttpFixture::of_era("both", &json!({"path": "/other"}));
    other.client().initialize().await.unwrap();
}

#[tokio::test]
async fn client_used_before_initialize_or_after_close_is_an_error() {
    let fixture = HttpFixture::of_era("legacy", &json!({}));
    let client = fixture.client();
    assert_eq!(client.session_id(), None);
    assert_eq!(
        kind(client.list_tools().await),
        ClientErrorKind::NotInitialized
    );
    assert_eq!(
        kind(echo(&client, "x").await),
        ClientErrorKind::NotInitialized
    );
    assert_eq!(fixture.requests(&json!({})).len(), 0);

    client.initialize().await.unwrap();
    let first = client.session_id();
    assert!(first.is_some());
    assert_eq!(
        kind(client.initialize().await),
        ClientErrorKind::AlreadyInitialized
    );
    assert_eq!(client.session_id(), first, "the session is kept");

    client.close().await.unwrap();
    assert_eq!(client.session_id(), None);
    assert_eq!(kind(client.list_tools().await), ClientErrorKind::Closed);
    assert_eq!(kind(echo(&client, "x").await), ClientErrorKind::Closed);
    assert_eq!(fixture.executions("x"), 0);
}

#[tokio::test]
async fn client_that_was_closed_is_opened_again_by_initialize() {
    let fixture = HttpFixture::of_era("legacy", &json!({}));
    let client = fixture.client();
    client.initialize().await.unwrap();
    let first = client.session_id();
    for at in 0..2 {
        client.close().await.unwrap();
        assert_eq!(kind(echo(&client, "x").await), ClientErrorKind::Closed);
        client.initialize().await.unwrap();
        assert_ne!(client.session_id(), first);
        let text = format!("again-{at}");
        assert!(echo(&client, &text).await.is_ok());
        assert_eq!(fixture.executions(&text), 1);
    }
    assert_eq!(
        kind(client.initialize().await),
        ClientErrorKind::AlreadyInitialized
    );
    let unused = fixture.client();
    unused.close().await.unwrap();
    unused.initialize().await.unwrap();
    assert!(unused.session_id().is_some());
    // One that cannot be opened is not initialized.
    client.close().await.unwrap();
    fixture.script(&harness::http_script(
        "legacy",
        &json!({"rules": [{"on": {"method": "initialize"}, "do": {"status": 500}}]}),
    ));
    assert_eq!(
        kind(client.initialize().await),
        ClientErrorKind::Http { status: 500 }
    );
    assert_eq!(
        kind(echo(&client, "x").await),
        ClientErrorKind::NotInitialized
    );
}

#[tokio::test]
async fn client_refuses_arguments_that_are_not_an_object() {
    let fixture = HttpFixture::of_era("both", &json!({}));
    let client = fixture.client();
    client.initialize().await.unwrap();
    let before = fixture.requests(&json!({})).len();
    for arguments in [json!(null), json!([]), json!("{}"), json!(1), json!(true)] {
        let error = client.call_tool("echo", &arguments).await.unwrap_err();
        assert_eq!(*error.kind(), ClientErrorKind::Arguments, "{arguments}");
        assert!(!error.maybe_executed(), "{arguments}");
    }
    assert_eq!(fixture.requests(&json!({})).len(), before);
    assert!(
        client
            .call_tool("echo", &json!({"text": "x"}))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn client_says_that_nothing_was_executed_where_nothing_was_sent() {
    // No server listens at the port of a listener that has ended.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let unsent = ClientErrorKind::Unreachable {
        maybe_executed: false,
    };
    let client = HttpClient::new(&endpoint, None).unwrap();
    let error = client.initialize().await.unwrap_err();
    assert_eq!((error.kind(), error.maybe_executed()), (&unsent, false));
    let error = echo(&client, "x").await.unwrap_err();
    assert_eq!(*error.kind(), ClientErrorKind::NotInitialized);
    assert!(!error.maybe_executed());

    // The session ends, and the server is gone when the next call needs another one.
    let fixture = HttpFixture::of_era("legacy", &json!({}));
    let client = fixture.client();
    client.initialize().await.unwrap();
    assert!(echo(&client, "one").await.is_ok());
    fixture.script(&harness::http_script(
        "legacy",
        &json!({"end_sessions": 1, "rules": [{"on": {"method": "initialize"}, "do": "close"}]}),
    ));
    let error = echo(&client, "two").await.unwrap_err();
    assert_eq!(*error.kind(), unsent, "{error}");
    assert!(!error.maybe_executed());
    assert_eq!(fixture.executions("two"), 0);

    // A call that was sent may have been executed.
    let rules = json!([{"on": {"tool": "echo"}, "do": "close"}]);
    let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
    let client = fixture.client();
    client.initialize().await.unwrap();
    let error = echo(&client, "three").await.unwrap_err();
    let sent = ClientErrorKind::Unreachable {
        maybe_executed: true,
    };
    assert_eq!((error.kind(), error.maybe_executed()), (&sent, true));
}

#[tokio::test]
async fn client_reports_a_failed_tool_and_a_json_rpc_error_by_kind() {
    for era in ERAS {
        let script = json!({"era": era, "on_call": {
            "echo": {"result": {"content": [{"type": "text", "text": "no"}], "isError": true}},
        }});
        let fixture = HttpFixture::new(&script);
        let client = fixture.client();
        client.initialize().await.unwrap();
        let ClientErrorKind::Tool { result } = kind(echo(&client, "x").await) else {
            panic!("{era}: another kind")
        };
        assert_eq!(result["content"][0]["text"], "no");
        let arguments = json!({"code": -32050, "message": "why"});
        let failed = client.call_tool("rpc_fail", &arguments).await;
        let ClientErrorKind::Rpc { code, error } = kind(failed) else {
            panic!("{era}: another kind")
        };
        assert_eq!((code, &error["message"]), (-32050, &json!("why")));
    }
}

#[tokio::test]
async fn client_close_ends_the_session_once_whatever_the_server_answers() {
    for status in [204, 200, 404, 405, 500] {
        let fixture = HttpFixture::of_era("legacy", &json!({ "delete": status }));
        let client = fixture.client();
        client.initialize().await.unwrap();
        let session = client.session_id().expect("a session");
        client.close().await.unwrap();
        client.close().await.unwrap();
        assert_eq!(client.session_id(), None);
        let deleted = fixture.requests(&json!({"method": "DELETE"}));
        assert_eq!(deleted.len(), 1, "{status}");
        let headers = &deleted[0]["headers"];
        assert_eq!(headers["mcp-session-id"], json!(session));
        assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
    }
}

#[tokio::test]
async fn client_close_returns_though_the_server_does_not_answer() {
    let rules = json!([{"on": {"http_method": "DELETE"}, "do": "hang"}]);
    let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
    let client = fixture.client();
    client.initialize().await.unwrap();
    client.close().await.unwrap();
    assert_eq!(client.session_id(), None);
}

#[tokio::test]
async fn client_that_requires_a_session_is_refused_one_by_servers_without() {
    let with = HttpFixture::of_era("legacy", &json!({}));
    let client = with.client().require_session(true);
    client.initialize().await.unwrap();
    assert!(client.session_id().is_some());
    for (era, sessions) in [("legacy", false), ("modern", true)] {
        let without = HttpFixture::of_era(era, &json!({ "sessions": sessions }));
        let strict = without.client().require_session(true);
        assert_eq!(
            kind(strict.initialize().await),
            ClientErrorKind::NoSession,
            "{era}"
        );
        assert_eq!(strict.session_id(), None);
        let lenient = without.client();
        lenient.initialize().await.unwrap();
        assert!(echo(&lenient, "x").await.is_ok(), "{era}");
    }
}

#[tokio::test]
async fn client_opens_one_session_in_place_of_one_that_ended() {
    let fixture = HttpFixture::of_era("legacy", &json!({}));
    let client = fixture.client();
    client.initialize().await.unwrap();
    let first = client.session_id().expect("a session");
    let end = |number: u64| {
        let http = json!({"end_sessions": number});
        fixture.script(&harness::http_script("legacy", &http));
    };
    end(1);
    assert!(echo(&client, "one").await.is_ok());
    let second = client.session_id().expect("a session");
    assert_ne!(first, second);
    assert_eq!(fixture.executions("one"), 1);
    end(2);
    assert!(!client.list_tools().await.unwrap().is_empty());
    let opened = fixture.requests(&json!({"rpc_method": "initialize"}));
    assert_eq!(opened.len(), 3);

    // Many callers share the new session, and no call is lost.
    end(3);
    let client = std::sync::Arc::new(client);
    let calls = (0..20).map(|at| {
        let client = client.clone();
        tokio::spawn(async move { echo(&client, &format!("many-{at}")).await })
    });
    for (at, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        call.await.unwrap().unwrap();
        assert_eq!(fixture.executions(&format!("many-{at}")), 1);
    }
    let opened = fixture.requests(&json!({"rpc_method": "initialize"}));
    assert_eq!(opened.len(), 4);
    client.close().await.unwrap();
}

#[tokio::test]
async fn client_gives_up_on_a_server_that_ends_every_session() {
    let fixture = HttpFixture::with_fault("legacy", &json!({"status": 404}));
    let client = fixture.client();
    client.initialize().await.unwrap();
    assert_eq!(
        kind(echo(&client, "x").await),
        ClientErrorKind::SessionEnded
    );
    assert_eq!(fixture.executions("x"), 0);
    let opened = fixture.requests(&json!({"rpc_method": "initialize"}));
    assert_eq!(opened.len(), 2);
}

#[tokio::test]
async fn client_reads_all_pages_within_the_listing_budget() {
    let tools: Vec<_> = (0..57)
        .map(|at| json!({"name": format!("t{at}"), "inputSchema": {"type": "object"}}))
        .collect();
    for era in ERAS {
        let fixture = HttpFixture::new(&json!({"era": era, "tools": tools, "page_size": 5}));
        let client = fixture.client();
        client.initialize().await.unwrap();
        let listed = client.list_tools().await.unwrap();
        let listed: Vec<_> = listed.into_iter().map(Value::Object).collect();
        assert_eq!(listed, tools, "{era}");
        assert_eq!(fixture.events("list"), 12);
    }
    // Tools of 1 MiB each, 40 MiB in all, over the budget of 32 MiB.
    let bulk = json!({"tools": 80, "text": format!("\"{}\"", "x".repeat(1 << 10)), "times": 500});
    let fixture = HttpFixture::new(&json!({"bulk": bulk, "page_size": 4}));
    let client = fixture.client();
    client.initialize().await.unwrap();
    let error = client.list_tools().await.unwrap_err();
    assert_eq!(*error.kind(), ClientErrorKind::Protocol);
    assert!(error.to_string().contains("33554432 bytes"), "{error}");
    // A cursor that was seen before ends the list.
    let circle = HttpFixture::new(&json!({"list_loop": true, "page_size": 4}));
    let client = circle.client();
    client.initialize().await.unwrap();
    assert!(!client.list_tools().await.unwrap().is_empty());
}

#[tokio::test]
async fn client_shows_its_token_to_no_one_but_its_server() {
    let token = "canary-token-123456";
    let rules = json!([
        {"on": {"tool": "echo"}, "do": {"status": 418, "body": format!("you sent {token}")}},
        {"on": {"tool": "slow"}, "do": {"body": {"code": -32050, "message": format!("{token}!")}}},
    ]);
    let required = json!({"Authorization": format!("Bearer {token}")});
    let http = json!({"rules": rules, "require_headers": required});
    let fixture = HttpFixture::of_era("legacy", &http);
    let client = HttpClient::new(&fixture.server.url, Some(token)).unwrap();
    client.initialize().await.unwrap();
    let failed = echo(&client, "x").await.unwrap_err();
    let refused = client.call_tool("slow", &json!({"ms": 1})).await;
    let refused = refused.unwrap_err();
    assert_eq!(*failed.kind(), ClientErrorKind::Http { status: 418 });
    for shown in [
        format!("{client:?}"),
        format!("{failed:?} {failed}"),
        format!("{refused:?} {refused}"),
    ] {
        assert!(!shown.contains("canary"), "{shown}");
    }
    let wrong = HttpClient::new(&fixture.server.url, Some("canary-other")).unwrap();
    let error = wrong.initialize().await.unwrap_err();
    assert_eq!(*error.kind(), ClientErrorKind::Unauthorized);
    assert!(!format!("{error:?}").contains("canary"), "{error:?}");
}

#[test]
fn client_sends_no_token_over_plain_http_to_another_machine() {
    let refused = |endpoint: &str, token| {
        let error = HttpClient::new(endpoint, token).expect_err("it is refused");
        assert_eq!(*error.kind(), ClientErrorKind::Endpoint, "{endpoint}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("canary"), "{text}");
    };
    for endpoint in [
        "http://mcp.example.com",
        "http://10.0.0.1:80/mcp",
        "http://127.0.0.1.example.com/",
        "http://0.0.0.0:1/",
        "http://[::2]/",
    ] {
        refused(endpoint, Some("canary"));
        assert!(HttpClient::new(endpoint, None).is_ok(), "{endpoint}");
    }
    for endpoint in [
        "http://127.0.0.1:1",
        "http://localhost:1",
        "http://[::1]:1/mcp",
        "https://mcp.example.com",
    ] {
        assert!(
            HttpClient::new(endpoint, Some("canary")).is_ok(),
            "{endpoint}"
        );
    }
    for endpoint in [
        "ftp://x",
        "x",
        "https://user:canary@x/",
        "https://x/#canary",
        "https://x/ y",
    ] {
        refused(endpoint, None);
    }
    for token in ["canary\r\nX-Other: 1", "canary\n", "canary\u{e9}"] {
        refused("https://mcp.example.com", Some(token));
    }
}

#[tokio::test]
async fn client_requests_end_at_their_timeout() {
    for era in ["legacy", "modern"] {
        let fixture = HttpFixture::new(&json!({"era": era, "on_call": {"echo": "hang"}}));
        let client = fixture.client().timeout(Duration::from_secs(2));
        client.initialize().await.unwrap();
        assert_eq!(kind(echo(&client, "x").await), ClientErrorKind::Timeout);
        eventually("the call is cancelled", || fixture.events("cancelled") == 1).await;
        assert!(
            client
                .call_tool("add", &json!({"a": 1, "b": 1}))
                .await
                .is_ok()
        );
    }
    let silent = json!({"rules": [{"on": {"http_method": "POST"}, "do": "hang"}]});
    let fixture = HttpFixture::of_era("both", &silent);
    let client = fixture.client().timeout(Duration::from_secs(2));
    assert_eq!(kind(client.initialize().await), ClientErrorKind::Handshake);
}

#[tokio::test]
async fn client_of_a_server_that_cannot_be_reached_reports_it() {
    let fixture = HttpFixture::of_era("both", &json!({}));
    let client = fixture.client();
    client.initialize().await.unwrap();
    let unreached = fixture.client();
    drop(fixture.server);
    let unreachable = |maybe_executed| ClientErrorKind::Unreachable { maybe_executed };
    // The first call may be written to a connection whose end was not noticed yet.
    let first = kind(echo(&client, "x").await);
    assert!([unreachable(true), unreachable(false)].contains(&first));
    assert_eq!(kind(echo(&client, "x").await), unreachable(false));
    assert!(matches!(
        kind(unreached.initialize().await),
        ClientErrorKind::Unreachable { .. }
    ));
    client.close().await.unwrap();
}
