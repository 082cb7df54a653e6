//! Clients of the broker over HTTP, one request on one connection.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::http::{Response, read, read_from, request, send};
use crate::program::WAIT_TIMEOUT;

/// The revision of the modern era.
pub const MODERN: &str = "2026-07-28";
/// The latest revision of the legacy era.
const LEGACY: &str = "2025-11-25";
/// `Accept` of a client that reads both forms of a reply.
pub const ACCEPT: &str = "application/json, text/event-stream";

/// A legacy session.
#[derive(Clone, Debug)]
pub struct McpSession {
    address: String,
    route: String,
    /// The value of `Mcp-Session-Id`.
    pub id: String,
}

impl McpSession {
    /// Begins a session on a route such as `/mcp/direct`.
    pub fn begin(address: &str, route: &str) -> Self {
        Self::try_begin(address, route).unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    /// Begins a session, or returns the refusal.
    pub fn try_begin(address: &str, route: &str) -> Result<Self, Response> {
        Self::try_begin_revision(address, route, LEGACY)
    }

    /// Begins a session of this revision.
    pub fn begin_revision(address: &str, route: &str, revision: &str) -> Self {
        Self::try_begin_revision(address, route, revision)
            .unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    fn try_begin_revision(address: &str, route: &str, revision: &str) -> Result<Self, Response> {
        let headers = [("Content-Type", "application/json"), ("Accept", ACCEPT)];
        let body = initialize(revision);
        let response = request(address, "POST", route, &headers, body.as_bytes());
        match response.header("mcp-session-id") {
            Some(id) => Ok(Self {
                address: address.to_owned(),
                route: route.to_owned(),
                id: id.to_owned(),
            }),
            None => Err(response),
        }
    }

    /// Sends a request and reads its reply.
    pub fn ask(&self, id: &Value, method: &str, params: &Value) -> Response {
        read(self.send(id, method, params))
    }

    /// The messages of the reply to a request: its notifications and its answer.
    pub fn messages(&self, method: &str, params: &Value) -> Vec<Value> {
        let response = self.ask(&json!("r"), method, params);
        let is_stream = response
            .header("content-type")
            .is_some_and(|form| form.starts_with("text/event-stream"));
        if !is_stream {
            return vec![response.json()];
        }
        let text = without_chunks(&response.body);
        let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
        events
            .map(|data| serde_json::from_str(data).expect("a message is JSON"))
            .collect()
    }

    /// The result of a request.
    pub fn result(&self, method: &str, params: &Value) -> Value {
        let response = self.ask(&json!("r"), method, params);
        let value = response.json();
        assert!(value["result"].is_object(), "{value}");
        value["result"].clone()
    }

    /// Sends a request and does not read its reply. Dropping the connection disconnects the client.
    pub fn send(&self, id: &Value, method: &str, params: &Value) -> TcpStream {
        self.post(&message(id, method, params), ACCEPT)
    }

    /// Sends a message and does not read its reply.
    pub fn post(&self, body: &str, accept: &str) -> TcpStream {
        let (address, route, id) = (&self.address, &self.route, &self.id);
        let length = body.len();
        let bytes = format!(
            "POST {route} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: {accept}\r\nMcp-Session-Id: {id}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        send(address, bytes.as_bytes())
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &Value) -> Response {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        read(self.post(&body.to_string(), ACCEPT))
    }

    /// A request without a message.
    pub fn bare(&self, method: &str, accept: &str) -> Response {
        let headers = [("Accept", accept), ("Mcp-Session-Id", &self.id)];
        request(&self.address, method, &self.route, &headers, b"")
    }

    /// The same session on another route.
    pub fn on_route(&self, route: &str) -> Self {
        Self {
            route: route.to_owned(),
            ..self.clone()
        }
    }

    /// The status of a request that opens a stream, which is closed again.
    pub fn status_of_stream(&self) -> u16 {
        let mut reader = BufReader::new(self.send_get());
        let mut line = String::new();
        reader.read_line(&mut line).expect("a reply");
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("a status: {line}"))
    }

    /// Opens the stream of the session.
    pub fn stream(&self) -> EventReader {
        EventReader::open(self.send_get())
    }

    fn send_get(&self) -> TcpStream {
        let (address, route, id) = (&self.address, &self.route, &self.id);
        let bytes = format!(
            "GET {route} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {id}\r\n\r\n"
        );
        send(address, bytes.as_bytes())
    }
}

/// The messages of a stream.
#[derive(Debug)]
pub struct EventReader {
    reader: BufReader<TcpStream>,
    /// The body that was read and not yet returned.
    text: String,
    /// The head of the reply, in lower case.
    pub head: String,
}

impl EventReader {
    /// Reads the head of a reply that is a stream.
    pub fn open(stream: TcpStream) -> Self {
        stream
            .set_read_timeout(Some(WAIT_TIMEOUT))
            .expect("a timeout can be set");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = reader.read_line(&mut head).expect("the head arrives");
            assert!(read > 0, "the connection ended within the head: {head}");
        }
        let head = head.to_ascii_lowercase();
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        Self {
            reader,
            text: String::new(),
            head,
        }
    }

    /// The next message; `None` once the stream has ended.
    pub fn next_message(&mut self) -> Option<Value> {
        let data = self.next_data()?;
        Some(serde_json::from_str(&data).expect("a message is JSON"))
    }

    /// The data of the next event; `None` once the stream has ended.
    pub fn next_data(&mut self) -> Option<String> {
        loop {
            while let Some((line, rest)) = self.text.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(data) = line.strip_prefix("data: ") {
                    return Some(data.to_owned());
                }
            }
            let chunk = self.next_chunk()?;
            self.text.push_str(&chunk);
        }
    }

