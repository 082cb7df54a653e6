//! Tokens of token endpoints.

use std::sync::atomic::{AtomicU32, Ordering};

use broker_model::SourceCause;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::*;

/// The number of requests at one time.
const MANY: usize = 100;

/// A source and its token endpoint on one server. The endpoint grants `t0ken-1`, `t0ken-2`, …
async fn granting(expires_in: u64) -> TestServer {
    let count = AtomicU32::new(0);
    TestServer::answering(move |request| match request.line.as_str() {
        "POST /token" => {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            grant(&format!("t0ken-{number}"), expires_in)
        }
        _ => Answer::of(200, "{}"),
    })
    .await
}

fn endpoint(server: &TestServer) -> Option<AuthSpec> {
    Some(AuthSpec::ClientCredentials(credentials(server)))
}

/// The requests to the token endpoint.
fn grants(server: &TestServer) -> Vec<Request> {
    let mut requests = server.requests();
    requests.retain(|request| request.line == "POST /token");
    requests
}

/// The failure of a request if the endpoint gives this answer.
async fn failure(answer: impl Fn() -> Answer + Send + Sync + 'static) -> SourceFailure {
    let server = TestServer::answering(move |_| answer()).await;
    let linked = Linked::new(&source(&server, endpoint(&server))).await;
    let failure = linked.post().await.unwrap_err();
    let lines: Vec<_> = server.requests().into_iter().map(|one| one.line).collect();
    assert_eq!(lines, ["POST /token"]);
    failure
}

#[tokio::test]
async fn token_endpoint_gets_the_secret_in_the_header_and_nothing_of_the_source() {
    let server = granting(600).await;
    let mut client = credentials(&server);
    client.client_id = "my client:".to_owned();
    client.client_secret = Secret::new("p+ä&: ");
    client.scope = Some("a b".to_owned());
    client.resource = Some("https://h/mcp?x=1".to_owned());
    let linked = Linked::new(&source(&server, Some(AuthSpec::ClientCredentials(client)))).await;
    assert_eq!(linked.status().await, 200);
    assert_eq!(linked.status().await, 200);
    let [asked, first, second] = &server.requests()[..] else {
        panic!("three requests")
    };
    assert_eq!(asked.line, "POST /token");
    // `my+client%3A:p%2B%C3%A4%26%3A+`
    let basic = "Basic bXkrY2xpZW50JTNBOnAlMkIlQzMlQTQlMjYlM0Er";
    assert_eq!(asked.authorization(), basic);
    let form = "application/x-www-form-urlencoded";
    assert_eq!(asked.header("content-type"), Some(form));
    assert_eq!(
        asked.body,
        "grant_type=client_credentials&scope=a+b&resource=https%3A%2F%2Fh%2Fmcp%3Fx%3D1"
    );
    assert_eq!(asked.header(KEY.0), None);
    for request in [first, second] {
        assert_eq!(request.line, "POST /mcp");
        assert_eq!(request.authorization(), "Bearer t0ken-1");
        assert_eq!(request.header(KEY.0), Some(KEY.1));
    }
}

