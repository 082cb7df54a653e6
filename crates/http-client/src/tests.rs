//! The client against a server of these tests: connections that are used again, and connections that are closed.

use std::io::Write as _;
use std::time::Duration;

use data_encoding::BASE64;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::head_limit::MAX_INTERIM_RESPONSES;

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// Maximum time until an expected event of a test.
const SOON: Duration = Duration::from_secs(10);

/// A server whose connections a test serves.
struct Server(TcpListener);

impl Server {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn url(&self) -> Url {
        let url = format!("http://{}/mcp?key=v", self.0.local_addr().unwrap());
        Url::parse(&url).unwrap()
    }

    fn client(&self) -> (HttpTransport, Target) {
        client(&self.url(), None)
    }

    async fn accept(&self) -> TcpStream {
        let accepted = timeout(SOON, self.0.accept()).await;
        accepted.expect("a connection").unwrap().0
    }

    /// Whether another connection waits.
    async fn has_another(&self) -> bool {
        timeout(Duration::from_millis(50), self.0.accept())
            .await
            .is_ok()
    }
}

fn client(url: &Url, rules: Option<&ProxyRules>) -> (HttpTransport, Target) {
    let client = HttpTransport::with_rules(url, Vec::new(), rules, None).unwrap();
    let target = client.target(url.clone()).unwrap();
    (client, target)
}

/// Sends a request and reads its answer.
async fn ask((client, target): &(HttpTransport, Target)) -> Result<Bytes, TransportError> {
    let (headers, body) = (HeaderMap::new(), Bytes::from_static(b"{}"));
    let mut answer = client.send(Method::POST, target, headers, body).await?;
    let mut text = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        text.extend_from_slice(&chunk);
    }
    Ok(text.into())
}

/// Reads a request. It ends with its body, `{}`.
async fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"{}") {
        let read = timeout(SOON, stream.read_buf(&mut request)).await;
        assert_ne!(read.expect("a request").unwrap(), 0, "{request:?}");
    }
    String::from_utf8(request).unwrap()
}

/// Reads a request, and writes its answer.
async fn answer(stream: &mut TcpStream, answer: &str) -> String {
    let request = request(stream).await;
    stream.write_all(answer.as_bytes()).await.unwrap();
    request
}

/// Waits until the client has closed a connection.
async fn closed(stream: &mut TcpStream) {
    let read = timeout(SOON, stream.read(&mut [0; 64])).await;
    assert_eq!(read.expect("an end").unwrap_or(0), 0);
}

