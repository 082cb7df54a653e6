//! Complete requests through the handler, over a core without sources: the order of the checks, and the
//! headers of every reply.

mod long_call;
mod mcp;
mod metrics;
mod page;
mod routes;
mod silence;
mod slow_reader;
mod sse;

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use axum::http::request::Builder;
use broker_config::Config;
use broker_mcp::Environment;
use serde_json::Value;

use mcp::initialized;

use super::*;
use crate::listener::Caller;
use crate::listener_role::ListenerRole;
use crate::routes::handle;
use broker_core::catalog::{Catalog, Entry, EntryKind, FORMAT, Span};
use broker_core::{Core, StartMode};
use broker_surface_mcp::{ClientView, McpSettings};

/// A surface over a core without sources, whose tree is one node with this summary.
fn surface_with(summary: &str, secret: Option<&str>, address: &str) -> Arc<HttpSurface<Core>> {
    let head = format!(r#"{{"path":"/","type":"node","summary":"{summary}""#);
    let span = |len: usize| Span {
        at: 0,
        len: len as u32,
    };
    let text: &'static str = format!(r#"{head},"children":[]}}"#).leak();
    let entry = Entry {
        path: "/",
        words: "\t",
        kind: EntryKind::Node {
            children: &[],
            tree: span(text.len()),
            tree_etag: "\"e\"",
        },
        head: span(head.len()),
        desc: span(text.len()),
        desc_head: span(head.len()),
        desc_etag: "\"d\"",
    };
    let catalog: &'static Catalog = Box::leak(Box::new(Catalog {
        format: FORMAT,
        catalog_digest: "sha256/1:00",
        root_digest: "",
        config_digest: "",
        config_name: "c.json",
        config: r#"{"tree":[]}"#,
        blob: text,
        entries: Box::leak(Box::new([entry])),
        items: &[],
        flat_order: &[],
        sources: &[],
        access: None,
        search: broker_core::catalog::SearchTables::EMPTY,
    }));
    let config = Config::parse("c.json", catalog.config.as_bytes())
        .unwrap()
        .config;
    let core = Core::builder(catalog)
        .config(&config, Path::new("."))
        .environment(&Environment::new(Default::default(), None))
        .mode(StartMode::Tolerant)
        .build()
        .unwrap();
    surface_over(core, secret, address)
}

/// The settings of MCP clients.
fn surface_settings() -> McpSettings {
    McpSettings {
        view: ClientView::default(),
        list_changed_exec: None,
        legacy_sessions: broker_config::LegacySessions::Kept,
        session_idle: Duration::from_secs(60),
        serves_v1: true,
        serves_sse: true,
        base_path: String::new(),
        body_bytes: 400,
        event_bytes: 1 << 20,
    }
}

/// A surface over a broker.
fn surface_over<B: Broker>(core: B, secret: Option<&str>, address: &str) -> Arc<HttpSurface<B>> {
    let settings = HttpSettings {
        hosts: HostPolicy::default(),
        body_bytes: 100,
        mcp: surface_settings(),
        callers: CallerSettings::default(),
        idle_timeout: Duration::from_secs(75),
        base_paths: BasePaths::default(),
        page: PageSettings::default(),
    };
    let access = HttpAccess {
        secret: secret.map(Secret::new),
        key_header: Some(HeaderName::from_static("x-broker-key")),
        mcp: true,
        observers: broker_observe::Observers::default(),
    };
    Arc::new(HttpSurface::new(
        core,
        settings,
        access,
        address.parse().unwrap(),
    ))
}

fn surface(secret: Option<&str>, address: &str) -> Arc<HttpSurface<Core>> {
    surface_with("All", secret, address)
}

fn caller(surface: &HttpSurface<impl Broker>) -> Caller {
    let address = Ipv4Addr::LOCALHOST.into();
    let (peer, _) = surface.peers().connect(address).unwrap();
    Caller::new(peer, address, ListenerRole::Broker)
}

fn post(path: &str) -> Builder {
    Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
}

fn get(path: &str) -> Builder {
    Request::get(path).header("host", "localhost")
}

/// Status, code (or an empty text), and the reply's head.
async fn ask(
    surface: &Arc<HttpSurface<impl Broker>>,
    request: Builder,
    body: &str,
) -> (u16, String, Response<()>) {
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let (head, body) = handle(surface.clone(), request, caller(surface))
        .await
        .into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    let id = head.headers["x-request-id"].to_str().unwrap();
    assert_eq!(head.headers["x-catalog-digest"], "sha256/1:00");
    let code = match value.get("error") {
        Some(error) => {
            assert_eq!(error["request_id"], id);
            error["code"].as_str().unwrap().to_owned()
        }
        None => String::new(),
    };
    (head.status.as_u16(), code, Response::from_parts(head, ()))
}

