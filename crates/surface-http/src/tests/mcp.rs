//! Complete requests of MCP clients through the handler: the order of the checks, and the headers of every
//! reply.

mod sessions;

use serde_json::json;

use super::*;
use broker_core::{Broker, RequestId};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

struct Reply {
    status: u16,
    headers: axum::http::HeaderMap,
    text: String,
}

impl Reply {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// The code of the JSON-RPC error, or 0.
    fn code(&self) -> i64 {
        let value: Value = serde_json::from_str(&self.text).unwrap_or_default();
        value["error"]["code"].as_i64().unwrap_or(0)
    }
}

async fn send(surface: &Arc<HttpSurface<impl Broker>>, request: Builder, body: &str) -> Reply {
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let (head, body) = handle(surface.clone(), request, caller(surface))
        .await
        .into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    assert!(head.headers.contains_key("x-request-id"));
    Reply {
        status: head.status.as_u16(),
        headers: head.headers,
        text: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

pub(super) async fn initialized(surface: &Arc<HttpSurface<impl Broker>>) -> String {
    let reply = send(surface, post("/mcp"), INITIALIZE).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.header("mcp-session-id").to_owned()
}

fn modern(method: &'static str) -> Builder {
    post("/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
}

fn modern_body(method: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}).to_string()
}

#[tokio::test]
async fn mcp_request_checks_run_in_their_stated_order() {
    let surface = surface(Some("s3cret"), "127.0.0.1:1");
    let long = "x".repeat(401);
    let foreign = Request::put("/mcp?token=1").header("host", "evil.com");
    assert_eq!(send(&surface, foreign, &long).await.status, 403);
    let page = post("/mcp").header("origin", "https://evil.example");
    let refused = send(&surface, page, PING).await;
    assert_eq!(
        (
            refused.status,
            refused.header("access-control-allow-origin")
        ),
        (403, "")
    );
    let local = |method: &str, uri: &str| {
        Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "localhost")
    };
    let wrong = send(&surface, local("PUT", "/mcp?token=1"), &long).await;
    assert_eq!(
        (wrong.status, wrong.header("allow")),
        (405, "POST, GET, DELETE, OPTIONS")
    );
    assert_eq!(
        send(&surface, local("POST", "/mcp?token=1"), &long)
            .await
            .status,
        400
    );
    let unknown = send(&surface, local("POST", "/mcp"), &long).await;
    assert_eq!(
        (unknown.status, unknown.header("www-authenticate")),
        (401, "Bearer")
    );
    let known = || local("POST", "/mcp").header("x-broker-key", "s3cret");
    assert_eq!(send(&surface, known(), &long).await.status, 415);
    let json = || known().header("content-type", "application/json");
    let large = send(&surface, json(), &long).await;
    assert_eq!((large.status, large.code()), (413, -32600));
    let error: Value = serde_json::from_str(&large.text).unwrap();
    assert_eq!(error["error"]["data"], json!({"limit": 400}));
    let none = send(&surface, json().header("accept", "text/html"), PING).await;
    assert_eq!((none.status, none.code()), (406, -32600));
    let broken = send(&surface, json(), "{").await;
    assert_eq!((broken.status, broken.code()), (400, -32700));
    assert_eq!(send(&surface, json(), INITIALIZE).await.status, 200);
}

