//! Listings with odd tools over each transport of HTTP.

use broker_mcp::Carrier;
use broker_model::LeftOutCode;
use harness::{Chaos, http_script};
use serde_json::{Value, json};

use super::{HttpFixture, echo};

/// The eras with the members of `http` for each transport.
fn transports() -> [(&'static str, Value, Carrier); 3] {
    [
        ("legacy", json!({}), Carrier::StreamableHttp),
        ("modern", json!({}), Carrier::StreamableHttp),
        ("legacy", json!({"transport": "sse"}), Carrier::HttpSse),
    ]
}

#[tokio::test]
async fn odd_tool_over_http_is_left_out_alone() {
    for (era, http, carrier) in transports() {
        let mut script = http_script(era, &http);
        let mut tools = Chaos::tools();
        tools.insert(0, json!({"name": "null", "description": null}));
        tools.insert(0, json!({"name": "odd", "description": 7}));
        tools.insert(0, json!({"name": 7}));
        script["tools"] = json!(tools);
        let fixture = HttpFixture::new(&script);
        let session = fixture.session().await;
        assert_eq!(session.carrier(), carrier);
        let snapshot = session.snapshot().await.expect("a listing");
        assert_eq!(snapshot.tools.len(), Chaos::tools().len() + 1, "{era}");
        let codes: Vec<_> = snapshot.left_out.iter().map(|part| part.code).collect();
        assert_eq!(
            codes,
            [LeftOutCode::NameInvalid, LeftOutCode::MemberInvalid],
            "{era}"
        );
        assert!(echo(&session, "x").await.is_ok(), "{era}");
        session.stop().await;
    }
}

#[tokio::test]
async fn cursor_that_does_not_advance_over_http_ends_the_list() {
    for (era, http, _) in transports() {
        let mut script = http_script(era, &http);
        script["list_loop"] = json!(true);
        let fixture = HttpFixture::new(&script);
        let session = fixture.session().await;
        let snapshot = session.snapshot().await.expect("a listing");
        assert_eq!(snapshot.tools.len(), Chaos::tools().len(), "{era}");
        assert!(snapshot.warnings[0].contains("`again`"), "{era}");
        assert!(snapshot.left_out.is_empty(), "{era}");
        session.stop().await;
    }
}
