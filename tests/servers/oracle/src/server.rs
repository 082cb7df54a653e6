//! A server with few tools and constant answers: every kind of content, structured results with edge cases, both
//! kinds of failure, and one tool that never ends. It may also have a resource and a prompt.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, JsonObject, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The server. It speaks both eras, as the SDK does.
#[derive(Clone, Debug, Default)]
pub struct OracleServer {
    /// Without the modern era.
    pub legacy_only: bool,
    /// With a resource and a prompt. Their texts have this name, and so have the URI and the prompt, which must differ
    /// between two sources of a broker.
    pub items: Option<String>,
}

impl OracleServer {
    fn uri(&self) -> Option<String> {
        let name = self.items.as_ref()?;
        Some(format!("oracle://{name}/greeting"))
    }

    fn prompt(&self) -> Option<String> {
        Some(format!("greet-{}", self.items.as_ref()?))
    }
}

impl ServerHandler for OracleServer {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools();
        let capabilities = match self.items {
            Some(_) => tools.enable_resources().enable_prompts().build(),
            None => tools.build(),
        };
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
        complete(json!({ "tools": tools() }))
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
        let result = match &*request.name {
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
        let result: CallToolResult = complete(result)?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |uri| json!({ "uri": uri, "name": "greeting", "mimeType": "text/plain" });
        let resources: Vec<_> = self.uri().map(resource).into_iter().collect();
        complete(json!({ "resources": resources }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = self.uri().filter(|uri| *uri == request.uri);
        let Some(uri) = uri else {
            return Err(ErrorData::invalid_params("unknown resource", None));
        };
        let text = format!("read from {uri}");
        let content = json!({ "uri": uri, "mimeType": "text/plain", "text": text });
        let result: ReadResourceResult = complete(json!({ "contents": [content] }))?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = json!({ "name": "who", "required": true });
        let prompt =
            |name| json!({ "name": name, "description": "Greets.", "arguments": [argument] });
        let prompts: Vec<_> = self.prompt().map(prompt).into_iter().collect();
        complete(json!({ "prompts": prompts }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let is_known = self.prompt().is_some_and(|name| name == request.name);
        let Some(name) = self.items.as_ref().filter(|_| is_known) else {
            return Err(ErrorData::invalid_params("unknown prompt", None));
        };
        let args = request.arguments.unwrap_or_default();
        let who = args.get("who").and_then(Value::as_str).unwrap_or_default();
        let content = json!({ "type": "text", "text": format!("{name} greets {who}") });
        let message = json!({ "role": "user", "content": content });
        let result: GetPromptResult = complete(json!({ "messages": [message] }))?;
        Ok(result.into())
    }
}

/// A result in the SDK's type, complete; the SDK removes `resultType` for clients of the legacy era.
fn complete<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    result["resultType"] = json!("complete");
    serde_json::from_value(result)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
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
