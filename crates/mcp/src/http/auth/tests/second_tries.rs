//! Servers whose known era fails once or always: how often they are asked, when, and what is named.

use std::sync::Mutex;

use broker_model::SourceCause;
use broker_wire::Era;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::EraHint;
use crate::session::Session;

/// The methods of the opening requests, in order.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server that answers its opening requests with these in order, and with `initialize` when there are no more.
async fn server(answers: Vec<Answer>) -> (TestServer, Asked) {
    let asked = Asked::default();
    let (seen, answers) = (asked.clone(), Mutex::new(answers.into_iter()));
    let server = TestServer::answering(move |request| {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        if !matches!(method, "server/discover" | "initialize") {
            return Answer::of(202, "");
        }
        seen.lock().unwrap().push(method.to_owned());
        if let Some(answer) = answers.lock().unwrap().next() {
            return answer;
        }
        let body = match method {
            "initialize" => {
                json!({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {}}})
            }
            _ => json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}),
        };
        Answer::of(200, body.to_string()).with("content-type", "application/json")
    })
    .await;
    (server, asked)
}

async fn open(server: &TestServer, era: Era) -> Result<Session, SourceFailure> {
    let mut spec = source(server, None);
    spec.timing.second_try = Duration::from_millis(1);
    Session::open(&spec, EraHint::known(era)).await
}

fn error(code: i64) -> String {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": "busy"}}).to_string()
}

#[tokio::test]
async fn known_era_that_fails_once_is_asked_again() {
    for answer in [
        Answer::of(500, ""),
        Answer::of(502, "bad gateway"),
        Answer::of(500, error(-32603)).with("content-type", "application/json"),
        Answer::of(503, "").with("retry-after", "1"),
        Answer::of(429, "").with("retry-after", "0"),
    ] {
        let (server, asked) = server(vec![answer]).await;
        let session = open(&server, Era::Legacy).await.unwrap();
        assert_eq!(session.era(), Era::Legacy);
        assert_eq!(*asked.lock().unwrap(), ["initialize", "initialize"]);
    }
}

#[tokio::test]
async fn known_era_that_fails_twice_is_named_and_no_other_is_asked() {
    for (era, method) in [
        (Era::Legacy, "initialize"),
        (Era::Modern, "server/discover"),
    ] {
        for status in [500, 502] {
            let (server, asked) =
                server(vec![Answer::of(status, ""), Answer::of(status, "")]).await;
            let failure = open(&server, era).await.unwrap_err();
            assert_eq!(failure.cause, SourceCause::Unreachable, "{failure}");
            let named = format!("answered with HTTP status {status}");
            assert!(failure.message.ends_with(&named), "{failure}");
            assert_eq!(*asked.lock().unwrap(), [method, method]);
        }
    }
}

#[tokio::test]
async fn other_era_is_asked_after_a_failure_and_then_an_answer() {
    let (server, asked) = server(vec![Answer::of(502, "")]).await;
    let session = open(&server, Era::Modern).await.unwrap();
    assert_eq!(session.era(), Era::Legacy);
    let expected = ["server/discover", "server/discover", "initialize"];
    assert_eq!(*asked.lock().unwrap(), expected);
    // A server that does not know the method may say so with any status.
    let unknown = Answer::of(500, error(-32601)).with("content-type", "application/json");
    let (server, asked) = self::server(vec![unknown]).await;
    let session = open(&server, Era::Modern).await.unwrap();
    assert_eq!(session.era(), Era::Legacy);
    assert_eq!(*asked.lock().unwrap(), ["server/discover", "initialize"]);
}

#[tokio::test]
async fn pause_beyond_the_time_of_the_start_is_refused_with_both_figures() {
    // The default of the source is 20 seconds.
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (given, expected) in [
        ("21", Some(21)),
        ("99999999999", Some(3600)),
        ("99999999999999999999999999", Some(3600)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(3600)),
        // A time that has passed, or none, means the usual pause of 5 seconds.
        (past, None),
        ("-1", None),
        ("soon", None),
    ] {
        let (server, asked) = server(vec![Answer::of(503, "").with("retry-after", given)]).await;
        let mut spec = source(&server, None);
        spec.startup_timeout = match expected {
            Some(_) => Duration::from_secs(20),
            None => Duration::from_secs(4),
        };
        let began = Instant::now();
        let failure = Session::open(&spec, EraHint::known(Era::Legacy))
            .await
            .unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(3), "{given}");
        assert_eq!(failure.cause, SourceCause::Unreachable);
        let due = format!("another try is due in {} s", expected.unwrap_or(5));
        let time = format!("`startup_timeout` is {} s", spec.startup_timeout.as_secs());
        for part in ["HTTP status 503", &due, &time] {
            assert!(failure.message.contains(part), "{given}: {failure}");
        }
        assert_eq!(asked.lock().unwrap().len(), 1, "{given}");
    }
}

#[tokio::test]
async fn start_that_is_dropped_in_the_pause_sends_nothing_more() {
    let (server, asked) = server(vec![Answer::of(503, "").with("retry-after", "1")]).await;
    let asks = async {
        while asked.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = open(&server, Era::Legacy) => panic!("the pause ended"),
        () = asks => {}
    }
    assert_eq!(asked.lock().unwrap().len(), 1);
}
