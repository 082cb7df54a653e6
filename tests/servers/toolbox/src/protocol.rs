//! The MCP protocol of the server: parses a line, determines the era of its request, and answers it. Both eras
//! share the tools, which are independent of eras.

use std::io;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::lines::MAX_LINE;
use crate::output::Output;
use crate::pending::{MAX_PENDING, Pending, Refused};
use crate::tools::{self, Answer, Failure, Tool};

const MODERN: &str = "2026-07-28";
/// Newest first: the first one answers a client that asks for an unknown revision.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The tools are part of the binary, so a list stays valid while the server runs.
const LIST_TTL_MS: u64 = 3_600_000;

const INSTRUCTIONS: &str = "Small tools without side effects. `time_*` work on UTC times, `text_*` on text, `json_*` and `data_table` on JSON, `base64_*`, `hex` and `hash_*` on bytes. `slow_echo` and `fail` are there to try a client with.";

const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

struct RpcError {
    code: i64,
    message: String,
    data: Option<Value>,
}

/// A request that is answered now, or a call whose answer comes from another thread.
enum Reply {
    Now(Value),
    Deferred,
}

pub(crate) struct Server {
    output: Output,
    tools: Vec<Tool>,
    pending: Pending,
    /// Set by `initialize`, for the life of the process.
    legacy: Option<&'static str>,
}

impl Server {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            output,
            tools: tools::all(),
            pending: Pending::default(),
            legacy: None,
        }
    }

    /// Handles one line; fails only if the answer cannot be written.
    pub(crate) fn receive(&mut self, line: &[u8]) -> io::Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                let error = RpcError::new(-32700, format!("the line is not JSON: {error}"));
                return self.send_error(None, error);
            }
        };
        match message {
            // Batches exist only in 2025-03-26. Each member is answered on a separate line, since a slow one must not
            // delay the others.
            Value::Array(batch) if self.legacy == Some("2025-03-26") && !batch.is_empty() => batch
                .iter()
                .try_for_each(|message| self.receive_message(message)),
            message => self.receive_message(&message),
        }
    }

    /// The answer to a line that was too long.
    pub(crate) fn refuse_long_line(&self) -> io::Result<()> {
        let message = format!("the line is longer than {MAX_LINE} bytes");
        self.send_error(None, RpcError::new(-32700, message))
    }

    fn receive_message(&mut self, message: &Value) -> io::Result<()> {
        let id = message.get("id");
        let usable = id.filter(|id| id.is_string() || id.is_i64() || id.is_u64());
        if id.is_some() && usable.is_none() {
            let error = RpcError::new(-32600, "`id` must be a string or an integer");
            return self.send_error(None, error);
        }
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        let Some(method) = message["method"]
            .as_str()
            .filter(|_| message["jsonrpc"] == "2.0")
        else {
            // This server sends no requests, so an answer is ignored.
            return if is_answer {
                Ok(())
            } else {
                let error = RpcError::new(-32600, "the message is not a JSON-RPC 2.0 request");
                self.send_error(usable, error)
            };
        };
        let params = &message["params"];
        let Some(id) = usable else {
            if method == "notifications/cancelled" {
                self.pending.cancel(&params["requestId"]);
            }
            return Ok(());
        };
        match self.answer(id, method, params) {
            Ok(Reply::Now(result)) => self.output.send(&success(id, &result)),
            Ok(Reply::Deferred) => Ok(()),
            Err(error) => self.send_error(Some(id), error),
        }
    }

    fn answer(&mut self, id: &Value, method: &str, params: &Value) -> Result<Reply, RpcError> {
        let meta = &params["_meta"];
        let asks_modern = meta.get(META_VERSION).is_some();
        if method == "initialize" && !asks_modern {
            return Ok(Reply::Now(self.initialize(params)));
        }
        if method == "ping" && !asks_modern {
            return Ok(Reply::Now(json!({})));
        }
        let era = if asks_modern || self.legacy.is_none() || method == "server/discover" {
            check_meta(meta)?;
            Era::Modern
        } else {
            Era::Legacy
        };
        match method {
            "server/discover" => Ok(Reply::Now(discover())),
            "tools/list" => self.list(era, params).map(Reply::Now),
            "tools/call" => self.call(era, id, params),
            _ => Err(RpcError::new(
                -32601,
                format!("method `{}` is not known", method.escape_debug()),
            )),
        }
    }

    fn initialize(&mut self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str();
        let version = LEGACY
            .into_iter()
            .find(|version| Some(*version) == asked)
            .unwrap_or(LEGACY[0]);
        self.legacy = Some(version);
        json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": server_info(),
            "instructions": INSTRUCTIONS,
        })
    }

    fn list(&self, era: Era, params: &Value) -> Result<Value, RpcError> {
        if !params["cursor"].is_null() {
            return Err(RpcError::new(
                -32602,
                "`cursor` is not one of this server: the list has one page",
            ));
        }
        let tools: Vec<_> = self.tools.iter().map(Tool::describe).collect();
        Ok(match era {
            Era::Legacy => json!({"tools": tools}),
            Era::Modern => cacheable(json!({"tools": tools})),
        })
    }

    fn call(&self, era: Era, id: &Value, params: &Value) -> Result<Reply, RpcError> {
        let name = params["name"]
            .as_str()
            .ok_or_else(|| RpcError::new(-32602, "`name` must be a string"))?;
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| {
            RpcError::new(
                -32602,
                format!("tool `{}` is not known", name.escape_debug()),
            )
        })?;
        let none = Map::new();
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => &none,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(RpcError::new(-32602, "`arguments` must be an object")),
        };
        match tool.call(arguments) {
            Ok(Answer::Text(text)) => Ok(Reply::Now(text_result(era, &text, false))),
            Ok(Answer::Structured(value)) => {
                let mut result = text_result(era, &value.to_string(), false);
                result["structuredContent"] = value;
                Ok(Reply::Now(result))
            }
            Ok(Answer::Later(wait, text)) => {
                let reply = success(id, &text_result(era, &text, false));
                // If stdout is closed, the reading loop ends the process.
                let (token, ticks) = (
                    params["_meta"]["progressToken"].clone(),
                    self.output.clone(),
                );
                let tick = move |second| {
                    if !token.is_null() {
                        drop(ticks.send(&progress(&token, second, wait)));
                    }
                };
                let output = self.output.clone();
                let finish = move || drop(output.send(&reply));
                self.pending.begin(id, wait, tick, finish)?;
                Ok(Reply::Deferred)
            }
            Err(Failure::Tool(message)) => Ok(Reply::Now(text_result(era, &message, true))),
            Err(Failure::Rpc { code, message }) => Err(RpcError::new(code, message)),
        }
    }

    fn send_error(&self, id: Option<&Value>, error: RpcError) -> io::Result<()> {
        let mut body = json!({"code": error.code, "message": error.message});
        if let Some(data) = error.data {
            body["data"] = data;
        }
        let mut message = json!({"jsonrpc": "2.0", "error": body});
        // MCP has no null id: an unreadable id is left out.
        if let Some(id) = id {
            message["id"] = id.clone();
        }
        self.output.send(&message)
    }
}

