//! A plain blocking HTTP client, and the server under test.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::support::{DEADLINE, Folder, program};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// A running `chaos-mcp --http 0`.
pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    pub(crate) folder: Folder,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(script: &Value) -> Self {
        let folder = Folder::new();
        folder.write(script);
        let mut command = program(env!("CARGO_BIN_EXE_chaos-mcp"));
        command.args(["--http", "0", "--script"]);
        command.arg(folder.script());
        command.arg("--journal").arg(folder.file("journal"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut stdout = child.stdout.take().unwrap();
        let mut url = Vec::new();
        let mut byte = [0];
        while stdout.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            url.extend(byte);
        }
        Self {
            child,
            stdin,
            folder,
            url: String::from_utf8(url).unwrap(),
        }
    }

    /// A server with these rules, which answers modern and legacy clients.
    pub(crate) fn with_rules(rules: Value) -> Self {
        Self::start(&json!({"plain": true, "http": {"rules": rules}}))
    }

    pub(crate) fn origin(&self) -> &str {
        self.url.rsplit_once('/').unwrap().0
    }

    pub(crate) fn path(&self) -> &str {
        &self.url[self.origin().len()..]
    }

    pub(crate) fn connect(&self) -> Client {
        let address = self.origin().strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Client {
            stream,
            host: address.to_owned(),
            path: self.path().to_owned(),
            unread: Vec::new(),
        }
    }

    /// Sends a modern request on a new connection.
    pub(crate) fn modern(&self, method: &str, params: Value) -> Client {
        let mut client = self.connect();
        client.modern(method, params);
        client
    }

    /// Calls a tool with a modern request on a new connection.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Client {
        self.modern("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Opens a legacy session, with the handshake; returns its id.
    pub(crate) fn open_session(&self) -> String {
        let mut client = self.connect();
        client.legacy("", "initialize", json!({"protocolVersion": LEGACY}));
        let opened = client.response();
        assert_eq!(opened.status, 200, "{opened:?}");
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.post(&legacy_headers(&session), &message);
        assert_eq!(client.response().status, 202);
        session
    }

    /// Calls a tool in a legacy session on a new connection.
    pub(crate) fn legacy_call(&self, session: &str, tool: &str, arguments: Value) -> Client {
        let mut client = self.connect();
        let params = json!({"name": tool, "arguments": arguments});
        client.legacy(session, "tools/call", params);
        client
    }

    /// Waits for the end of the HTTP request of this number; returns how it ended.
    pub(crate) fn end_of(&self, request: u64) -> String {
        let is_it = |entry: &&Value| entry["request"] == request;
        let ends = self
            .folder
            .await_entries("http-end", |ends| ends.iter().any(|end| is_it(&end)));
        let end = ends.iter().find(is_it).unwrap();
        end["end"].as_str().unwrap().to_owned()
    }

    pub(crate) fn finish(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.child.wait());
    }
}

pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub(crate) fn legacy_headers(session: &str) -> Vec<(&str, &str)> {
    vec![
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", LEGACY),
    ]
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// An event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: String,
    pub(crate) comment: Option<String>,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    host: String,
    path: String,
    unread: Vec<u8>,
}

