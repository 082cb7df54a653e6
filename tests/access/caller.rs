//! A caller with a key, over the meta API and over MCP in both eras.

use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use harness::mcp_http::{ACCEPT, EventReader, MODERN, initialize};
use harness::{Response, Run, binary, read, request, send};
use serde_json::{Value, json};

/// The latest revision of the legacy era.
const LEGACY: &str = "2025-11-25";

/// The timeout of a wait for the end of a stream. Generous: machines are shared.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// An API key and its entry in a config.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) entry: Value,
}

impl Key {
    /// A new key of this name with these groups.
    pub(crate) fn new(name: &str, groups: &[&str]) -> Self {
        let output = Run::new(&binary("mcp-broker"))
            .args(["key", "new", name, "--json"])
            .output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let made: Value = serde_json::from_str(&output.stdout).expect("one object");
        let mut entry = made["entry"].clone();
        entry["groups"] = json!(groups);
        let text = made["key"].as_str().expect("a key").to_owned();
        Self { text, entry }
    }

    /// Its entry with other groups.
    pub(crate) fn in_groups(&self, groups: &[&str]) -> Value {
        let mut entry = self.entry.clone();
        entry["groups"] = json!(groups);
        entry
    }

    /// A caller of the broker at `address` with this key.
    pub(crate) fn at(&self, address: &str) -> Caller {
        Caller {
            address: address.to_owned(),
            credential: vec![("Authorization".to_owned(), format!("Bearer {}", self.text))],
        }
    }
}

/// A caller of a broker.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) address: String,
    /// The headers that identify it.
    pub(crate) credential: Vec<(String, String)>,
}

/// A message of the legacy era or a request that describes itself, as bytes of a body.
fn message(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

impl Caller {
    /// A caller that sends these headers.
    pub(crate) fn with(address: &str, credential: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            address: address.to_owned(),
            credential: credential.iter().map(owned).collect(),
        }
    }

    /// A request with its credential and these headers.
    pub(crate) fn request(
        &self,
        method: &str,
        route: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let own = self.credential.iter();
        let mut all: Vec<(&str, &str)> = own.map(|(a, b)| (a.as_str(), b.as_str())).collect();
        all.extend(headers);
        request(&self.address, method, route, &all, body.as_bytes())
    }

    /// The same, without reading the answer. Dropping the connection disconnects the caller.
    pub(crate) fn open(
        &self,
        method: &str,
        route: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut head = format!("{method} {route} HTTP/1.1\r\nHost: {}\r\n", self.address);
        let own = self.credential.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(headers.iter().copied()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = body.len();
        let text = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        send(&self.address, text.as_bytes())
    }

    pub(crate) fn get(&self, route: &str) -> Response {
        self.request("GET", route, &[], "")
    }

    pub(crate) fn post(&self, route: &str, body: &Value) -> Response {
        let headers = [("Content-Type", "application/json")];
        self.request("POST", route, &headers, &body.to_string())
    }

    pub(crate) fn tree(&self, path: &str, depth: u8) -> Response {
        self.post("/meta_tree", &json!({"path": path, "depth": depth}))
    }

    pub(crate) fn describe(&self, path: &str) -> Response {
        self.post("/meta_desc", &json!({"path": path}))
    }

    pub(crate) fn call(&self, path: &str, args: &Value) -> Response {
        self.post("/meta_call", &json!({"path": path, "args": args}))
    }

    /// A call whose answer is read later.
    pub(crate) fn begin_call(&self, path: &str, args: &Value) -> TcpStream {
        let headers = [("Content-Type", "application/json")];
        let body = json!({"path": path, "args": args}).to_string();
        self.open("POST", "/meta_call", &headers, &body)
    }

    /// Begins a legacy session.
    pub(crate) fn session(&self, route: &str) -> Session {
        let refused = |reply: Response| panic!("{}: {}", reply.status, reply.text());
        self.try_session(route).unwrap_or_else(refused).0
    }

    /// Begins a session and returns the reply as well, or the refusal.
    pub(crate) fn try_session(&self, route: &str) -> Result<(Session, Response), Response> {
        let headers = [("Content-Type", "application/json"), ("Accept", ACCEPT)];
        let reply = self.request("POST", route, &headers, &initialize(LEGACY));
        match reply.header("mcp-session-id") {
            Some(id) => {
                let session = Session {
                    caller: self.clone(),
                    route: route.to_owned(),
                    id: id.to_owned(),
                };
                Ok((session, reply))
            }
            None => Err(reply),
        }
    }

    /// A request of the modern era.
    pub(crate) fn modern(&self, route: &str, method: &str, params: &Value) -> Response {
        read(self.open_modern(route, method, params))
    }

    /// The same, without reading the answer.
    pub(crate) fn open_modern(&self, route: &str, method: &str, params: &Value) -> TcpStream {
        let mut params = params.clone();
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", ACCEPT),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
        ];
        if let Some(name) = params["name"].as_str() {
            headers.push(("Mcp-Name", name));
        }
        let body = message(method, &params).to_string();
        self.open("POST", route, &headers, &body)
    }

    /// A subscription to changes of the list of tools, acknowledged.
    pub(crate) fn subscription(&self) -> EventReader {
        let params = json!({"notifications": {"toolsListChanged": true}});
        let opened = self.open_modern("/mcp/direct", "subscriptions/listen", &params);
        let mut events = EventReader::open(opened);
        let first = events.next_message().expect("an acknowledgement");
        let method = "notifications/subscriptions/acknowledged";
        assert_eq!(first["method"], method, "{first}");
        events
    }
}

