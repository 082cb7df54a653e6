//! The discovery document: the tools of a caller as commands, for clients that read it before they connect.

use broker_wire::{JsonMembers, valid_string};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::server_info::server_info;
use broker_core::{Account, Broker, CallableTool, CoreError, Identity};

/// The version of the document's format.
const FORMAT: &str = "0.1";
/// The maximum bytes of the document. Beyond it, the commands have no parameters.
const MAX_BYTES: usize = 8 << 20;
/// The bytes around the commands, besides name and description.
const FRAME_BYTES: usize = 256;

/// The document, and its entity tag with quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) body: Bytes,
    pub(crate) etag: String,
}

/// The document for a caller.
pub(crate) async fn document(
    broker: &impl Broker,
    identity: &Identity,
    account: &Account,
) -> Result<Document, Box<CoreError>> {
    let paths = [identity.root()];
    let described = broker.describe(identity, &paths, account).await;
    let root = described.map(|mut described| described.pop());
    let root = match root {
        Ok(Some(Ok(description))) => text_of(description.json()),
        Ok(Some(Err(_)) | None) | Err(_) => String::new(),
    };
    let (for_job, caller) = (broker.clone(), identity.clone());
    // Schemas of many tools are long.
    let render = move || {
        let body = render(&root, &for_job.callable_tools(&caller), MAX_BYTES);
        Document {
            etag: for_job.services().entity_tag(&caller, body.as_bytes()),
            body: body.into(),
        }
    };
    broker.services().read_long(account, render).await
}

/// Returns the description of an entry, else its summary.
fn text_of(description: &str) -> String {
    let members = JsonMembers::from_valid(description);
    let text = |name| {
        let members = members.as_ref()?;
        let text = members.get(name).and_then(valid_string)?;
        (!text.is_empty()).then(|| text.into_owned())
    };
    let text = text("description").or_else(|| text("summary"));
    text.unwrap_or_default()
}

/// The text of the document, of at most `max` bytes.
fn render(description: &str, tools: &[CallableTool], max: usize) -> String {
    let info = server_info();
    let head = format!(
        r#"{{"mcp_version":"{FORMAT}","name":{},"description":{},"capabilities":{{"commands":["#,
        info["name"],
        json!(description)
    );
    let room = max.saturating_sub(head.len() + FRAME_BYTES);
    let (commands, is_cut) = match render_commands(tools, true, room) {
        (commands, false) => (commands, false),
        (_, true) => (render_commands(tools, false, room).0, true),
    };
    let end = if is_cut {
        r#"]},"truncated":true}"#
    } else {
        "]}}"
    };
    format!("{head}{commands}{end}")
}

/// The commands that fit into `room` bytes, and whether one was left out.
fn render_commands(tools: &[CallableTool], with_parameters: bool, room: usize) -> (String, bool) {
    let mut out = String::new();
    for tool in tools {
        let comma = if out.is_empty() { "" } else { "," };
        let (name, description) = (
            Value::from(tool.name),
            Value::from(tool.description.as_str()),
        );
        let command = match with_parameters {
            true => format!(
                r#"{comma}{{"name":{name},"description":{description},"parameters":{}}}"#,
                tool.input_schema
            ),
            false => format!(r#"{comma}{{"name":{name},"description":{description}}}"#),
        };
        if out.len() + command.len() > room {
            return (out, true);
        }
        out.push_str(&command);
    }
    (out, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &'static str) -> CallableTool {
        CallableTool {
            listable: true,
            name,
            path: "/a/t",
            description: "d \"q\"".to_owned(),
            input_schema: r#"{"type":"object"}"#.into(),
        }
    }

    #[test]
    fn document_over_the_limit_has_no_parameters_and_then_fewer_commands() {
        let tools = [tool("a"), tool("b"), tool("c")];
        let read =
            |max| -> Value { serde_json::from_str(&render("root", &tools, max)).expect("JSON") };
        let whole = read(MAX_BYTES);
        let expected =
            json!({"name": "a", "description": "d \"q\"", "parameters": {"type": "object"}});
        assert_eq!(whole["capabilities"]["commands"][0], expected);
        assert_eq!(
            (&whole["mcp_version"], &whole["description"]),
            (&json!("0.1"), &json!("root"))
        );
        assert!(whole.get("truncated").is_none());
        let length = render("root", &tools, MAX_BYTES).len();
        let cut = read(length + FRAME_BYTES - 40);
        assert_eq!(cut["truncated"], true);
        let commands = cut["capabilities"]["commands"].as_array().expect("a list");
        assert_eq!(commands.len(), 3);
        assert!(
            commands
                .iter()
                .all(|command| command.get("parameters").is_none())
        );
        let short = read(length + FRAME_BYTES - 160);
        assert!(
            short["capabilities"]["commands"]
                .as_array()
                .expect("a list")
                .len()
                < 3
        );
    }
}