impl RpcError {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

impl From<Refused> for RpcError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooMany => Self::new(
                -32603,
                format!("{MAX_PENDING} slow calls are waiting already"),
            ),
            Refused::IdInUse => Self::new(-32600, "`id` is in use by a call that is waiting"),
            Refused::NoThread => Self::new(-32603, "no thread could be started for the wait"),
        }
    }
}

/// The required keys of a request of the modern era.
fn check_meta(meta: &Value) -> Result<(), RpcError> {
    let required = |key: &str, what: &str| {
        let message = format!("`_meta` must have `{key}`, {what}");
        RpcError::new(-32602, message)
    };
    let version = meta[META_VERSION]
        .as_str()
        .ok_or_else(|| required(META_VERSION, "a string, unless `initialize` came before"))?;
    if !meta[META_CAPABILITIES].is_object() {
        return Err(required(META_CAPABILITIES, "an object"));
    }
    if version != MODERN {
        let message = format!(
            "protocol version `{}` is not supported",
            version.escape_debug()
        );
        let mut error = RpcError::new(-32022, message);
        error.data = Some(json!({"supported": [MODERN], "requested": version}));
        return Err(error);
    }
    match meta.get(META_LOG_LEVEL) {
        Some(level)
            if !level
                .as_str()
                .is_some_and(|level| LOG_LEVELS.contains(&level)) =>
        {
            Err(RpcError::new(
                -32602,
                format!("`{META_LOG_LEVEL}` is not a log level"),
            ))
        }
        _ => Ok(()),
    }
}

fn discover() -> Value {
    cacheable(json!({
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "instructions": INSTRUCTIONS,
    }))
}

fn text_result(era: Era, text: &str, is_error: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    if era == Era::Modern {
        complete(&mut result);
    }
    result
}

fn cacheable(mut result: Value) -> Value {
    complete(&mut result);
    result["ttlMs"] = json!(LIST_TTL_MS);
    result["cacheScope"] = json!("public");
    result
}

fn complete(result: &mut Value) {
    result["resultType"] = json!("complete");
    result["_meta"] = json!({META_SERVER: server_info()});
}

fn success(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns the notification that a slow call has waited so many seconds.
fn progress(token: &Value, seconds: u64, wait: Duration) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": seconds, "total": wait.as_secs_f64()},
    })
}

fn server_info() -> Value {
    json!({
        "name": "toolbox-mcp",
        "title": "Toolbox",
        "version": env!("CARGO_PKG_VERSION"),
    })
}
