//! A client of a stub endpoint. Its answers come from the public documentation, or are wrong.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;

use serde_json::Value;

use super::*;
use crate::Model;

const KEY: &str = "sk-wrong-key-0123456789";
const VECTORS: &str = include_str!("../../responses/embeddings.json");
const INVALID_KEY: &str = include_str!("../../responses/invalid_key.json");
const RATE_LIMIT: &str = include_str!("../../responses/rate_limit.json");

/// A request that the stub got: its head and its body.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that gives these answers, one for each connection; each is a head without its last line, and a body.
struct Stub {
    base: String,
    seen: Seen,
}

impl Stub {
    fn new(answers: Vec<(String, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}/v1/", listener.local_addr().expect("an address"));
        let seen = Seen::default();
        let of_thread = Arc::clone(&seen);
        thread::spawn(move || {
            for (head, body) in answers {
                let (stream, _) = listener.accept().expect("a connection");
                of_thread.lock().expect("the list").push(request(&stream));
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                // A client that has read enough closes the connection.
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { base, seen }
    }

    fn answering(head: &str, body: &str) -> Self {
        Self::new(vec![(head.to_owned(), body.to_owned())])
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::new("text-embedding-3-small", Some(&self.base), Some(KEY)).expect("settings")
    }

    fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().expect("the list").clone()
    }
}

fn request(stream: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    (head, serde_json::from_slice(&body).expect("JSON"))
}

fn two() -> Vec<String> {
    vec!["read a file".to_owned(), "send mail".to_owned()]
}

/// Returns the reason why an endpoint gives no vectors of two texts.
async fn reason(head: &str, body: &str) -> String {
    let stub = Stub::answering(head, body);
    let error = stub.endpoint().embed(&two()).await.expect_err("an error");
    let text = error.to_string();
    assert!(!text.contains(KEY), "{text}");
    assert!(text.contains("http://127.0.0.1:"), "{text}");
    text
}

#[tokio::test]
async fn vectors_are_in_the_order_of_the_texts() {
    let stub = Stub::answering("200 OK", VECTORS);
    let vectors = stub.endpoint().embed(&two()).await.expect("vectors");
    let first = Embedding::new(&[0.002_306_425_5, -0.009_327_292, -0.002_884_222_2]);
    assert_eq!((vectors.len(), Some(&vectors[0])), (2, first.as_ref()));
    let (head, body) = stub.seen().remove(0);
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1"), "{head}");
    assert!(
        head.contains(&format!("authorization: Bearer {KEY}")),
        "{head}"
    );
    assert_eq!(
        body,
        json!({"model": "text-embedding-3-small", "input": two(), "encoding_format": "float"})
    );
}

#[tokio::test]
async fn texts_are_sent_in_batches() {
    let texts: Vec<String> = (0..=MAX_BATCH).map(|at| at.to_string()).collect();
    let answer = |count: usize| {
        let item = |index: usize| json!({"index": index, "embedding": [index + 1, 1]});
        let items: Vec<_> = (0..count).map(item).collect();
        ("200 OK".to_owned(), json!({"data": items}).to_string())
    };
    let stub = Stub::new(vec![answer(MAX_BATCH), answer(1)]);
    let vectors = stub.endpoint().embed(&texts).await.expect("vectors");
    assert_eq!(vectors.len(), texts.len());
    let sent = stub
        .seen()
        .iter()
        .map(|(_, body)| body["input"].as_array().map(Vec::len))
        .collect::<Vec<_>>();
    assert_eq!(sent, [Some(MAX_BATCH), Some(1)]);
}

#[tokio::test]
async fn refusals_say_what_the_endpoint_said_without_the_key() {
    let text = reason("401 Unauthorized", INVALID_KEY).await;
    assert!(text.contains("401: Incorrect API key provided: "), "{text}");
    let text = reason(
        "307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/",
        "",
    )
    .await;
    assert!(text.contains("redirects with HTTP status 307"), "{text}");
    let text = reason("500 Internal Server Error", "<html>\u{1b}[2J").await;
    assert!(text.ends_with("answers with HTTP status 500"), "{text}");
}

#[tokio::test]
async fn answers_that_are_not_one_vector_for_each_text_are_refused() {
    let item = |index: u32, vector: &str| format!(r#"{{"index":{index},"embedding":{vector}}}"#);
    let list = |items: &[String]| format!(r#"{{"data":[{}]}}"#, items.join(","));
    let good = item(0, "[1,2]");
    for (body, expected) in [
        ("NaN".to_owned(), "not a list of embeddings"),
        (
            list(&[good.clone(), item(1, "[NaN,1]")]),
            "not a list of embeddings",
        ),
        (
            list(&[good.clone(), item(1, "[1e999,1]")]),
            "not a list of embeddings",
        ),
        (
            list(&[good.clone(), item(1, "[1e39,1]")]),
            "not a list of embeddings",
        ),
        (list(&[good.clone(), item(1, "[0,0]")]), "cannot be used"),
        (list(&[good.clone(), item(1, "[]")]), "cannot be used"),
        (list(&[good.clone(), good.clone()]), "index 0 twice"),
        (list(&[good.clone(), item(2, "[1,2]")]), "index 2"),
        (
            list(&[good.clone(), item(1, "[1,2,3]")]),
            "different dimensions",
        ),
        (list(&[good]), "fewer than 2"),
        (
            format!("[{}]", " ".repeat(ANSWER_BYTES + 2 * VECTOR_BYTES)),
            "more than",
        ),
    ] {
        let text = reason("200 OK", &body).await;
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn pause_that_an_endpoint_asks_for_is_kept_three_times() {
    let busy = |seconds: u64| {
        let head = format!("429 Too Many Requests\r\nRetry-After: {seconds}");
        (head, RATE_LIMIT.to_owned())
    };
    let answers = vec![busy(1), busy(0), ("200 OK".to_owned(), VECTORS.to_owned())];
    let stub = Stub::new(answers);
    let begun = tokio::time::Instant::now();
    let vectors = Model::Endpoint(Box::new(stub.endpoint()))
        .documents(two())
        .await;
    assert_eq!(vectors.map(|vectors| vectors.len()), Ok(2));
    assert!(begun.elapsed() >= Duration::from_secs(1), "a pause");
    let stub = Stub::new(vec![busy(0); 4]);
    let refused = Model::Endpoint(Box::new(stub.endpoint()))
        .documents(two())
        .await;
    let refused = refused.expect_err("a fourth refusal").to_string();
    assert!(refused.contains("Rate limit reached"), "{refused}");
    assert_eq!(stub.seen().len(), 4);
}

#[tokio::test]
async fn requests_at_a_time_are_limited() {
    // It accepts connections and does not answer.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let endpoint = Endpoint::new("m", Some(&base), None).expect("settings");
    let texts = two();
    let mut waiting: Vec<_> = (0..MAX_IN_FLIGHT)
        .map(|_| Box::pin(endpoint.embed(&texts)))
        .collect();
    for request in &mut waiting {
        let begun = std::future::poll_fn(|context| Poll::Ready(request.as_mut().poll(context)));
        assert_eq!(begun.await, Poll::Pending);
    }
    assert_eq!(endpoint.embed(&texts).await, Err(EmbedError::Busy));
    drop(waiting);
    let mut next = Box::pin(endpoint.embed(&texts));
    let begun = std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context)));
    assert_eq!(begun.await, Poll::Pending);
}

#[test]
fn settings_that_would_leak_are_refused() {
    let made = |base: &str| Endpoint::new("m", Some(base), Some(KEY)).map(|it| it.host());
    for base in [
        "http://api.example/v1",
        "http://192.0.2.1",
        "ftp://127.0.0.1",
        "nothing",
    ] {
        let refused = made(base).expect_err("a wrong URL").to_string();
        assert!(refused.contains("OPENAI_BASE_URL"), "{refused}");
    }
    assert_eq!(
        made("https://api.example/v1"),
        Ok("https://api.example".to_owned())
    );
    assert_eq!(
        made("http://127.0.0.1:8080"),
        Ok("http://127.0.0.1:8080".to_owned())
    );
    assert_eq!(made(""), Ok("https://api.openai.com".to_owned()));
    let key = Endpoint::new("m", None, Some("a\nb"))
        .expect_err("a wrong key")
        .to_string();
    assert!(
        key.contains("OPENAI_API_KEY") && !key.contains("a\nb"),
        "{key}"
    );
    let shown = format!("{:?}", Endpoint::new("m", None, Some(KEY)));
    assert!(!shown.contains(KEY), "{shown}");
}
