//! Servers that refuse an opening request: which request follows, with which credentials, and how often.

use std::sync::atomic::{AtomicU32, Ordering};

use broker_model::SourceCause;
use broker_wire::Era;
use serde_json::{Value, json};

use super::*;
use crate::session::Session;

/// The method of a message, and its id.
fn message(request: &Request) -> (String, Value) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    (method.to_owned(), message["id"].clone())
}

fn result(id: &Value, result: Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
    Answer::of(200, body.to_string()).with("content-type", "application/json")
}

fn legacy(id: &Value) -> Answer {
    result(
        id,
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}),
    )
}

fn modern(id: &Value) -> Answer {
    result(
        id,
        json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
    )
}

/// A server whose token endpoint grants `t0ken-0`, `t0ken-1`, …; `answer` answers a method, its id and its token.
async fn granting(
    answer: impl Fn(&str, &Value, &str) -> Answer + Send + Sync + 'static,
) -> TestServer {
    let count = AtomicU32::new(0);
    TestServer::answering(move |request| {
        if request.line == "POST /token" {
            let number = count.fetch_add(1, Ordering::Relaxed);
            return grant(&format!("t0ken-{number}"), 600);
        }
        let (method, id) = message(request);
        match method.as_str() {
            "server/discover" | "initialize" => answer(&method, &id, request.authorization()),
            _ => Answer::of(202, ""),
        }
    })
    .await
}

fn of_endpoint(server: &TestServer) -> SourceSpec {
    let client = AuthSpec::ClientCredentials(credentials(server));
    source(server, Some(client))
}

/// The opening requests, each with the number of its token, and the number of grants.
fn sent(server: &TestServer) -> (Vec<String>, usize) {
    let requests = server.requests();
    let openings = requests.iter().filter_map(|request| {
        let (method, _) = message(request);
        let token = request.authorization().strip_prefix("Bearer t0ken-")?;
        matches!(method.as_str(), "server/discover" | "initialize")
            .then(|| format!("{method} {token}"))
    });
    let grants = requests.iter().filter(|one| one.line == "POST /token");
    (openings.collect(), grants.count())
}

#[tokio::test]
async fn probe_that_is_refused_alone_is_followed_by_initialize() {
    for (status, grants) in [(401, 2), (403, 2), (500, 1), (502, 1), (503, 1)] {
        let server = granting(move |method, id, _| match method {
            "initialize" => legacy(id),
            _ => Answer::of(status, "unknown method"),
        })
        .await;
        let session = Session::open(&of_endpoint(&server), None).await.unwrap();
        assert_eq!(session.era(), Era::Legacy, "{status}");
        let second = format!("initialize {}", grants - 1);
        let expected = vec!["server/discover 0".to_owned(), second];
        assert_eq!(sent(&server), (expected, grants), "{status}");
    }
}

#[tokio::test]
async fn locked_era_is_tried_first_and_needs_one_request() {
    for (era, answer) in [
        (Era::Legacy, "initialize"),
        (Era::Modern, "server/discover"),
    ] {
        let server = granting(move |method, id, _| match method {
            "initialize" => legacy(id),
            _ => modern(id),
        })
        .await;
        let session = Session::open(&of_endpoint(&server), Some(era)).await;
        assert_eq!(session.unwrap().era(), era);
        assert_eq!(sent(&server), (vec![format!("{answer} 0")], 1));
    }
}

#[tokio::test]
async fn credentials_that_are_refused_are_sent_twice_with_one_new_token() {
    for (era, first) in [
        (None, "server/discover 0"),
        (Some(Era::Modern), "server/discover 0"),
        (Some(Era::Legacy), "initialize 0"),
    ] {
        let server = granting(|_, _, _| Answer::of(401, "")).await;
        let failure = Session::open(&of_endpoint(&server), era).await.unwrap_err();
        assert_eq!(failure.cause, SourceCause::NeedsAuth, "{failure}");
        let expected = vec![first.to_owned(), "initialize 1".to_owned()];
        assert_eq!(sent(&server), (expected, 2), "{era:?}");
    }
}

#[tokio::test]
async fn modern_server_is_asked_again_after_a_token_that_was_not_valid() {
    let server = granting(|method, id, token| match (method, token) {
        (_, "Bearer t0ken-0") => Answer::of(401, ""),
        ("server/discover", _) => modern(id),
        _ => Answer::of(400, ""),
    })
    .await;
    let session = Session::open(&of_endpoint(&server), None).await.unwrap();
    assert_eq!(session.era(), Era::Modern);
    let expected = ["server/discover 0", "initialize 1", "server/discover 1"];
    assert_eq!(sent(&server), (expected.map(str::to_owned).to_vec(), 2));
}

#[tokio::test]
async fn pause_that_a_probe_names_is_a_verdict() {
    let server = granting(|_, _, _| Answer::of(503, "").with("retry-after", "7")).await;
    let failure = Session::open(&of_endpoint(&server), None)
        .await
        .unwrap_err();
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(sent(&server).0, ["server/discover 0"]);
}

#[tokio::test]
async fn refused_probe_is_named_in_the_error_of_the_start() {
    for (status, cause) in [
        (401, SourceCause::NeedsAuth),
        (500, SourceCause::Unreachable),
    ] {
        let server = granting(move |method, id, _| match method {
            "initialize" => result(id, json!({"protocolVersion": "1.0"})),
            _ => Answer::of(status, "the gateway's words"),
        })
        .await;
        let failure = Session::open(&of_endpoint(&server), None)
            .await
            .unwrap_err();
        assert_eq!(failure.cause, SourceCause::HandshakeFailed, "{failure}");
        for part in [
            "the server chose the revision `1.0`",
            "before that, the server refused `server/discover`: ",
            &status.to_string(),
        ] {
            assert!(failure.message.contains(part), "{failure}");
        }
        let server = granting(move |method, _, _| match method {
            "initialize" => Answer::of(422, ""),
            _ => Answer::of(status, ""),
        })
        .await;
        let failure = Session::open(&source(&server, None), None)
            .await
            .unwrap_err();
        assert_eq!(failure.cause, cause, "{failure}");
        assert!(failure.message.contains("before that"), "{failure}");
    }
}
