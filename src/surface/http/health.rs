//! The health routes: what a balancer, a person and a dashboard ask. Rendered here because how much
//! is shown depends on who asks and from where.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::respond::Answer;
use super::route::Route;
use crate::core::Health;

/// How much the asker is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Everything.
    Whole,
    /// The status code and states only: no name, no version, no reason.
    StateOnly,
}

/// The answer of a health route. `closing` makes a ready broker not ready.
pub(super) fn answer(route: Route, view: View, mut health: Health, closing: bool) -> Answer {
    health.ready &= !closing;
    let status = if route == Route::Ready && !health.ready {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    let body = match (route, view) {
        (Route::Ready, View::Whole) => {
            serde_json::to_string(&health).expect("names and numbers always serialize")
        }
        (Route::Ready, View::StateOnly) => json!({ "ready": health.ready }).to_string(),
        (Route::Sources, _) => json!({ "sources": sources(view, &health) }).to_string(),
        (_, View::Whole) => json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "catalog_digest": health.catalog_digest,
        })
        .to_string(),
        (_, View::StateOnly) => json!({ "status": "ok" }).to_string(),
    };
    Answer {
        status,
        body: body.into(),
        etag: None,
    }
}

fn sources(view: View, health: &Health) -> Value {
    let sources = &health.sources;
    match view {
        View::Whole => json!(sources),
        View::StateOnly => sources
            .iter()
            .map(|source| json!({ "state": source.state }))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::SourceHealth;

    fn body(route: Route, view: View, closing: bool) -> (u16, String) {
        let health = Health {
            ready: true,
            catalog_digest: "sha256/1:00",
            sources: vec![SourceHealth {
                path: "/a",
                state: "backoff",
                cause: Some("exited"),
                since: "2026-01-01T00:00:00Z".to_owned(),
                tools: 2,
                withdrawn: 1,
            }],
        };
        let answer = answer(route, view, health, closing);
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        (answer.status.as_u16(), body)
    }

    #[test]
    fn a_stranger_sees_states_only() {
        for route in [Route::Health, Route::Ready, Route::Sources] {
            let (_, body) = body(route, View::StateOnly, false);
            for hidden in ["sha256", "/a", "exited", env!("CARGO_PKG_VERSION"), "2026"] {
                assert!(!body.contains(hidden), "{body}");
            }
        }
    }

    #[test]
    fn the_whole_view_and_the_end() {
        assert_eq!(
            body(Route::Ready, View::Whole, false),
            (200, r#"{"ready":true,"catalog_digest":"sha256/1:00","sources":[{"path":"/a","state":"backoff","cause":"exited","since":"2026-01-01T00:00:00Z","tools":2,"withdrawn":1}]}"#.to_owned())
        );
        assert_eq!(
            body(Route::Ready, View::StateOnly, true),
            (503, r#"{"ready":false}"#.to_owned())
        );
        assert_eq!(body(Route::Health, View::Whole, true).0, 200);
    }
}