/// A legacy session of a caller.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) caller: Caller,
    pub(crate) route: String,
    pub(crate) id: String,
}

impl Session {
    /// The same session, as another caller names it.
    pub(crate) fn by(&self, caller: &Caller) -> Self {
        Self {
            caller: caller.clone(),
            ..self.clone()
        }
    }

    fn headers(&self) -> [(&str, &str); 3] {
        [
            ("Content-Type", "application/json"),
            ("Accept", ACCEPT),
            ("Mcp-Session-Id", &self.id),
        ]
    }

    pub(crate) fn ask(&self, method: &str, params: &Value) -> Response {
        let body = message(method, params).to_string();
        self.caller
            .request("POST", &self.route, &self.headers(), &body)
    }

    /// The result of a request.
    pub(crate) fn result(&self, method: &str, params: &Value) -> Value {
        let value = self.ask(method, params).json();
        assert!(value["result"].is_object(), "{value}");
        value["result"].clone()
    }

    /// A request with this id whose answer is read later.
    pub(crate) fn begin(&self, id: &Value, method: &str, params: &Value) -> TcpStream {
        let mut body = message(method, params);
        body["id"] = id.clone();
        let headers = self.headers();
        self.caller
            .open("POST", &self.route, &headers, &body.to_string())
    }

    /// A notification.
    pub(crate) fn notify(&self, method: &str, params: &Value) -> Response {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let headers = self.headers();
        self.caller
            .request("POST", &self.route, &headers, &body.to_string())
    }

    pub(crate) fn delete(&self) -> Response {
        self.caller
            .request("DELETE", &self.route, &self.headers()[1..], "")
    }

    /// The answer to a request for the stream of the session that is refused.
    pub(crate) fn refused_stream(&self) -> Response {
        let headers = [
            ("Accept", "text/event-stream"),
            ("Mcp-Session-Id", &self.id),
        ];
        self.caller.request("GET", &self.route, &headers, "")
    }

    /// The stream of the session.
    pub(crate) fn stream(&self) -> EventReader {
        let headers = [
            ("Accept", "text/event-stream"),
            ("Mcp-Session-Id", &self.id),
        ];
        EventReader::open(self.caller.open("GET", &self.route, &headers, ""))
    }
}

/// The names of all tools of `tools/list`, over all pages; `ask` sends one request.
pub(crate) fn listed(ask: impl Fn(&Value) -> Response) -> Vec<String> {
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let reply = ask(&params).json();
        let tools = reply["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("a list: {reply}"));
        let new = tools.iter().filter_map(|tool| tool["name"].as_str());
        names.extend(new.map(str::to_owned));
        match &reply["result"]["nextCursor"] {
            Value::Null => return names,
            cursor => params = json!({"cursor": cursor}),
        }
    }
}

/// The messages of a stream until its end, which comes soon. A stream that goes on has comments, so that a
/// reader would wait for ever.
pub(crate) fn until_end(mut stream: EventReader) -> Vec<Value> {
    let (sender, messages) = mpsc::channel();
    thread::spawn(move || {
        let rest = std::iter::from_fn(|| stream.next_message()).collect();
        // The test may have failed meanwhile.
        let _ = sender.send(rest);
    });
    let rest = messages.recv_timeout(END_TIMEOUT);
    rest.expect("the stream ends")
}
