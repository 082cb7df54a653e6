//! A minimal direct MCP client over streamable HTTP: the answers of a server without a broker.

use serde_json::{Value, json};

use crate::http::{Response, request};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// A server over HTTP that is used directly, in the era that it supports.
#[derive(Debug)]
pub struct DirectHttpServer {
    address: String,
    path: String,
    token: Option<String>,
    next: u64,
    is_modern: bool,
    session: Option<String>,
}

impl DirectHttpServer {
    /// Connects to a URL: `server/discover` first, `initialize` if that is refused.
    pub fn connect(url: &str) -> Self {
        Self::with_token(url, None)
    }

    /// Connects with this bearer token.
    pub fn with_token(url: &str, token: Option<&str>) -> Self {
        let (address, path) = url
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'))
            .expect("a URL over HTTP with a path");
        let mut server = Self {
            address: address.to_owned(),
            path: format!("/{path}"),
            token: token.map(str::to_owned),
            next: 0,
            is_modern: true,
            session: None,
        };
        let discovered = server.exchange("server/discover", json!({}));
        let versions = discovered.and_then(|answer| {
            answer
                .pointer("/result/supportedVersions")
                .map(Value::to_string)
        });
        if !versions.is_some_and(|versions| versions.contains(MODERN)) {
            server.is_modern = false;
            server.initialize();
        }
        server
    }

    fn initialize(&mut self) {
        let hello = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "direct", "version": "0"}});
        let message = self.message("initialize", hello);
        let response = self.post(&message);
        self.session = response.header("mcp-session-id").map(str::to_owned);
        let answer = answer_of(&response, &message["id"]).expect("an answer to `initialize`");
        assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
        let noted = self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(noted.status, 202, "{}", noted.text());
    }

    /// Whether it supports 2026-07-28.
    pub fn is_modern(&self) -> bool {
        self.is_modern
    }

    /// Whether it opened a session.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Every tool, all pages.
    pub fn tools(&mut self) -> Vec<Value> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        loop {
            let answer = self.request("tools/list", params);
            let page = answer["result"]["tools"].as_array();
            tools.extend(page.expect("a list of tools").iter().cloned());
            match &answer["result"]["nextCursor"] {
                Value::Null => return tools,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
    }

    /// The complete answer to `tools/call`.
    pub fn call(&mut self, tool: &str, args: &Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": args}))
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let answer = self.exchange(method, params);
        answer.unwrap_or_else(|| panic!("{method} has no answer"))
    }

    fn exchange(&mut self, method: &str, params: Value) -> Option<Value> {
        let message = self.message(method, params);
        answer_of(&self.post(&message), &message["id"])
    }

    fn message(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        if self.is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "direct", "version": "0"},
            });
        }
        json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
    }

    fn post(&self, message: &Value) -> Response {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut headers = vec![
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        if self.is_modern {
            headers.push(("MCP-Protocol-Version", MODERN.to_owned()));
            headers.push(("Mcp-Method", text(&message["method"])));
            if message["params"]["name"].is_string() {
                headers.push(("Mcp-Name", text(&message["params"]["name"])));
            }
        } else if message["method"] != "initialize" {
            headers.push(("MCP-Protocol-Version", LEGACY.to_owned()));
        }
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id", session.clone()));
        }
        if let Some(token) = &self.token {
            headers.push(("Authorization", format!("Bearer {token}")));
        }
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let body = message.to_string();
        let (address, path) = (&self.address, &self.path);
        let mut response = request(address, "POST", path, &headers, body.as_bytes());
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = joined(&response.body);
        }
        response
    }
}

/// The answer with this id: the body, or an event of it.
fn answer_of(response: &Response, id: &Value) -> Option<Value> {
    let text = response.text();
    let media = response.header("content-type").unwrap_or_default();
    let messages: Vec<&str> = match media.starts_with("text/event-stream") {
        true => text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .collect(),
        false => vec![&text],
    };
    let mut messages = messages
        .into_iter()
        .filter_map(|message| serde_json::from_str::<Value>(message).ok());
    messages.find(|message| message["id"] == *id && message.get("method").is_none())
}

/// The bytes of a chunked body.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let length = String::from_utf8_lossy(&rest[..end]);
        let length = usize::from_str_radix(length.trim(), 16).expect("a chunk has a length");
        if length == 0 {
            return body;
        }
        let begin = end + 2;
        body.extend_from_slice(&rest[begin..begin + length]);
        rest = &rest[begin + length + 2..];
    }
    panic!("the last chunk is missing")
}
