//! An HTTP caller without a socket: the stream of a connection that sends the next request once the whole
//! reply has arrived.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{Path, Surface};

const ROUTE: &str = "/mcp/direct";
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const SESSION_ID: &[u8] = b"mcp-session-id: ";

/// The stream of a connection; ends after its calls.
#[derive(Debug)]
pub struct HttpCaller {
    path: Path,
    secret: String,
    /// The request that is sent again after each reply: a call, or at first the begin of a session.
    request: Vec<u8>,
    is_begun: bool,
    /// Bytes of the request that were sent.
    sent: usize,
    /// Bytes of the reply that are missing; `None` before its head.
    missing: Option<usize>,
    calls: usize,
    /// Counts replies.
    replies: Arc<AtomicUsize>,
    reader: Option<Waker>,
}

impl HttpCaller {
    /// A caller that sends `secret` and the request of `path`, `calls` times.
    pub fn new(path: Path, secret: &str, calls: usize) -> Self {
        let (request, is_begun) = match path.surface() {
            Surface::Legacy => (initialize(secret), false),
            _ => (call(path, secret, ""), true),
        };
        Self {
            path,
            secret: secret.to_owned(),
            request,
            is_begun,
            sent: 0,
            missing: None,
            calls,
            replies: Arc::default(),
            reader: None,
        }
    }

    /// The counter of its replies.
    pub fn replies(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.replies)
    }

    /// Takes a part of a reply. The broker writes its head in one part.
    fn take(&mut self, part: &[u8]) {
        let (rest, missing) = match self.missing {
            Some(missing) => (part, missing),
            None => {
                let (end, missing) = self.take_head(part);
                (&part[end..], missing)
            }
        };
        let missing = missing
            .checked_sub(rest.len())
            .expect("a reply ends where its head says");
        self.missing = Some(missing);
        if missing == 0 {
            self.missing = None;
            self.sent = 0;
            if self.is_begun {
                self.replies.fetch_add(1, Ordering::Relaxed);
                self.calls -= 1;
            }
            self.is_begun = true;
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
        }
    }

    /// The length of the head, and that of the whole body.
    fn take_head(&mut self, part: &[u8]) -> (usize, usize) {
        let end = memmem::find(part, b"\r\n\r\n").expect("the head is in one part");
        let head = &part[..end];
        let length = header(head, b"content-length: ");
        let length = length
            .iter()
            .fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
        let mut is_right = head.starts_with(b"HTTP/1.1 200 ");
        if self.is_begun {
            is_right &= length >= self.path.min_reply_bytes();
        } else {
            let session = String::from_utf8_lossy(header(head, SESSION_ID));
            let session = format!("mcp-session-id: {session}\r\n");
            self.request = call(self.path, &self.secret, &session);
        }
        assert!(is_right, "{}", String::from_utf8_lossy(part));
        (end + 4, length)
    }
}

/// The value of the header that begins with `name` and a colon.
fn header<'a>(head: &'a [u8], name: &[u8]) -> &'a [u8] {
    let found = memmem::find(head, name);
    let from = found.unwrap_or_else(|| panic!("a header: {}", String::from_utf8_lossy(head)));
    let from = from + name.len();
    let length = head[from..].iter().position(|byte| *byte == b'\r');
    length.map_or(&head[from..], |length| &head[from..from + length])
}

fn initialize(secret: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"hot-path","version":"1"}}}}}}"#
    );
    post(
        ROUTE,
        secret,
        "application/json, text/event-stream",
        "",
        &body,
    )
}

/// The call of `path`. `session` is the header of a legacy session.
fn call(path: Path, secret: &str, session: &str) -> Vec<u8> {
    let (tool, arguments) = (path.tool(), path.arguments());
    let (headers, meta) = match path.surface() {
        Surface::Meta | Surface::Stdio => {
            return post(&format!("/{tool}"), secret, "*/*", "", arguments);
        }
        Surface::Legacy => (
            format!("mcp-protocol-version: {LEGACY}\r\n{session}"),
            String::new(),
        ),
        Surface::Modern => (
            format!(
                "mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
            ),
            format!(
                r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"hot-path","version":"1"}}}}"#
            ),
        ),
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
    );
    let accept = "application/json, text/event-stream";
    post(ROUTE, secret, accept, &headers, &body)
}

fn post(route: &str, secret: &str, accept: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {route} HTTP/1.1\r\nhost: localhost:8100\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\naccept: {accept}\r\nuser-agent: hot-path\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl AsyncRead for HttpCaller {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.calls == 0 {
            return Poll::Ready(Ok(()));
        }
        let rest = &self.request[self.sent..];
        if rest.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let read = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..read]);
        self.sent += read;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HttpCaller {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let parts = parts.iter().filter(|part| !part.is_empty());
        Poll::Ready(Ok(parts.fold(0, |taken, part| {
            self.take(part);
            taken + part.len()
        })))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