#[tokio::test]
async fn legacy_session_lives_from_initialize_to_delete() {
    let surface = surface(None, "127.0.0.1:1");
    let without = send(&surface, post("/mcp"), PING).await;
    assert_eq!((without.status, without.code()), (400, -32600));
    assert!(without.text.contains("initialize"), "{}", without.text);
    let session = initialized(&surface).await;
    let of_session = |request: Builder| request.header("mcp-session-id", &session);
    let ping = send(&surface, of_session(post("/mcp")), PING).await;
    assert_eq!(
        (ping.status, ping.text.as_str()),
        (200, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
    );
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let accepted = send(&surface, of_session(post("/mcp")), initialized).await;
    assert_eq!((accepted.status, accepted.text.as_str()), (202, ""));
    let again = send(&surface, of_session(post("/mcp")), INITIALIZE).await;
    assert_eq!((again.status, again.code()), (400, -32600));
    let version = of_session(post("/mcp")).header("mcp-protocol-version", "1999-01-01");
    assert_eq!(send(&surface, version, PING).await.status, 400);
    let deleted = Request::delete("/mcp").header("host", "localhost");
    assert_eq!(send(&surface, of_session(deleted), "").await.status, 204);
    let ended = send(&surface, of_session(post("/mcp")), PING).await;
    assert_eq!((ended.status, ended.code()), (404, -32600));
    assert_eq!(surface.mcp.as_ref().unwrap().session_count(), 0);
}

#[tokio::test]
async fn session_id_that_was_guessed_creates_nothing() {
    let surface = surface(None, "127.0.0.1:1");
    initialized(&surface).await;
    for guess in ["s1-00000000000000000000000000000000", "x", "1", ""] {
        let request = post("/mcp").header("mcp-session-id", guess);
        assert_eq!(send(&surface, request, PING).await.status, 404, "{guess}");
        let request = post("/mcp").header("mcp-session-id", guess);
        assert_eq!(
            send(&surface, request, INITIALIZE).await.status,
            404,
            "{guess}"
        );
    }
    assert_eq!(surface.mcp.as_ref().unwrap().session_count(), 1);
}

#[tokio::test]
async fn session_of_another_identity_is_unknown() {
    let anonymous = surface(None, "127.0.0.1:1");
    let session = initialized(&anonymous).await;
    let endpoint = anonymous.mcp.as_ref().unwrap();
    let (parts, ()) = post("/mcp")
        .header("mcp-session-id", &session)
        .body(())
        .unwrap()
        .into_parts();
    let account = anonymous.broker.services().memory().account();
    let settings = anonymous.settings.load_full();
    for (identity, status) in [
        (broker_core::Identity::secret(), 404),
        (broker_core::Identity::anonymous(), 200),
    ] {
        let request = broker_surface_mcp::http::McpRequest {
            parts: &parts,
            route: broker_surface_mcp::http::ModeRoute::Configured,
            settings: &settings.mcp,
            identity,
            account: account.clone(),
            address: Ipv4Addr::LOCALHOST.into(),
            peer: Ipv4Addr::LOCALHOST.into(),
            port: None,
            request_id: RequestId::new(&["r-1"]),
            stream: None,
        };
        let reply = endpoint.message(&request, PING.as_bytes().into()).await;
        assert_eq!(reply.unwrap().status(), status);
    }
}

#[tokio::test]
async fn simplest_initialize_is_answered_as_json_with_a_session() {
    let surface = surface(None, "127.0.0.1:1");
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
    let reply = send(&surface, post("/mcp"), bare).await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, "application/json")
    );
    assert!(
        reply.text.contains(r#""protocolVersion":"2025-06-18""#),
        "{}",
        reply.text
    );
    assert!(reply.header("mcp-session-id").starts_with("s1-"));
}

#[tokio::test]
async fn modern_request_needs_headers_that_agree_with_its_message() {
    let surface = surface(None, "127.0.0.1:1");
    let list = modern_body("tools/list");
    let plain = || post("/mcp").header("mcp-protocol-version", "2026-07-28");
    assert_eq!(
        send(&surface, modern("tools/list"), &list).await.status,
        200
    );
    let status_and_code = async |request: Builder, body: &str| {
        let reply = send(&surface, request, body).await;
        (reply.status, reply.code())
    };
    assert_eq!(
        status_and_code(post("/mcp"), &list).await,
        (400, -32020),
        "no version"
    );
    assert_eq!(
        status_and_code(plain(), &list).await,
        (400, -32020),
        "no method"
    );
    assert_eq!(
        status_and_code(modern("tools/call"), &list).await,
        (400, -32020)
    );
    let other = post("/mcp").header("mcp-protocol-version", "2025-11-25");
    assert_eq!(
        status_and_code(other, &list).await,
        (400, -32020),
        "another version"
    );
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(
        status_and_code(modern("tools/list"), bare).await,
        (400, -32602),
        "no _meta"
    );
    let future = list.replace("2026-07-28", "2030-01-01");
    let version = post("/mcp").header("mcp-protocol-version", "2030-01-01");
    assert_eq!(status_and_code(version, &future).await, (400, -32022));
    for removed in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
    ] {
        let body = modern_body(removed);
        assert_eq!(
            status_and_code(modern(removed), &body).await,
            (404, -32601),
            "{removed}"
        );
    }
    let get = Request::get("/mcp")
        .header("host", "localhost")
        .header("mcp-protocol-version", "2026-07-28");
    let refused = send(&surface, get, "").await;
    assert_eq!((refused.status, refused.header("allow")), (405, "POST"));
    assert_eq!(surface.mcp.as_ref().unwrap().session_count(), 0);
}

#[tokio::test]
async fn page_of_an_admitted_origin_may_read_every_reply() {
    let surface = surface(Some("s3cret"), "127.0.0.1:1");
    let origin = "http://localhost:6274";
    for (request, status) in [
        (
            Request::options("/mcp").header("access-control-request-method", "POST"),
            204,
        ),
        (
            Request::post("/mcp").header("content-type", "application/json"),
            401,
        ),
        (Request::get("/mcp"), 401),
    ] {
        let request = request.header("host", "localhost").header("origin", origin);
        let reply = send(&surface, request, PING).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), origin);
        assert_eq!(reply.header("vary"), "Origin");
        assert_eq!(reply.header("access-control-allow-credentials"), "");
    }
}

#[tokio::test]
async fn part_of_the_tree_that_does_not_exist_is_refused() {
    let surface = surface(None, "127.0.0.1:1");
    for (query, status) in [("under=/nowhere", 404), ("udner=/", 400), ("under=/", 200)] {
        let reply = send(&surface, post(&format!("/mcp?{query}")), INITIALIZE).await;
        assert_eq!(reply.status, status, "{query}: {}", reply.text);
    }
}