/// Lets the clock of this test run ahead by `time`, one second after the other.
async fn pass(time: Duration) {
    for _ in 0..time.as_secs() {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connection_is_used_again_after_its_answer() {
    let server = Server::start().await;
    let client = server.client();
    let served = async {
        let mut stream = server.accept().await;
        let head = answer(&mut stream, ANSWER).await;
        let host = format!("host: {}\r\n", server.0.local_addr().unwrap());
        for part in [
            "POST /mcp?key=v HTTP/1.1\r\n",
            &host,
            "content-length: 2\r\n",
        ] {
            assert!(head.contains(part), "{head}");
        }
        answer(&mut stream, ANSWER).await;
        answer(
            &mut stream,
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        )
        .await;
        answer(&mut stream, ANSWER).await;
    };
    let asked = async {
        for text in ["ok", "ok", "", "ok"] {
            assert_eq!(ask(&client).await.unwrap(), text);
        }
    };
    tokio::join!(served, asked);
    assert!(!server.has_another().await);
}

#[tokio::test]
async fn withdrawn_request_is_not_sent_on_a_connection_that_was_made_for_it() {
    let server = Server::start().await;
    let (client, target) = server.client();
    let (headers, body) = (HeaderMap::new(), Bytes::from_static(b"{}"));
    let sending = client.send_if(Method::POST, &target, headers, body, &|| false);
    let (sent, mut stream) = tokio::join!(sending, server.accept());
    assert!(sent.unwrap_err().is_connect(), "nothing was sent");
    closed(&mut stream).await;
}

#[tokio::test]
async fn connection_that_the_server_closed_fails_no_request() {
    let server = Server::start().await;
    let client = server.client();
    for _ in 0..3 {
        let served = async {
            answer(&mut server.accept().await, ANSWER).await;
        };
        let (asked, ()) = tokio::join!(ask(&client), served);
        assert_eq!(asked.unwrap(), "ok");
        // Until the end of the connection has arrived.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn request_whose_connection_ends_is_not_sent_again() {
    let server = Server::start().await;
    let client = server.client();
    let served = async {
        let mut stream = server.accept().await;
        answer(&mut stream, ANSWER).await;
        request(&mut stream).await;
    };
    let asked = async {
        ask(&client).await.unwrap();
        ask(&client).await.unwrap_err()
    };
    let ((), error) = tokio::join!(served, asked);
    assert!(!error.is_connect());
    assert!(!server.has_another().await);
}

#[tokio::test]
async fn request_that_is_dropped_closes_its_connection() {
    let server = Server::start().await;
    let client = server.client();
    let served = async {
        let mut stream = server.accept().await;
        request(&mut stream).await;
        stream
    };
    let mut stream = tokio::select! {
        stream = served => stream,
        _ = ask(&client) => panic!("the server does not answer"),
    };
    closed(&mut stream).await;
}

#[tokio::test]
async fn body_that_is_not_read_keeps_its_connection_if_it_has_arrived() {
    let server = Server::start().await;
    let client = server.client();
    let send = || {
        let (client, target) = &client;
        client.send(Method::POST, target, HeaderMap::new(), "{}".into())
    };
    let mut stream = async {
        let (answered, mut stream) = tokio::join!(send(), async {
            let mut stream = server.accept().await;
            answer(&mut stream, ANSWER).await;
            stream
        });
        drop(answered.unwrap());
        let part = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok";
        let (answered, _) = tokio::join!(send(), answer(&mut stream, part));
        drop(answered.unwrap());
        stream
    }
    .await;
    closed(&mut stream).await;
}

#[tokio::test]
async fn unused_connection_is_closed_when_it_expires_or_the_server_closes_it() {
    let server = Server::start().await;
    let client = server.client();
    let (asked, mut stream) = tokio::join!(ask(&client), async {
        let mut stream = server.accept().await;
        answer(&mut stream, ANSWER).await;
        stream
    });
    asked.unwrap();
    pass(Duration::from_secs(2)).await;
    let (asked, _) = tokio::join!(ask(&client), answer(&mut stream, ANSWER));
    asked.unwrap();
    pass(Duration::from_secs(6)).await;
    closed(&mut stream).await;

    let (asked, mut stream) = tokio::join!(ask(&client), async {
        let mut stream = server.accept().await;
        answer(&mut stream, ANSWER).await;
        stream
    });
    asked.unwrap();
    stream.shutdown().await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    pass(Duration::from_secs(2)).await;
    closed(&mut stream).await;
}

#[tokio::test]
async fn compressed_body_is_decompressed_and_its_connection_used_again() {
    let server = Server::start().await;
    let client = server.client();
    let mut body = Vec::new();
    {
        use async_compression::tokio::write::GzipEncoder;
        let mut encoder = GzipEncoder::new(&mut body);
        encoder.write_all(&[b'a'; 100_000]).await.unwrap();
        encoder.shutdown().await.unwrap();
    }
    let mut answer = Vec::new();
    let length = body.len();
    write!(
        answer,
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n"
    )
    .unwrap();
    answer.extend_from_slice(&body);
    let served = async {
        let mut stream = server.accept().await;
        for _ in 0..2 {
            assert!(
                request(&mut stream)
                    .await
                    .contains("accept-encoding: gzip\r\n")
            );
            stream.write_all(&answer).await.unwrap();
        }
    };
    let asked = async {
        for _ in 0..2 {
            assert_eq!(ask(&client).await.unwrap(), [b'a'; 100_000].as_slice());
        }
    };
    tokio::join!(served, asked);
    assert!(!server.has_another().await);
}

#[tokio::test]
async fn proxy_gets_the_whole_url_and_its_credentials() {
    let server = Server::start().await;
    let proxy = server.url().to_string().replace("://", "://user:word@");
    let proxies = ProxyRules::read(|name| match name {
        "ALL_PROXY" => Some(proxy.clone().into()),
        "NO_PROXY" => Some("direct.example".into()),
        _ => None,
    });
    let credentials = format!("Basic {}", BASE64.encode(b"user:word"));

    let asked = client(
        &Url::parse("http://server.example/mcp").unwrap(),
        Some(&proxies),
    );
    let (answered, head) = tokio::join!(ask(&asked), async {
        answer(&mut server.accept().await, ANSWER).await
    });
    assert_eq!(answered.unwrap(), "ok");
    for part in [
        "POST http://server.example/mcp HTTP/1.1\r\n",
        "host: server.example\r\n",
        &format!("proxy-authorization: {credentials}\r\n"),
    ] {
        assert!(head.contains(part), "{head}");
    }

    let asked = client(
        &Url::parse("https://server.example/mcp").unwrap(),
        Some(&proxies),
    );
    let (answered, head) = tokio::join!(ask(&asked), async {
        let mut stream = server.accept().await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
        }
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        stream.write_all(refusal).await.unwrap();
        String::from_utf8(head).unwrap().to_lowercase()
    });
    assert!(answered.unwrap_err().is_connect());
    for part in [
        "connect server.example:443 http/1.1\r\n",
        &format!("proxy-authorization: {credentials}\r\n").to_lowercase(),
        "user-agent: mcp-broker/",
    ] {
        assert!(head.contains(part), "{head}");
    }

    let direct = client(
        &Url::parse("http://direct.example/mcp").unwrap(),
        Some(&proxies),
    );
    assert!(!direct.0.connector.asks_proxy());
}

/// Sends a request on the connection of another one, and answers it with `before` repeated, then the usual answer.
async fn answered_after(before: &str, count: usize) -> Result<Bytes, TransportError> {
    let server = Server::start().await;
    let client = server.client();
    let served = async {
        let mut stream = server.accept().await;
        // Each request has its own allowance.
        for count in [1, count] {
            request(&mut stream).await;
            let answer = format!("{}{ANSWER}", before.repeat(count));
            // The client may have closed the connection.
            stream.write_all(answer.as_bytes()).await.ok();
        }
        stream
    };
    let asked = async {
        assert_eq!(ask(&client).await.unwrap(), "ok");
        ask(&client).await
    };
    let ended = timeout(SOON, async { tokio::join!(asked, served) }).await;
    ended
        .expect("the client answers or closes the connection")
        .0
}

#[tokio::test]
async fn interim_responses_are_limited_for_each_request() {
    const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";
    let fine = answered_after(INTERIM, MAX_INTERIM_RESPONSES).await;
    assert_eq!(fine.unwrap(), "ok");
    // One too many in the same read as the answer, and so many that several reads are needed.
    for count in [MAX_INTERIM_RESPONSES + 1, 1_000_000] {
        let error = answered_after(INTERIM, count).await.unwrap_err();
        assert!(!error.is_connect(), "{error:?}");
        let message = root_message(&error);
        assert_eq!(message, "the server sent over 16 interim responses");
    }
    let long = format!(
        "HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n",
        "x".repeat(60_000)
    );
    assert_eq!(answered_after(&long, 4).await.unwrap(), "ok");
    let error = answered_after(&long, 14).await.unwrap_err();
    let message = root_message(&error);
    assert_eq!(
        message,
        "the head of the answer is longer than 262144 bytes"
    );
}

#[tokio::test]
async fn error_says_whether_tls_or_the_network_failed() {
    let server = Server::start().await;
    let with_tls = server.url().to_string().replace("http:", "https:");
    let with_tls = client(&Url::parse(&with_tls).unwrap(), None);
    let served = async {
        let mut stream = server.accept().await;
        stream.read_buf(&mut Vec::new()).await.unwrap();
        stream.write_all(ANSWER.as_bytes()).await.unwrap();
    };
    let (asked, ()) = tokio::join!(ask(&with_tls), served);
    let error = asked.unwrap_err();
    assert!(error.is_connect() && error.is_tls(), "{error:?}");

    let without_tls = server.client();
    drop(server);
    let error = ask(&without_tls).await.unwrap_err();
    assert!(error.is_connect() && !error.is_tls(), "{error:?}");
    assert!(!root_message(&error).contains("key=v"), "{error:?}");
}
