//! Valid messages: results, errors and notifications as JSON text. `faults` makes invalid ones.

use serde_json::{Value, json};

use crate::script::{RpcError, Script};

/// The outcome of a request. A result is JSON text, so that raw tools pass through unchanged.
pub(crate) enum Outcome {
    Result(String),
    Error(RpcError),
}

impl Outcome {
    /// The answer to the request with this id, without a newline.
    pub(crate) fn line(&self, id: &Value) -> String {
        let body = match self {
            Self::Result(result) => format!(r#""result":{result}"#),
            Self::Error(error) => format!(r#""error":{}"#, error_body(error)),
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#)
    }
}

pub(crate) fn error_body(error: &RpcError) -> Value {
    let mut body = json!({"code": error.code, "message": error.message});
    if let Some(data) = &error.data {
        body["data"] = data.clone();
    }
    body
}

/// A tool result with one text in it.
pub(crate) fn text_result(text: &str, is_error: bool, modern: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    if modern {
        result["resultType"] = json!("complete");
    }
    result
}

/// Inserts members, given as JSON text, before those of a JSON object.
pub(crate) fn with_members(object: &str, members: &str) -> String {
    match object.strip_prefix('{').map(str::trim_start) {
        Some("}") => format!("{{{members}}}"),
        Some(rest) => format!("{{{members},{rest}"),
        None => object.to_owned(),
    }
}

/// The members that the modern era requires on cacheable results.
pub(crate) fn cacheable(object: &str, script: &Script) -> String {
    let info = json!({"io.modelcontextprotocol/serverInfo": script.server_info});
    let members = format!(
        r#""resultType":"complete","ttlMs":{},"cacheScope":"public","_meta":{info}"#,
        script.ttl_ms
    );
    with_members(object, &members)
}

pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// The announcement of a changed tool list to a legacy session.
pub(crate) fn list_changed() -> String {
    json!({"jsonrpc": "2.0", "method": LIST_CHANGED}).to_string()
}

/// The first message of a subscription.
pub(crate) fn acknowledgement(subscription: &Value, wanted: bool) -> String {
    let honoured = if wanted {
        json!({"toolsListChanged": true})
    } else {
        json!({})
    };
    let params = json!({"notifications": honoured});
    subscribed(
        "notifications/subscriptions/acknowledged",
        subscription,
        params,
    )
}

/// A notification on the stream of a subscription.
pub(crate) fn subscribed(method: &str, subscription: &Value, mut params: Value) -> String {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": subscription});
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}