    fn next_chunk(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => panic!("the stream is silent: {error}"),
        }
        let length = usize::from_str_radix(line.trim(), 16).expect("a chunk has a length");
        if length == 0 {
            return None;
        }
        let mut chunk = vec![0; length + "\r\n".len()];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(length);
        Some(String::from_utf8(chunk).expect("events are text"))
    }
}

/// Returns the text of a chunked body.
pub fn without_chunks(mut body: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some(end) = body.windows(2).position(|pair| pair == b"\r\n") {
        let length = std::str::from_utf8(&body[..end]).expect("a length is text");
        let length = usize::from_str_radix(length, 16).expect("a chunk has a length");
        text.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
    String::from_utf8(text).expect("events are text")
}

/// A request of the modern era and its reply.
pub fn modern(address: &str, route: &str, id: &Value, method: &str, params: &Value) -> Response {
    read(send_modern(address, route, id, method, params))
}

/// A request of the modern era whose reply is not read.
pub fn send_modern(
    address: &str,
    route: &str,
    id: &Value,
    method: &str,
    params: &Value,
) -> TcpStream {
    send_modern_accepting(address, route, ACCEPT, (id, method, params))
}

/// A request of the modern era, of a client that reads these forms of a reply, which is not read.
pub fn send_modern_accepting(
    address: &str,
    route: &str,
    accept: &str,
    (id, method, params): (&Value, &str, &Value),
) -> TcpStream {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let named = params["name"].as_str().or(params["uri"].as_str());
    let name = match named {
        Some(name) => format!("Mcp-Name: {name}\r\n"),
        None => String::new(),
    };
    let body = message(id, method, &params);
    let length = body.len();
    let bytes = format!(
        "POST {route} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: {accept}\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n{name}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    send(address, bytes.as_bytes())
}

/// Reads the reply on a connection; `None` if the connection ends without one.
pub fn try_read(stream: TcpStream) -> Option<Response> {
    read_from(&mut BufReader::new(stream))
}

/// The message that begins a session of this revision.
pub fn initialize(revision: &str) -> String {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    message(&json!(0), "initialize", &params)
}

fn message(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}
