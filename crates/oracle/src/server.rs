//! A server with few tools and constant answers: every kind of content, structured results with edge cases, both
//! kinds of failure, and one tool that never ends.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// The server. It speaks both eras, as the SDK does.
#[derive(Clone, Copy, Debug, Default)]
pub struct OracleServer {
    /// Without the modern era.
    pub legacy_only: bool,
}

impl ServerHandler for OracleServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let info = Implementation::new("oracle-mcp", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(info)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const LEGACY: [ProtocolVersion; 2] =
            [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25];
        if self.legacy_only {
            Cow::Borrowed(&LEGACY)
        } else {
            Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        serde_json::from_value(json!({ "tools": tools(), "resultType": "complete" }))
            .map_err(|error| internal(&error))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools: Vec<Tool> = serde_json::from_value(tools()).ok()?;
        tools.into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        let mut result = match &*request.name {
            "echo" => echo(&args),
            "add" => add(&args),
            "blocks" => blocks(),
            "values" => values(),
            "refuse" => json!({
                "content": [{ "type": "text", "text": "this tool always refuses" }],
                "isError": true,
            }),
            "fail" => {
                let data = json!({ "reason": "planned", "at": [1, 2, 3] });
                return Err(ErrorData::invalid_params("planned failure", Some(data)));
            }
            "wait" => {
                context.ct.cancelled().await;
                return Err(ErrorData::internal_error("cancelled", None));
            }
            other => {
                let message = format!("unknown tool: {other}");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        // The SDK removes it for clients of the legacy era.
        result["resultType"] = json!("complete");
        let result: CallToolResult =
            serde_json::from_value(result).map_err(|error| internal(&error))?;
        Ok(result.into())
    }
}

fn internal(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn structured(value: &Value) -> Value {
    json!({
        "content": [{ "type": "text", "text": value.to_string() }],
        "structuredContent": value,
        "isError": false,
    })
}

fn echo(args: &JsonObject) -> Value {
    let text = args.get("text").and_then(Value::as_str).unwrap_or_default();
    json!({ "content": [{ "type": "text", "text": text }], "isError": false })
}

fn add(args: &JsonObject) -> Value {
    let number = |name: &str| args.get(name).and_then(Value::as_f64).unwrap_or_default();
    structured(&json!({ "sum": number("a") + number("b") }))
}

fn blocks() -> Value {
    json!({
        "content": [
            { "type": "text", "text": "one\ntwo", "annotations": { "audience": ["user"], "priority": 0.5 } },
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
            { "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" },
            { "type": "resource_link", "uri": "file:///a.txt", "name": "a", "mimeType": "text/plain" },
            { "type": "resource", "resource": { "uri": "mem://b", "mimeType": "text/plain", "text": "b" } },
        ],
        "isError": false,
        "_meta": { "example.org/note": "kept" },
    })
}

fn values() -> Value {
    structured(&json!({
        "largest": u64::MAX,
        "least": i64::MIN,
        "float": 0.1,
        "tiny": 5e-324,
        "whole": 1.0,
        "text": "\u{0}\u{7f}\u{2028}\u{1f600}\"\\é",
        "empty": [{}, [], "", null, false],
        "nested": { "a": { "b": { "c": [[[1]]] } } },
    }))
}

fn tools() -> Value {
    let nothing = json!({ "type": "object", "properties": {} });
    let pure = json!({ "readOnlyHint": true, "openWorldHint": false });
    let numbers = json!({
        "type": "object",
        "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
        "required": ["a", "b"],
    });
    let sum = json!({
        "type": "object",
        "properties": { "sum": { "type": "number" } },
        "required": ["sum"],
    });
    let text = json!({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "required": ["text"],
    });
    json!([
        { "name": "add", "title": "Add", "description": "Adds two numbers.", "inputSchema": numbers, "outputSchema": sum, "annotations": pure },
        { "name": "blocks", "description": "One content block of every kind.", "inputSchema": nothing, "annotations": pure },
        { "name": "echo", "description": "Says it again.", "inputSchema": text, "annotations": pure },
        { "name": "fail", "description": "Answers with a JSON-RPC error.", "inputSchema": nothing },
        { "name": "refuse", "description": "Answers with a tool error.", "inputSchema": nothing },
        { "name": "values", "description": "Values that are easy to get wrong.", "inputSchema": nothing, "annotations": pure },
        { "name": "wait", "description": "Never ends by itself.", "inputSchema": nothing },
    ])
}
