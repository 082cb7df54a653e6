//! A small HTTP server for tests: it records every request, and a function of the test answers it.

use std::future::Future;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Method and path, `GET /path`.
    pub(super) line: String,
    /// Names are in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The value of `Authorization`; empty if there is none.
    pub(super) fn authorization(&self) -> &str {
        self.header("authorization").unwrap_or_default()
    }
}

/// An answer: status, headers, body.
pub(super) struct Answer(
    pub(super) u16,
    pub(super) Vec<(&'static str, String)>,
    pub(super) String,
);

impl Answer {
    /// An answer without headers.
    pub(super) fn of(status: u16, body: impl Into<String>) -> Self {
        Self(status, Vec::new(), body.into())
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.1.push((name, value.into()));
        self
    }

    fn write(&self) -> String {
        let Self(status, headers, body) = self;
        let headers = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        format!(
            "HTTP/1.1 {status} x\r\n{}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            headers.collect::<String>(),
            body.len()
        )
    }
}

/// A server on a port of this machine; it ends when it is dropped.
pub(super) struct TestServer {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    task: AbortHandle,
}

impl TestServer {
    /// A server whose requests `answer` answers.
    pub(super) async fn start<F, Done>(answer: F) -> Self
    where
        F: Fn(Request) -> Done + Send + Sync + 'static,
        Done: Future<Output = Answer> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let (record, answer) = (requests.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (record, answer) = (record.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    if let Some(request) = read(&mut stream).await {
                        record.lock().unwrap().push(request.clone());
                        let text = answer(request).await.write();
                        // A client may have left.
                        let _ = stream.get_mut().write_all(text.as_bytes()).await;
                    }
                });
            }
        });
        Self {
            port,
            requests,
            task: task.abort_handle(),
        }
    }

    /// A server that gives each request the answer of `answer`.
    pub(super) async fn answering(
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |request| std::future::ready(answer(&request))).await
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests until now.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The values of `Authorization` of the requests until now.
    pub(super) fn authorizations(&self) -> Vec<String> {
        let requests = self.requests();
        let values = requests.iter().map(Request::authorization);
        values.map(str::to_owned).collect()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let (line, _version) = line.trim().rsplit_once(' ')?;
    let line = line.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        match header.trim().split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None => break,
        }
    }
    let mut request = Request {
        line,
        headers,
        body: String::new(),
    };
    let length = request.header("content-length").unwrap_or("0");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}
