//! No token and no secret of a client is in the log, in an error, or in `Debug`.

use std::fmt::{Debug, Write as _};
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::http::auth::Challenge;
use crate::session::Session;

/// Every token and secret of this file contains it.
const CANARY: &str = "c4nary";
/// `client:s3cret-c4nary`, as the token endpoint gets it.
const ENCODED_CANARY: &str = "Y2xpZW50OnMzY3JldC1jNG5hcnk=";

/// Keeps the text of every event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0, "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Line(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A server that repeats the token in every place: headers, errors, JSON-RPC errors.
fn repeat(request: &Request) -> Answer {
    let sent = request.authorization().replace("Bearer ", "");
    match request.line.as_str() {
        "POST /token" if request.body.contains("scope=refused") => Answer::of(
            400,
            format!(r#"{{"error":"{sent} {}"}}"#, request.body.replace('"', "")),
        ),
        "POST /token" => grant("t0ken-c4nary-granted", 600),
        "POST /mcp" if request.body.contains("server/discover") => {
            let id = request.body.split("\"id\":").nth(1).unwrap();
            let id: String = id.chars().take_while(char::is_ascii_digit).collect();
            Answer::of(
                200,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"{sent}"}}}}"#),
            )
            .with("content-type", "application/json")
        }
        "POST /mcp" => Answer::of(500, format!("no {sent}")),
        _ => Answer::of(401, sent.clone()).with("www-authenticate", format!("Bearer {sent}")),
    }
}

/// Uses tokens of every origin; all that a reader of errors, stderr and `Debug` finds.
async fn shown() -> String {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "t0ken-c4nary-file").unwrap();
    let server = TestServer::answering(repeat).await;
    let mut client = credentials(&server);
    client.client_secret = Secret::new("s3cret-c4nary");
    let mut refused = client.clone();
    refused.scope = Some("refused".to_owned());
    let mut shown = String::new();
    for auth in [
        AuthSpec::TokenFile(file),
        command("echo t0ken-c4nary-run >&2; echo t0ken-c4nary-run"),
        command("echo '{\"access_token\":\"c4nary c4nary\"}'; exit 1"),
        AuthSpec::ClientCredentials(client),
        AuthSpec::ClientCredentials(refused),
    ] {
        let mut spec = source(&server, Some(auth));
        spec.redactor = Redactor::new([Secret::new("s3cret-c4nary")]);
        let failure = Session::open(&spec, None).await.unwrap_err();
        let linked = Linked::new(&spec).await;
        if let Ok(answer) = linked.post().await {
            let refusal = {
                let challenge = Challenge::read(answer.headers());
                linked.client.refusal(answer.status(), &challenge).await
            };
            writeln!(shown, "{refusal} {refusal:?}").unwrap();
        }
        let (client, tail) = (&linked.client, linked.tail.lines(99));
        writeln!(shown, "{failure} {failure:?} {spec:?} {client:?} {tail:?}").unwrap();
    }
    shown
}

#[tokio::test]
async fn canary_token_is_in_no_log_no_error_and_no_debug() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let mut shown = shown().await;
    // Another test may have used an event first, at a moment at which nothing kept events; now all are known.
    tracing::callsite::rebuild_interest_cache();
    shown.push_str(&self::shown().await);
    assert!(!shown.contains(CANARY), "{shown}");
    assert!(!shown.contains(ENCODED_CANARY), "{shown}");
    assert!(shown.contains("••••"), "the server repeated it: {shown}");
    let log = log.0.lock().unwrap();
    assert!(!log.contains(CANARY), "{log}");
    assert!(!log.contains(ENCODED_CANARY), "{log}");
    assert!(log.contains("the source has a token"), "{log}");
}

#[test]
fn token_and_what_holds_it_show_nothing_in_debug() {
    let token = super::super::Token::new("t0ken-c4nary").unwrap();
    let shown = format!("{token:?} {:?}", token.header());
    assert!(!shown.contains(CANARY), "{shown}");
}