#[tokio::test]
async fn token_endpoint_that_reads_the_body_gets_the_secret_there() {
    let server = TestServer::answering(|request| match request.line.as_str() {
        "POST /token" if request.authorization().is_empty() => grant("t0ken", 600),
        "POST /token" => Answer::of(401, r#"{"error":"invalid_client"}"#),
        _ => Answer::of(200, "{}"),
    })
    .await;
    let linked = Linked::new(&source(&server, endpoint(&server))).await;
    assert_eq!(linked.status().await, 200);
    pass(Duration::from_secs(600)).await;
    assert_eq!(linked.status().await, 200);
    let asked = grants(&server);
    let in_header = asked.iter().map(|one| one.authorization().is_empty());
    assert_eq!(
        in_header.collect::<Vec<_>>(),
        [false, true, true],
        "the second grant asks with the body at once"
    );
    let form = "grant_type=client_credentials&client_id=client&client_secret=s3cret-of-the-client";
    assert!(asked[1..].iter().all(|one| one.body == form));
}

#[tokio::test]
async fn token_is_replaced_before_it_expires() {
    for (expires_in, margin) in [(100, 10), (6000, 60)] {
        let server = granting(expires_in).await;
        let linked = Linked::new(&source(&server, endpoint(&server))).await;
        assert_eq!(linked.status().await, 200);
        // The clock runs on while requests are sent.
        let rest = 45;
        pass(Duration::from_secs(expires_in - margin - rest)).await;
        assert_eq!(linked.status().await, 200);
        pass(Duration::from_secs(rest)).await;
        assert_eq!(linked.status().await, 200);
        let sent = server.authorizations();
        let sent: Vec<_> = sent
            .iter()
            .filter(|one| one.starts_with("Bearer"))
            .collect();
        assert_eq!(sent, ["Bearer t0ken-1", "Bearer t0ken-1", "Bearer t0ken-2"]);
    }
}

#[tokio::test]
async fn token_endpoint_that_refuses_needs_auth_with_its_words() {
    let refusal = failure(|| {
        Answer::of(
            400,
            r#"{"error":"invalid_scope","error_description":"no\u001b[31m scope s3cret-of-the-client"}"#,
        )
    })
    .await;
    assert_eq!(refusal.cause, SourceCause::NeedsAuth);
    let expected = "answered with HTTP status 400: invalid_scope: no\\u{1b}[31m scope ";
    assert!(refusal.message.contains(expected), "{refusal}");
    for body in ["", "<html>", "{}", "[1]", "{\"error\":7}"] {
        let refusal = failure(move || Answer::of(403, body)).await;
        assert_eq!(refusal.cause, SourceCause::NeedsAuth);
        assert!(refusal.message.ends_with("HTTP status 403"), "{refusal}");
    }
    for answer in [
        r#"{"access_token":"c4nary","token_type":"mac"}"#.to_owned(),
        "c4nary".to_owned(),
        format!(
            r#"{{"access_token":"t","token_type":"Bearer","x":"{}"}}"#,
            "x".repeat(64 << 10)
        ),
    ] {
        let refusal = failure(move || Answer::of(200, answer.clone())).await;
        assert_eq!(refusal.cause, SourceCause::NeedsAuth);
        assert!(!refusal.message.contains("c4nary"), "{refusal}");
    }
}

#[tokio::test]
async fn token_endpoint_that_fails_is_unreachable() {
    for status in [408, 429, 500, 503] {
        let failure = failure(move || Answer::of(status, "")).await;
        assert_eq!(failure.cause, SourceCause::Unreachable, "{status}");
    }
    let server = TestServer::answering(|_| Answer::of(200, "{}")).await;
    let mut client = credentials(&server);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    client.token_url = url(&format!("http://127.0.0.1:{port}/token?key=q"));
    let linked = Linked::new(&source(&server, Some(AuthSpec::ClientCredentials(client)))).await;
    let failure = linked.post().await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::Unreachable);
    let message = &failure.message;
    assert!(message.contains("/token` cannot be reached"), "{message}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn token_endpoint_that_does_not_answer_is_given_up() {
    let (asked, mut is_asked) = tokio::sync::mpsc::channel(1);
    let server = TestServer::start(move |_| {
        let asked = asked.clone();
        async move {
            asked.send(()).await.unwrap();
            std::future::pending().await
        }
    })
    .await;
    let linked = Arc::new(Linked::new(&source(&server, endpoint(&server))).await);
    let posted = tokio::spawn(async move { linked.post().await.map(|_| ()) });
    is_asked.recv().await.unwrap();
    pass(super::super::FETCH_TIMEOUT).await;
    let failure = posted.await.unwrap().unwrap_err();
    assert_eq!(failure.cause, SourceCause::Unreachable);
    let message = &failure.message;
    assert!(message.ends_with("did not answer within 10 s"), "{message}");
}

#[tokio::test]
async fn token_endpoint_that_redirects_sends_no_secret_elsewhere() {
    let other = TestServer::answering(|_| grant("t0ken", 600)).await;
    for status in [301, 302, 303, 307, 308] {
        let target = other.url("/token");
        let failure =
            failure(move || Answer::of(status, "").with("location", target.clone())).await;
        assert_eq!(failure.cause, SourceCause::Unreachable);
        let expected = format!("redirects with HTTP status {status}");
        assert!(failure.message.contains(&expected), "{failure}");
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn token_is_not_sent_to_another_origin() {
    let other = TestServer::answering(|_| Answer::of(200, "{}")).await;
    let target = other.url("/mcp");
    let server = TestServer::answering(move |request| match request.line.as_str() {
        "POST /token" => grant("t0ken", 600),
        "POST /mcp" => Answer::of(307, "").with("location", "/elsewhere"),
        _ => Answer::of(307, "").with("location", target.clone()),
    })
    .await;
    let linked = Linked::new(&source(&server, endpoint(&server))).await;
    let failure = linked.post().await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::Unreachable);
    let requests = server.requests();
    assert_eq!(requests[2].line, "POST /elsewhere");
    assert_eq!(requests[2].authorization(), "Bearer t0ken");
    assert!(other.requests().is_empty());
}

/// Sends many requests at one time; the statuses of their answers or the failures.
async fn storm(linked: &Arc<Linked>) -> Vec<Result<u16, SourceFailure>> {
    let mut posts = JoinSet::new();
    for _ in 0..MANY {
        let linked = linked.clone();
        posts.spawn(async move {
            let answer = linked.post().await?;
            Ok(answer.status().as_u16())
        });
    }
    posts.join_all().await
}

#[tokio::test]
async fn token_that_many_requests_find_refused_is_replaced_once() {
    let (count, together) = (AtomicU32::new(0), Arc::new(Barrier::new(MANY)));
    let server = TestServer::start(move |request| {
        let token = (request.line == "POST /token")
            .then(|| format!("t0ken-{}", count.fetch_add(1, Ordering::Relaxed) + 1));
        let together = together.clone();
        async move {
            match token {
                Some(token) => grant(&token, 600),
                None if request.authorization() == "Bearer t0ken-1" => {
                    // All requests are under way before the first is refused.
                    together.wait().await;
                    Answer::of(401, "")
                }
                None => Answer::of(200, "{}"),
            }
        }
    })
    .await;
    let linked = Arc::new(Linked::new(&source(&server, endpoint(&server))).await);
    let outcomes = storm(&linked).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(200))));
    assert_eq!(grants(&server).len(), 2, "the first token and one other");
    assert_eq!(server.requests().len(), 2 + 2 * MANY);
}

#[tokio::test]
async fn refusal_of_a_token_endpoint_is_that_of_all_requests_that_waited() {
    let server = TestServer::answering(|_| Answer::of(400, "{}")).await;
    let linked = Arc::new(Linked::new(&source(&server, endpoint(&server))).await);
    let outcomes = storm(&linked).await;
    assert!(outcomes.iter().all(|outcome| {
        let failure = outcome.as_ref().unwrap_err();
        failure.cause == SourceCause::NeedsAuth
    }));
    assert_eq!(server.requests().len(), 1);
    // A later request asks again.
    linked.post().await.unwrap_err();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn links_of_one_source_share_a_token() {
    let server = granting(600).await;
    let spec = source(&server, endpoint(&server));
    let links = [Linked::new(&spec.clone()).await, Linked::new(&spec).await];
    for linked in &links {
        assert_eq!(linked.status().await, 200);
    }
    assert_eq!(grants(&server).len(), 1);
}
