//! Servers that refuse credentials: the state of the source, and the issuer that the server names.

use std::sync::atomic::{AtomicU32, Ordering};

use broker_model::{Snapshot, SourceCause};

use super::*;
use crate::connection::RequestKind;
use crate::failure::RequestError;
use crate::http::HttpLink;
use crate::instance::{DriftCheck, Instance, Verdict};
use crate::session::Session;
use crate::status::State;

const METADATA: &str = "GET /.well-known/oauth-protected-resource";

/// The token of a command.
fn token() -> Option<AuthSpec> {
    Some(command("echo t0ken-c4nary"))
}

/// A server that refuses everything except the document about it.
async fn refusing(challenge: &'static str, document: String) -> TestServer {
    TestServer::answering(move |request| match request.line.split_once(' ') {
        Some(("GET", "/mcp")) | Some(("POST", _)) => {
            Answer::of(401, "").with("www-authenticate", challenge)
        }
        _ => Answer::of(200, document.clone()),
    })
    .await
}

fn metadata(issuer: &str) -> String {
    let issuer = serde_json::Value::from(issuer);
    format!(r#"{{"resource":"x","authorization_servers":[{issuer},"https://second.example"]}}"#)
}

/// The failure of a source at this server.
async fn failure(server: &TestServer) -> SourceFailure {
    let opened = Session::open(&source(server, token()), None).await;
    opened.unwrap_err()
}

#[tokio::test]
async fn refused_token_needs_auth_and_the_issuer_is_apart_from_the_message() {
    let server = refusing(
        r#"Bearer error="invalid_token", realm="t0ken-c4nary""#,
        metadata("https://login.example/\u{1b}[31mt0ken-c4nary"),
    )
    .await;
    let failure = failure(&server).await;
    assert_eq!(failure.cause, SourceCause::NeedsAuth);
    let message = "the server refused the credentials (HTTP status 401)";
    assert_eq!(failure.message, message);
    let challenge = r#"it asks for `Bearer error="invalid_token", realm="••••"` and names the authorization server `https://login.example/\u{1b}[31m••••`"#;
    assert_eq!(failure.said.as_deref(), Some(challenge));
    assert_eq!(failure.to_string(), format!("{message}; {challenge}"));
    let requests = server.requests();
    let [probe, opening, document] = &requests[..] else {
        panic!("two refused POSTs and one for the document: {requests:?}")
    };
    for post in [probe, opening] {
        assert_eq!(post.authorization(), "Bearer t0ken-c4nary");
    }
    assert_eq!(document.line, METADATA);
    assert_eq!(
        (document.authorization(), document.header(KEY.0)),
        ("", None)
    );
}

#[tokio::test]
async fn issuer_is_read_from_the_document_that_the_challenge_names() {
    let own = Arc::new(std::sync::OnceLock::<String>::new());
    let named = own.clone();
    let server = TestServer::answering(move |request| match request.line.as_str() {
        "GET /about" => Answer::of(200, metadata(&"i".repeat(300))),
        _ => Answer::of(401, "").with(
            "www-authenticate",
            format!(r#"Bearer resource_metadata="{}""#, named.get().unwrap()),
        ),
    })
    .await;
    own.set(server.url("/about")).unwrap();
    let challenge = failure(&server).await.said.unwrap();
    let issuer = format!("names the authorization server `{}…`", "i".repeat(199));
    assert!(challenge.ends_with(&issuer), "{challenge}");
}

#[tokio::test]
async fn issuer_is_not_read_from_another_origin() {
    let other = TestServer::answering(|_| Answer::of(200, metadata("x"))).await;
    let named = format!(r#"Bearer resource_metadata="{}""#, other.url("/about"));
    let server =
        TestServer::answering(move |_| Answer::of(401, "").with("www-authenticate", named.clone()))
            .await;
    let failure = failure(&server).await;
    assert!(
        failure
            .said
            .unwrap()
            .starts_with("it asks for `Bearer resource_metadata")
    );
    assert!(other.requests().is_empty());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn document_that_names_no_issuer_leaves_the_challenge() {
    let large = format!("{}{}", metadata("x"), " ".repeat(64 << 10));
    for document in [
        "",
        "{}",
        "[]",
        r#"{"authorization_servers":"x"}"#,
        r#"{"authorization_servers":[]}"#,
        r#"{"authorization_servers":[7]}"#,
        r#"{"authorization_servers":[""]}"#,
        &large,
    ] {
        let server = refusing("Basic", document.to_owned()).await;
        let failure = failure(&server).await;
        assert_eq!(failure.said.as_deref(), Some("it asks for `Basic`"));
    }
    let moved = TestServer::answering(|request| match request.line.as_str() {
        METADATA => Answer::of(307, "").with("location", "/about"),
        "GET /about" => Answer::of(200, metadata("x")),
        _ => Answer::of(403, ""),
    })
    .await;
    assert_eq!(failure(&moved).await.said, None);
}

#[tokio::test]
async fn document_that_never_comes_does_not_keep_the_link() {
    let (asked, mut is_asked) = tokio::sync::mpsc::channel(1);
    let server = TestServer::start(move |request| {
        let asked = asked.clone();
        async move {
            if request.line == METADATA {
                asked.send(()).await.unwrap();
                std::future::pending::<()>().await;
            }
            Answer::of(401, "")
        }
    })
    .await;
    let spec = source(&server, token());
    let opened = tokio::spawn(async move { Session::open(&spec, None).await });
    is_asked.recv().await.unwrap();
    pass(Duration::from_secs(5)).await;
    let failure = opened.await.unwrap().unwrap_err();
    assert_eq!(failure.cause, SourceCause::NeedsAuth);
    assert_eq!(failure.said, None);
}

#[tokio::test]
async fn forbidden_request_is_repeated_unless_it_lacks_a_scope() {
    for (challenge, posts) in [
        (r#"Bearer error="insufficient_scope""#, 1),
        ("", 2),
        (r#"Bearer realm="x", error="invalid_token""#, 2),
    ] {
        let count = AtomicU32::new(0);
        let server = TestServer::answering(move |request| match request.line.as_str() {
            "POST /token" => grant(
                &format!("t0ken-{}", count.fetch_add(1, Ordering::Relaxed)),
                600,
            ),
            _ => Answer::of(403, "").with("www-authenticate", challenge),
        })
        .await;
        let auth = AuthSpec::ClientCredentials(credentials(&server));
        let linked = Linked::new(&source(&server, Some(auth))).await;
        assert_eq!(linked.status().await, 403);
        let sent = server.authorizations();
        let bearers = sent.iter().filter(|one| one.starts_with("Bearer"));
        assert_eq!(bearers.count(), posts, "{challenge}");
    }
}

#[tokio::test]
async fn fresh_token_that_is_refused_too_is_not_replaced() {
    let count = AtomicU32::new(0);
    let server = TestServer::answering(move |request| match request.line.as_str() {
        "POST /token" => grant(
            &format!("t0ken-{}", count.fetch_add(1, Ordering::Relaxed)),
            600,
        ),
        _ => Answer::of(401, ""),
    })
    .await;
    let auth = AuthSpec::ClientCredentials(credentials(&server));
    let linked = Linked::new(&source(&server, Some(auth))).await;
    assert_eq!(linked.status().await, 401);
    let sent = server.authorizations();
    let sent: Vec<_> = sent
        .iter()
        .filter(|one| one.starts_with("Bearer"))
        .collect();
    assert_eq!(sent, ["Bearer t0ken-0", "Bearer t0ken-1"]);
}

#[tokio::test]
async fn header_of_the_config_that_is_refused_is_sent_twice() {
    let server = refusing("Bearer", metadata("x")).await;
    let mut spec = source(&server, None);
    if let Endpoint::Http(http) = &mut spec.endpoint {
        let value = HeaderValue::from_static("Bearer of-the-config");
        http.headers.insert(http::header::AUTHORIZATION, value);
    }
    let failure = Session::open(&spec, None).await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::NeedsAuth);
    let header = "Bearer of-the-config";
    assert_eq!(server.authorizations(), [header, header, ""]);
}

#[tokio::test]
async fn requests_that_are_refused_together_ask_for_the_issuer_once() {
    let server = refusing("Bearer", metadata("x")).await;
    let spec = source(&server, token());
    let Endpoint::Http(http) = &spec.endpoint else {
        panic!("a source with a URL")
    };
    let (tail, tasks) = (StderrTail::new(spec.redactor.clone()), TaskTracker::new());
    let opening = Opening {
        tail: &tail,
        counters: &Arc::default(),
        tasks: &tasks,
        stop_deadline: &StopDeadline::never(),
        second_try: false,
    };
    let link = Arc::new(HttpLink::open(http, &spec, &opening).await.unwrap());
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let link = link.clone();
        requests.spawn(async move {
            let line =
                |id| Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
            link.request(RequestKind::Internal, "ping", line, None)
                .await
        });
    }
    for outcome in requests.join_all().await {
        let Err(RequestError::Gone { failure, begun }) = outcome else {
            panic!("a refused request: {outcome:?}")
        };
        assert_eq!((failure.cause, begun), (SourceCause::NeedsAuth, false));
    }
    let requests = server.requests();
    let documents = requests.iter().filter(|one| one.line == METADATA);
    assert_eq!(documents.count(), 1);
}

struct Serve;

impl DriftCheck for Serve {
    fn check(&self, _: &Snapshot) -> Verdict {
        Verdict::Serve
    }
}

#[tokio::test]
async fn source_without_valid_credentials_has_failed() {
    let refused = refusing("Bearer", metadata("x")).await;
    let accepting = TestServer::answering(|_| Answer::of(200, "{}")).await;
    let absent = AuthSpec::TokenFile("/no/such/token".into());
    for spec in [
        source(&refused, token()),
        source(&accepting, Some(absent)),
        source(&accepting, Some(command("exit 1"))),
    ] {
        let instance = Instance::start(spec, None, Arc::new(Serve), &TaskTracker::new());
        let mut status = instance.status();
        let status = status
            .wait_for(|status| status.state == State::Failed)
            .await
            .unwrap()
            .clone();
        let cause = status.failure.map(|failure| failure.cause);
        assert_eq!(cause, Some(SourceCause::NeedsAuth));
        assert_eq!(status.next_attempt, None, "only a call starts it again");
        instance.stop().await;
    }
}
