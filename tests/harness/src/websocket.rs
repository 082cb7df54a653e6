//! A client of the broker over WebSocket.

use std::io::{Cursor, Read as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use crate::http::{Response, read_from, send};

/// The key of every handshake; the broker does not depend on it.
const HANDSHAKE_KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// The value of `Sec-WebSocket-Accept` for it (RFC 6455, 1.3).
const ACCEPTED_KEY: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// An open connection.
#[derive(Debug)]
pub struct WebSocketClient {
    /// The connection, for frames that are not messages.
    pub socket: WebSocket<TcpStream>,
    /// The subprotocol that the broker chose.
    pub subprotocol: Option<String>,
    next_id: u64,
}

impl WebSocketClient {
    /// Connects to a target such as `/ws/mcp`.
    pub fn connect(address: &str, target: &str) -> Self {
        Self::try_connect(address, target, &[]).unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    /// Connects with more headers, or returns the refusal.
    pub fn try_connect(
        address: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, Response> {
        let mut head = format!(
            "GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {HANDSHAKE_KEY}\r\n"
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut stream = send(address, head.as_bytes());
        let mut reply = Vec::new();
        let mut byte = [0];
        while !reply.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).expect("a reply comes");
            reply.push(byte[0]);
        }
        if !reply.starts_with(b"HTTP/1.1 101 ") {
            let mut whole = Cursor::new(reply).chain(stream);
            let mut whole = std::io::BufReader::new(&mut whole);
            return Err(read_from(&mut whole).expect("the refusal is complete"));
        }
        let reply = String::from_utf8(reply)
            .expect("a head is text")
            .to_lowercase();
        let header = |name: &str| {
            let line = reply.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        let accepted = header("sec-websocket-accept:");
        assert_eq!(accepted, Some(ACCEPTED_KEY.to_lowercase()), "{reply}");
        Ok(Self {
            socket: WebSocket::from_raw_socket(stream, Role::Client, None),
            subprotocol: header("sec-websocket-protocol:"),
            next_id: 0,
        })
    }

    /// Sends a text frame.
    pub fn send(&mut self, text: &str) {
        let sent = self.socket.send(Message::text(text));
        sent.expect("the connection is open");
    }

    /// Sends a request; returns its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string());
        id
    }

    /// The next message.
    pub fn next_message(&mut self) -> Value {
        loop {
            match self.socket.read().expect("a message comes") {
                Message::Text(text) => return serde_json::from_str(&text).expect("it is JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("no message: {other:?}"),
            }
        }
    }

    /// The messages up to the answer to a request, which is the last one.
    pub fn messages(&mut self, method: &str, params: &Value) -> Vec<Value> {
        let id = self.request(method, params);
        let mut all = Vec::new();
        while all.last().is_none_or(|message: &Value| message["id"] != id) {
            all.push(self.next_message());
        }
        all
    }

    /// The answer to a request.
    pub fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.messages(method, params).pop().expect("an answer")
    }

    /// The result of a request.
    pub fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Reads up to the end of the connection; returns the code with which it was closed, and the reason.
    pub fn close_code(&mut self) -> (u16, String) {
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(frame))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("the connection was not closed with a code: {other:?}"),
            }
        }
    }
}
