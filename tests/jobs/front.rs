//! Clients of MCP that may know tasks, in both eras.

use std::net::TcpStream;

use harness::mcp_http::MODERN;
use harness::{Broker, Response, request, send, wait_within};
use serde_json::{Value, json};

use crate::stage::JOB_TIMEOUT;

/// The extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A client of a broker, with a key or without one.
#[derive(Clone, Copy)]
pub(crate) struct Front<'a> {
    pub(crate) broker: &'a Broker,
    pub(crate) key: Option<&'a str>,
    /// Whether its modern requests declare the extension.
    pub(crate) has_tasks: bool,
}

impl<'a> Front<'a> {
    /// A client with tasks, without a key.
    pub(crate) fn of(broker: &'a Broker) -> Self {
        Self {
            broker,
            key: None,
            has_tasks: true,
        }
    }

    pub(crate) fn with_key(self, key: &'a str) -> Self {
        Self {
            key: Some(key),
            ..self
        }
    }

    pub(crate) fn without_tasks(self) -> Self {
        Self {
            has_tasks: false,
            ..self
        }
    }

    /// Returns the body of a modern request.
    fn modern_body(self, method: &str, params: &Value) -> String {
        let mut params = params.clone();
        let capabilities = match self.has_tasks {
            true => json!({"extensions": {EXTENSION: {}}}),
            false => json!({}),
        };
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
    }

    /// Sends a modern request on a route, with this value of `Mcp-Name`.
    pub(crate) fn named(
        self,
        route: &str,
        (method, name): (&str, &str),
        params: &Value,
    ) -> Response {
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
            ("Mcp-Name", name),
        ];
        headers.extend(self.key.map(|key| ("X-API-Key", key)));
        let body = self.modern_body(method, params);
        request(
            self.broker.address(),
            "POST",
            route,
            &headers,
            body.as_bytes(),
        )
    }

    /// Sends a modern request.
    pub(crate) fn modern(self, method: &str, params: &Value) -> Response {
        let name = params["name"].as_str().or(params["taskId"].as_str());
        self.named("/mcp/direct", (method, name.unwrap_or("-")), params)
    }

    /// Returns the result of a modern request.
    pub(crate) fn result(self, method: &str, params: &Value) -> Value {
        let reply = self.modern(method, params).json();
        assert!(reply["result"].is_object(), "{method} {params}: {reply}");
        reply["result"].clone()
    }

    /// Returns the code of the error of a modern request.
    pub(crate) fn error(self, method: &str, params: &Value) -> i64 {
        let reply = self.modern(method, params).json();
        let code = reply["error"]["code"].as_i64();
        code.unwrap_or_else(|| panic!("{method} {params}: {reply}"))
    }

    /// Calls a tool by its flat name.
    pub(crate) fn call(self, tool: &str, args: &Value) -> Value {
        let name = format!("a-{tool}");
        self.result("tools/call", &json!({"name": name, "arguments": args}))
    }

    /// Makes a task of a call that asks for a job.
    pub(crate) fn make(self, tool: &str, args: &Value) -> Value {
        let arguments = json!({"path": format!("/a/{tool}"), "args": args, "mode": "async"});
        let params = json!({"name": "meta_call", "arguments": arguments});
        let reply = self.named("/mcp", ("tools/call", "meta_call"), &params);
        let task = reply.json()["result"].clone();
        assert_eq!(task["resultType"], "task", "{}", reply.text());
        task
    }

    pub(crate) fn get(self, id: &str) -> Value {
        self.result("tasks/get", &json!({"taskId": id}))
    }

    /// Waits until a task has a status, and returns it.
    pub(crate) fn wait(self, id: &str, status: &str) -> Value {
        let mut task = Value::Null;
        wait_within(JOB_TIMEOUT, &format!("{id} is {status}"), || {
            task = self.get(id);
            task["status"] == status
        });
        task
    }

    /// Opens a subscription, whose stream is not read.
    pub(crate) fn listen(self, notifications: &Value) -> TcpStream {
        let address = self.broker.address();
        let params = json!({"notifications": notifications});
        let body = self.modern_body("subscriptions/listen", &params);
        let key = self
            .key
            .map_or_else(String::new, |key| format!("X-API-Key: {key}\r\n"));
        let length = body.len();
        let bytes = format!(
            "POST /mcp/direct HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Method: subscriptions/listen\r\n{key}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        send(address, bytes.as_bytes())
    }

    /// Begins a legacy session on a route, and returns it with the result of `initialize`.
    pub(crate) fn begin(self, route: &'a str, revision: &str) -> (Session<'a>, Value) {
        let mut session = Session {
            front: self,
            route,
            id: None,
        };
        let params = json!({
            "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        });
        let reply = session.ask("initialize", &params);
        let id = reply.header("mcp-session-id").expect("a session");
        session.id = Some(id.to_owned());
        (session, reply.json()["result"].clone())
    }

    /// Begins a session of the revision with tasks.
    pub(crate) fn session(self) -> Session<'a> {
        self.begin("/mcp/direct", "2025-11-25").0
    }
}

/// A legacy session.
#[derive(Clone)]
pub(crate) struct Session<'a> {
    front: Front<'a>,
    route: &'a str,
    id: Option<String>,
}

impl Session<'_> {
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Response {
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream;q=0"),
        ];
        headers.extend(self.front.key.map(|key| ("X-API-Key", key)));
        headers.extend(self.id.as_deref().map(|id| ("Mcp-Session-Id", id)));
        let body = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params});
        let address = self.front.broker.address();
        request(
            address,
            "POST",
            self.route,
            &headers,
            body.to_string().as_bytes(),
        )
    }

    /// Sends a request and does not read its reply.
    pub(crate) fn send(&self, id: usize, method: &str, params: &Value) -> TcpStream {
        let address = self.front.broker.address();
        let key = self
            .front
            .key
            .map_or_else(String::new, |key| format!("X-API-Key: {key}\r\n"));
        let session = self.id.as_deref().unwrap_or_default();
        let body =
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let (route, length) = (self.route, body.len());
        let bytes = format!(
            "POST {route} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json\r\nMcp-Session-Id: {session}\r\n{key}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        send(address, bytes.as_bytes())
    }

    pub(crate) fn result(&self, method: &str, params: &Value) -> Value {
        let reply = self.ask(method, params).json();
        assert!(reply["result"].is_object(), "{method} {params}: {reply}");
        reply["result"].clone()
    }

    /// Returns the error of a request.
    pub(crate) fn error(&self, method: &str, params: &Value) -> Value {
        let reply = self.ask(method, params).json();
        assert!(
            reply["error"]["code"].is_i64(),
            "{method} {params}: {reply}"
        );
        reply["error"].clone()
    }

    /// Makes a task of a call of a flat tool.
    pub(crate) fn make(&self, tool: &str, args: &Value, task: &Value) -> Value {
        let name = format!("a-{tool}");
        let params = json!({"name": name, "arguments": args, "task": task});
        self.result("tools/call", &params)["task"].clone()
    }

    /// Waits until a task has a status, and returns it.
    pub(crate) fn wait(&self, id: &str, status: &str) -> Value {
        let mut task = Value::Null;
        wait_within(JOB_TIMEOUT, &format!("{id} is {status}"), || {
            task = self.result("tasks/get", &json!({"taskId": id}));
            task["status"] == status
        });
        task
    }
}

/// Returns the id of a task.
pub(crate) fn id(task: &Value) -> String {
    let id = task["taskId"].as_str();
    id.unwrap_or_else(|| panic!("a task: {task}")).to_owned()
}
