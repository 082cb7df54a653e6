//! A minimal direct MCP client: the answers of a server without a broker.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::program::Run;

/// A server that is used directly, in the era that it supports.
#[derive(Debug)]
pub struct DirectServer {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
    modern: bool,
}

impl DirectServer {
    /// Starts it: `server/discover` first, `initialize` if that is refused.
    pub fn start(run: Run) -> Self {
        let mut command = run.into_command();
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the server starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut server = Self {
            child,
            stdin,
            stdout,
            next: 0,
            modern: true,
        };
        if server
            .request("server/discover", json!({}))
            .get("result")
            .is_none()
        {
            server.modern = false;
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "direct", "version": "0"}});
            let answer = server.request("initialize", hello);
            assert!(answer.get("result").is_some(), "{answer}");
            server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        server
    }

    /// Whether it supports 2026-07-28.
    pub fn is_modern(&self) -> bool {
        self.modern
    }

    /// Every tool, all pages.
    pub fn tools(&mut self) -> Vec<Value> {
        let (mut tools, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = if cursor.is_null() {
                json!({})
            } else {
                json!({"cursor": cursor})
            };
            let answer = self.request("tools/list", params);
            tools.extend(
                answer["result"]["tools"]
                    .as_array()
                    .expect("a list of tools")
                    .clone(),
            );
            cursor = answer["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return tools;
            }
        }
    }

    /// The complete answer to `tools/call`.
    pub fn call(&mut self, tool: &str, args: &Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": args}))
    }

    /// The complete answer to a request.
    pub fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "direct", "version": "0"},
            });
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.stdout
                    .read_line(&mut line)
                    .expect("the server answers")
                    > 0,
                "the server ended during {method}"
            );
            match serde_json::from_str::<Value>(&line) {
                Ok(answer) if answer["id"] == id => return answer,
                _ => {}
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("the server reads");
    }
}

impl Drop for DirectServer {
    fn drop(&mut self) {
        // A server that already ended cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The JSON in the text of a result of a meta-tool.
pub fn json_text(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no text: {result}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The paths in the lines of a result of `meta_tree`, without the slash at the end of a node.
pub fn tree_paths(result: &Value) -> Vec<String> {
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no text: {result}"));
    let path = |line: &str| {
        let (path, _) = line.split_once("  ")?;
        Some(path.trim_end_matches('/').to_owned())
    };
    text.lines().filter_map(path).collect()
}