impl Client {
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.raw(format!("{head}\r\n{body}").as_bytes());
    }

    /// Sends a message with the headers of every POST, and these.
    pub(crate) fn post(&mut self, headers: &[(&str, &str)], message: &Value) {
        let host = self.host.clone();
        let mut all = vec![
            ("Host", host.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.retain(|(name, _)| !headers.iter().any(|(given, _)| given == name));
        all.extend(headers);
        let path = self.path.clone();
        self.send("POST", &path, &all, &message.to_string());
    }

    /// Sends a modern request with the id 1.
    pub(crate) fn modern(&mut self, method: &str, mut params: Value) {
        params["_meta"] = meta();
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        if method == "tools/call" {
            headers.push(("Mcp-Name", &name));
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&headers, &message);
    }

    /// Sends a legacy request with the id 1; without a session if it is empty.
    pub(crate) fn legacy(&mut self, session: &str, method: &str, params: Value) {
        let headers = match session {
            "" => Vec::new(),
            session => legacy_headers(session),
        };
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&headers, &message);
    }

    /// Asks for a stream.
    pub(crate) fn get(&mut self, headers: &[(&str, &str)]) {
        let host = self.host.clone();
        let mut all = vec![("Host", host.as_str()), ("Accept", "text/event-stream")];
        all.extend(headers);
        let path = self.path.clone();
        self.send("GET", &path, &all, "");
    }

    pub(crate) fn delete(&mut self, session: &str) {
        let host = self.host.clone();
        let mut all = vec![("Host", host.as_str())];
        all.extend(legacy_headers(session));
        let path = self.path.clone();
        self.send("DELETE", &path, &all, "");
    }

    /// Reads more bytes; whether there were any.
    fn more(&mut self) -> std::io::Result<bool> {
        let mut buffer = [0; 65536];
        let read = self.stream.read(&mut buffer)?;
        self.unread.extend(&buffer[..read]);
        Ok(read > 0)
    }

    /// Everything up to the end of the connection, and whether it was reset.
    pub(crate) fn rest(&mut self) -> (String, bool) {
        let reset = loop {
            match self.more() {
                Ok(true) => {}
                Ok(false) => break false,
                Err(error) => break error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        };
        let text = String::from_utf8_lossy(&self.unread).into_owned();
        self.unread.clear();
        (text, reset)
    }

    /// Reads at least this many bytes of anything.
    pub(crate) fn at_least(&mut self, bytes: usize) -> String {
        while self.unread.len() < bytes {
            assert!(self.more().unwrap(), "the connection has ended");
        }
        String::from_utf8_lossy(&self.unread).into_owned()
    }

    fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            let found = self.unread.windows(end.len()).position(|part| part == end);
            if let Some(at) = found {
                return self.unread.drain(..at + end.len()).collect();
            }
            assert!(self.more().unwrap(), "the connection has ended");
        }
    }

    fn exactly(&mut self, count: usize) -> Vec<u8> {
        self.at_least(count);
        self.unread.drain(..count).collect()
    }

    pub(crate) fn head(&mut self) -> Response {
        let head = String::from_utf8(self.until(b"\r\n\r\n")).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        };
        Response {
            status: status.parse().unwrap(),
            headers: lines.map(header).collect(),
            body: Vec::new(),
        }
    }

    /// The next chunk of a body; empty at its end.
    fn chunk(&mut self) -> Vec<u8> {
        let size = String::from_utf8(self.until(b"\r\n")).unwrap();
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let chunk = self.exactly(size);
        assert_eq!(self.exactly(2), b"\r\n");
        chunk
    }

    /// A complete response.
    pub(crate) fn response(&mut self) -> Response {
        let mut response = self.head();
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let chunk = self.chunk();
                if chunk.is_empty() {
                    return response;
                }
                response.body.extend(chunk);
            }
        }
        let length = response.header("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap());
        response.body = self.exactly(length);
        response
    }

    /// The response as a stream, after its head was checked.
    pub(crate) fn stream(mut self) -> Stream {
        let head = self.head();
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Stream {
            client: self,
            text: String::new(),
            ended: false,
        }
    }

    /// Ends the writing half, which a server sees as the end of the client.
    pub(crate) fn leave(self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }
}

/// A response that is a stream of events in chunks.
pub(crate) struct Stream {
    client: Client,
    text: String,
    ended: bool,
}

impl Stream {
    /// The next event; `None` at the orderly end of the response.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            let ends = ["\n\n", "\r\n\r\n", "\r\r"];
            let found = ends.map(|end| self.text.find(end).map(|at| at + end.len()));
            if let Some(end) = found.into_iter().flatten().min() {
                let event: String = self.text.drain(..end).collect();
                return Some(parse_event(&event));
            }
            if self.ended {
                assert_eq!(self.text, "", "the stream ends in an event");
                return None;
            }
            let chunk = self.client.chunk();
            self.ended = chunk.is_empty();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The data of the next event as JSON.
    pub(crate) fn message(&mut self) -> Value {
        self.next().unwrap().json()
    }

    /// The connection, after the orderly end of the response.
    pub(crate) fn end(mut self) -> Client {
        assert_eq!(self.next(), None);
        self.client
    }

    /// The bytes up to the end of the connection, with the frames of chunks.
    pub(crate) fn rest(&mut self) -> (String, bool) {
        let (rest, reset) = self.client.rest();
        (std::mem::take(&mut self.text) + &rest, reset)
    }

    pub(crate) fn leave(self) {
        self.client.leave();
    }
}

fn parse_event(text: &str) -> Event {
    let mut event = Event::default();
    let mut data = Vec::new();
    for line in text.replace("\r\n", "\n").replace('\r', "\n").lines() {
        match line
            .split_once(':')
            .map(|(name, value)| (name, value.trim_start()))
        {
            Some(("data", value)) => data.push(value.to_owned()),
            Some(("event", value)) => event.name = Some(value.to_owned()),
            Some(("id", value)) => event.id = Some(value.to_owned()),
            Some(("retry", value)) => event.retry = Some(value.to_owned()),
            Some(("", value)) => event.comment = Some(value.to_owned()),
            _ => assert_eq!(line, "", "an unknown line in {text:?}"),
        }
    }
    event.data = data.join("\n");
    event
}

/// The text of a tool's result.
pub(crate) fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}
