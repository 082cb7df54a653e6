//! Redirects: which are followed, and that another origin gets no request at all.

use broker_mcp::{CallFailure, Session};
use broker_model::SourceCause;
use harness::{Chaos, ChaosServer, http_script};
use serde_json::{Value, json};

use super::{HttpFixture, NAME, echo, spec_of};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// A rule by which this path redirects.
fn redirect(path: &str, status: u16, target: &str) -> Value {
    json!({"on": {"path": path}, "do": {"status": status, "headers": {"Location": target}}})
}

/// The URL of a path of the fixture's server.
fn url(fixture: &HttpFixture, path: &str) -> String {
    format!("http://{}{path}", fixture.server.address)
}

#[tokio::test]
async fn redirect_307_or_308_within_the_origin_is_followed_with_the_body() {
    for era in ERAS {
        for status in [307, 308] {
            let rules = json!([
                redirect("/first", status, "/second?x=1"),
                redirect("/second", status, "$ORIGIN/third"),
                redirect("/third", status, "mcp"),
            ]);
            let fixture = HttpFixture::of_era(era, &json!({ "rules": rules }));
            let session = Session::open(&spec_of(&url(&fixture, "/first")), None).await;
            let session = session.expect("three redirects are followed");
            let answer = echo(&session, "kept").await.unwrap();
            assert!(answer.contains("kept"), "{answer}");
            assert_eq!(fixture.executions("kept"), 1);
            let calls = fixture.requests(&json!({"rpc_method": "tools/call"}));
            let paths: Vec<_> = calls.iter().map(|call| &call["path"]).collect();
            assert_eq!(paths, ["/first", "/second?x=1", "/third", "/mcp"], "{era}");
            let bodies: Vec<_> = calls.iter().map(|call| &call["body_bytes"]).collect();
            assert!(bodies.iter().all(|bytes| bytes == &bodies[0]));
            session.stop().await;
        }
    }
}

#[tokio::test]
async fn redirect_in_a_circle_is_given_up_after_three() {
    for era in ERAS {
        let fixture = HttpFixture::of_era(era, &json!({}));
        let session = fixture.session().await;
        let before = fixture.requests(&json!({})).len();
        let rules = json!({"rules": [redirect("/mcp", 307, "/mcp")]});
        fixture.script(&http_script(era, &rules));
        let failure = echo(&session, "x").await.unwrap_err();
        assert!(
            matches!(
                failure,
                CallFailure::Http {
                    status: 307,
                    maybe_executed: false
                }
            ),
            "{failure:?}"
        );
        let calls = fixture.requests(&json!({"rpc_method": "tools/call"}));
        assert_eq!(calls.len(), 4, "one request and three redirects");
        assert!(fixture.requests(&json!({})).len() <= before + 4 + 4);
        fixture.script(&http_script(era, &json!({})));
        assert!(
            echo(&session, "x").await.is_ok(),
            "{era}: it does not count"
        );
    }
}

/// The targets of redirects to other origins; `other` is the address of another server.
fn other_origins(fixture: &HttpFixture, other: &str) -> Vec<String> {
    let port = fixture.server.port();
    vec![
        format!("http://{other}/mcp"),
        format!("//{other}/mcp"),
        format!("http://localhost:{port}/mcp"),
        format!("https://127.0.0.1:{port}/mcp"),
        format!("http://user:password@127.0.0.1:{port}/mcp"),
        format!("http://127.0.0.1:{port}@{other}/mcp"),
        format!("\\\\{other}/mcp"),
        "file:///etc/passwd".to_owned(),
        "javascript:alert(1)".to_owned(),
        "http://[broken".to_owned(),
    ]
}

#[tokio::test]
async fn redirect_to_another_origin_sends_nothing_there() {
    let chaos = Chaos::new();
    let other = ChaosServer::start(&chaos, NAME);
    for era in ERAS {
        let fixture = HttpFixture::of_era(era, &json!({}));
        let session = fixture.session().await;
        for target in other_origins(&fixture, &other.address) {
            for status in [301, 302, 303, 307, 308] {
                let before = fixture.requests(&json!({"rpc_method": "tools/call"})).len();
                let rules = json!({"rules": [redirect("/mcp", status, &target)]});
                fixture.script(&http_script(era, &rules));
                let failure = echo(&session, "x").await.unwrap_err();
                let CallFailure::Http {
                    status: found,
                    maybe_executed,
                } = failure
                else {
                    panic!("{era}: {status} to {target}: {failure:?}")
                };
                assert_eq!((found, maybe_executed), (status, status == 303));
                let after = fixture.requests(&json!({"rpc_method": "tools/call"})).len();
                assert_eq!(after, before + 1, "{era}: {status} to {target}");
            }
        }
        fixture.script(&http_script(era, &json!({})));
        assert!(echo(&session, "x").await.is_ok(), "{era}");
        session.stop().await;
    }
    assert_eq!(chaos.requests(NAME, &json!({})), [] as [Value; 0]);
}

#[tokio::test]
async fn redirect_301_302_or_303_within_the_origin_is_not_followed() {
    for status in [301, 302, 303, 300, 305] {
        let rules = json!([redirect("/first", status, "/mcp")]);
        let fixture = HttpFixture::of_era("both", &json!({ "rules": rules }));
        let opened = Session::open(&spec_of(&url(&fixture, "/first")), None).await;
        let failure = opened.expect_err("the handshake fails");
        assert_eq!(failure.cause, SourceCause::Unreachable, "{failure}");
        for part in [
            &*format!("redirects with {status}"),
            "put it into the config",
        ] {
            assert!(failure.message.contains(part), "{failure}");
        }
        assert_eq!(fixture.requests(&json!({"path": "/mcp"})), [] as [Value; 0]);
    }
}

#[tokio::test]
async fn redirect_of_a_handshake_names_the_origin_and_no_more_of_the_url() {
    let rules = json!([redirect(
        "/mcp",
        308,
        "https://other.example/x?token=canary#canary"
    )]);
    let fixture = HttpFixture::of_era("both", &json!({ "rules": rules }));
    let opened = Session::open(&fixture.spec(), None).await;
    let failure = opened.expect_err("the handshake fails");
    assert!(
        failure.message.contains("`https://other.example`"),
        "{failure}"
    );
    assert!(!failure.message.contains("canary"), "{failure}");
}
