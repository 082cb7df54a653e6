//! Each row of the table of routes is answered as the row says.

use axum::http::Method;

use super::*;
use crate::pipeline::Credential;
use crate::routes::table::{Handler, Row, TABLE};

const METHODS: [Method; 6] = [
    Method::POST,
    Method::GET,
    Method::HEAD,
    Method::DELETE,
    Method::OPTIONS,
    Method::PUT,
];

/// Asks a route; returns the reply's head, and checks the form of an error.
async fn ask_row(
    surface: &Arc<HttpSurface<impl Broker>>,
    row: &Row,
    request: Builder,
    body: String,
) -> Response<()> {
    let request = request.body(Body::from(body)).unwrap();
    let reply = handle(surface.clone(), request, caller(surface)).await;
    let (head, body) = reply.into_parts();
    if head.status.is_client_error() {
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        let is_of_mcp = matches!(row.handler, Handler::Mcp(_));
        assert_eq!(value["error"]["code"].is_number(), is_of_mcp, "{value}");
    }
    Response::from_parts(head, ())
}

#[tokio::test]
async fn route_is_answered_as_its_row_says() {
    let surface = surface(Some("s3cret"), "127.0.0.1:1");
    for row in TABLE {
        for method in METHODS {
            let request = Request::builder()
                .method(&method)
                .uri(row.path)
                .header("host", "localhost")
                .header("origin", "http://localhost")
                .header("access-control-request-method", "POST");
            let reply = ask_row(&surface, row, request, String::new()).await;
            let status = reply.status().as_u16();
            let place = format!("{method} {}", row.path);
            if row.allows(&method) {
                let needs_credential =
                    row.credential == Credential::Needed && method != Method::OPTIONS;
                assert_eq!(status == 401, needs_credential, "{place}: {status}");
                assert_ne!(status, 405, "{place}");
            } else {
                assert_eq!(status, 405, "{place}");
                assert_eq!(reply.headers()["allow"], row.methods, "{place}");
            }
        }
        if row.allows(&Method::POST) {
            let limit = (row.body_limit)(&surface.settings.load());
            for (length, is_refused) in [(limit, false), (limit + 1, true)] {
                let request = post(row.path).header("x-api-key", "s3cret");
                let reply = ask_row(&surface, row, request, "x".repeat(length)).await;
                assert_eq!(reply.status() == 413, is_refused, "{} {length}", row.path);
            }
        }
    }
}