async fn code(surface: &Arc<HttpSurface<impl Broker>>, request: Builder, body: &str) -> String {
    ask(surface, request, body).await.1
}

#[tokio::test]
async fn request_checks_run_in_their_stated_order() {
    let surface = surface(Some("s3cret"), "127.0.0.1:1");
    let long = "x".repeat(101);
    // Each request has all later faults; without the first fault the next one is reported.
    let bare = || Request::put("/nowhere?token=1").header("host", "evil.com");
    let from = |request: Builder| request.header("origin", "null");
    assert_eq!(code(&surface, from(bare()), &long).await, "host_forbidden");
    let local = |method: &str, uri: &str| {
        Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "localhost")
    };
    assert_eq!(
        code(&surface, from(local("PUT", "/x?token=1")), &long).await,
        "origin_forbidden"
    );
    assert_eq!(
        code(&surface, local("PUT", "/x?token=1"), &long).await,
        "route_not_found"
    );
    let (status, code_, head) = ask(&surface, local("PUT", "/meta_call?token=1"), &long).await;
    assert_eq!((status, code_.as_str()), (405, "method_not_allowed"));
    assert_eq!(head.headers()["allow"], "POST");
    assert_eq!(
        code(&surface, local("POST", "/meta_call?token=1"), &long).await,
        "header_invalid"
    );
    let (status, code_, head) = ask(&surface, local("POST", "/meta_call"), &long).await;
    assert_eq!((status, code_.as_str()), (401, "unauthorized"));
    assert_eq!(head.headers()["www-authenticate"], "Bearer");
    assert_eq!(
        head.headers()["connection"],
        "close",
        "an unread body ends the connection"
    );
    let known = || local("POST", "/meta_call").header("x-api-key", "s3cret");
    assert_eq!(code(&surface, known(), &long).await, "content_type");
    let json = || known().header("content-type", "application/json");
    assert_eq!(code(&surface, json(), &long).await, "body_too_large");
    assert_eq!(code(&surface, json(), "{\"argz\":1").await, "json_invalid");
    assert_eq!(
        code(&surface, json(), "{\"argz\":1}").await,
        "field_unknown"
    );
    assert_eq!(code(&surface, json(), "{\"args\":1}").await, "path_invalid");
    assert_eq!(
        code(&surface, json(), "{\"path\":\"/a\",\"args\":1}").await,
        "field_invalid"
    );
    assert_eq!(
        code(&surface, json(), "{\"path\":\"/a\"}").await,
        "path_not_found"
    );
}

#[tokio::test]
async fn listing_reply_has_its_etag() {
    let surface = surface(None, "127.0.0.1:1");
    let (status, _, head) = ask(&surface, post("/meta_tree"), "{}").await;
    assert_eq!(
        (status, &head.headers()["etag"]),
        (200, &HeaderValue::from_static("\"e\""))
    );
    let same = post("/meta_tree").header("if-none-match", "\"e\"");
    assert_eq!(ask(&surface, same, "{}").await.0, 200, "the calls are POST");
    let (status, _, head) = ask(&surface, post("/meta_desc"), r#"{"path":"/"}"#).await;
    assert_eq!(
        (status, &head.headers()["etag"]),
        (200, &HeaderValue::from_static("\"d\""))
    );
    let (status, ..) = ask(&surface, post("/meta_desc"), r#"{"paths":["/","/no"]}"#).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn health_without_the_secret_shows_states_only_on_every_address() {
    for (secret, address, whole) in [
        (Some("s3cret"), "127.0.0.1:1", false),
        (Some("s3cret"), "0.0.0.0:1", false),
        (None, "127.0.0.1:1", true),
        (None, "0.0.0.0:1", false),
    ] {
        let surface = surface(secret, address);
        for (request, shown) in [
            (get("/healthz"), whole),
            (
                get("/healthz").header("authorization", "Bearer s3cret"),
                whole || secret.is_some(),
            ),
        ] {
            let request = request.body(Body::empty()).unwrap();
            let body = handle(surface.clone(), request, caller(&surface))
                .await
                .into_body();
            let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(value["status"], "ok");
            assert_eq!(value.get("version").is_some(), shown, "{address} {value}");
        }
    }
}

#[tokio::test]
async fn request_during_the_drain_is_refused_and_closes_the_connection() {
    let surface = surface(None, "127.0.0.1:1");
    surface.drain.begin_draining();
    let (status, code, head) = ask(&surface, post("/meta_tree"), "{}").await;
    assert_eq!((status, code.as_str()), (503, "shutting_down"));
    assert_eq!(head.headers()["connection"], "close");
    assert!(head.headers().contains_key("retry-after"));
    assert_eq!(ask(&surface, get("/readyz"), "").await.0, 503);
    assert_eq!(ask(&surface, get("/healthz"), "").await.0, 200);
}
