//! Callers at many addresses that begin sessions without end.

use std::net::IpAddr;

use axum::http::HeaderMap;

use super::*;
use broker_core::Broker;

/// As many sessions as the callers at one address may have, and as the table has.
const SHARE: usize = 100;
const TABLE: usize = 10_000;

fn address(number: usize) -> IpAddr {
    let [.., high, low] = number.to_be_bytes();
    IpAddr::from([192, 0, high, low])
}

/// Sends a request from an address; returns the status, the headers and the body of the reply.
async fn send_from(
    surface: &Arc<HttpSurface<impl Broker>>,
    address: IpAddr,
    request: Builder,
    body: &str,
) -> (u16, HeaderMap, Value) {
    let caller = Caller {
        address,
        ..caller(surface)
    };
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let reply = handle(surface.clone(), request, caller).await;
    let (head, body) = reply.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let value = serde_json::from_slice(&bytes).unwrap_or_default();
    (head.status.as_u16(), head.headers, value)
}

/// Begins a session; the id in its reply, or the reply of a refusal.
async fn begin(
    surface: &Arc<HttpSurface<impl Broker>>,
    address: IpAddr,
) -> Result<String, (u16, HeaderMap, Value)> {
    let reply = send_from(surface, address, post("/mcp"), INITIALIZE).await;
    match reply.1.get("mcp-session-id") {
        Some(id) => Ok(id.to_str().unwrap().to_owned()),
        None => Err(reply),
    }
}

async fn ping(surface: &Arc<HttpSurface<impl Broker>>, address: IpAddr, session: &str) -> u16 {
    let request = post("/mcp").header("mcp-session-id", session);
    send_from(surface, address, request, PING).await.0
}

fn count(surface: &HttpSurface<impl Broker>) -> usize {
    surface.mcp.as_ref().unwrap().session_count()
}

#[tokio::test]
async fn flood_from_one_address_ends_no_session_of_another() {
    let surface = surface(None, "192.0.2.1:1");
    let own = begin(&surface, address(1)).await.unwrap();
    let mut flood = Vec::new();
    for _ in 0..10 * SHARE {
        flood.push(begin(&surface, address(2)).await.unwrap());
    }
    assert_eq!(count(&surface), 1 + SHARE);
    assert_eq!(ping(&surface, address(1), &own).await, 200);
    assert_eq!(ping(&surface, address(2), &flood[0]).await, 404);
    let last = flood.last().unwrap();
    assert_eq!(ping(&surface, address(2), last).await, 200);
}

#[tokio::test(start_paused = true)]
async fn full_table_ends_the_longest_idle_session_of_the_caller_with_the_most() {
    let surface = surface(None, "192.0.2.1:1");
    let own = begin(&surface, address(0)).await.unwrap();
    let mut first = String::new();
    for number in 1..TABLE {
        // The caller 1 has as many sessions as it may have, the others fewer.
        let caller = match number <= SHARE {
            true => 1,
            false => 2 + number / (SHARE / 2),
        };
        let session = begin(&surface, address(caller)).await.unwrap();
        if number == 1 {
            first = session;
        }
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!(count(&surface), TABLE);
    let new = begin(&surface, address(TABLE)).await.unwrap();
    assert_eq!(count(&surface), TABLE);
    assert_eq!(ping(&surface, address(1), &first).await, 404);
    assert_eq!(ping(&surface, address(TABLE), &new).await, 200);
    // Neither sessions that exist nor requests without one depend on the table.
    assert_eq!(ping(&surface, address(0), &own).await, 200);
    let list = modern_body("tools/list");
    let (status, ..) = send_from(&surface, address(TABLE), modern("tools/list"), &list).await;
    assert_eq!(status, 200);
    let (status, ..) = send_from(&surface, address(TABLE), post("/meta_tree"), "{}").await;
    assert_eq!(status, 200);

    let endpoint = surface.mcp.as_ref().unwrap();
    let sweep = endpoint.keep_swept(|| Duration::from_secs(60));
    let swept = tokio::time::timeout(Duration::from_secs(120), sweep).await;
    assert!(swept.is_err(), "it sweeps as long as the broker runs");
    assert_eq!(count(&surface), 0);
    assert_eq!(surface.broker.services().memory().used(), 0);
    assert!(begin(&surface, address(TABLE)).await.is_ok());
}
