//! The tools of the built-in script: their descriptions and their behaviour.

use serde_json::{Value, json};

use crate::faults::Behaviour;
use crate::reply::{Outcome, text_result};
use crate::script::RpcError;

/// The behaviour of a built-in tool.
pub(crate) enum Act {
    /// Echoes the arguments, as any tool does.
    Echo,
    Answer(Outcome),
    /// Echoes the arguments after a fault.
    Play(Behaviour),
    /// Echoes the arguments after a `list_changed` notification.
    Notify,
}

/// The built-in tools as JSON texts, in the order of the list.
pub(crate) fn descriptions() -> Vec<String> {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    let integer = json!({"type": "integer", "minimum": 0});
    let mut structured = tool(
        "structured",
        "Answers with structured content: the number and its double",
        json!({"n": {"type": "integer"}}),
        &["n"],
    );
    structured["outputSchema"] = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "double": {"type": "integer"}},
        "required": ["n", "double"],
        "additionalProperties": false,
    });
    let tools = [
        tool(
            "echo",
            "Echoes its arguments",
            json!({"text": text}),
            &["text"],
        ),
        tool(
            "add",
            "Adds two numbers",
            json!({"a": number, "b": number}),
            &["a", "b"],
        ),
        structured,
        tool(
            "slow",
            "Echoes its arguments after a wait",
            json!({"ms": integer}),
            &["ms"],
        ),
        tool(
            "fail",
            "Answers with a tool error",
            json!({"message": text}),
            &[],
        ),
        tool(
            "rpc_fail",
            "Answers with a JSON-RPC error",
            json!({"code": {"type": "integer"}, "message": text}),
            &[],
        ),
        tool(
            "die",
            "Ends the process without an answer",
            json!({"code": integer}),
            &[],
        ),
        tool(
            "env_dump",
            "Answers with the environment of the process",
            json!({}),
            &[],
        ),
        tool(
            "args_dump",
            "Answers with the arguments of the process",
            json!({}),
            &[],
        ),
        tool(
            "notify",
            "Says that the list of tools has changed",
            json!({}),
            &[],
        ),
    ];
    tools.iter().map(Value::to_string).collect()
}

/// The behaviour of the built-in tool of this name for these arguments; `shown` is the command line.
pub(crate) fn act(name: &str, arguments: &Value, modern: bool, shown: &[String]) -> Act {
    let answer = |result: Value| Act::Answer(Outcome::Result(result.to_string()));
    let say = |text: &str| answer(text_result(text, false, modern));
    match name {
        "add" => say(&sum(&arguments["a"], &arguments["b"]).to_string()),
        "structured" => {
            let n = arguments["n"].as_i64().unwrap_or_default();
            let value = json!({"n": n, "double": n.wrapping_mul(2)});
            let mut result = text_result(&value.to_string(), false, modern);
            result["structuredContent"] = value;
            answer(result)
        }
        "slow" => Act::Play(Behaviour::Delay {
            ms: arguments["ms"].as_u64().unwrap_or_default(),
            then: Box::new(Behaviour::Ok),
        }),
        "fail" => {
            let message = arguments["message"].as_str();
            let message = message.unwrap_or("failed on request");
            answer(text_result(message, true, modern))
        }
        "rpc_fail" => Act::Answer(Outcome::Error(RpcError::new(
            arguments["code"].as_i64().unwrap_or(1000),
            arguments["message"].as_str().unwrap_or("failed on request"),
        ))),
        "die" => {
            let code = arguments["code"]
                .as_u64()
                .and_then(|code| code.try_into().ok());
            Act::Play(Behaviour::Exit(code.unwrap_or(1)))
        }
        "env_dump" => {
            let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
            let variables =
                std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value).into()));
            say(&Value::Object(variables.collect()).to_string())
        }
        "args_dump" => say(&json!(shown).to_string()),
        "notify" => Act::Notify,
        _ => Act::Echo,
    }
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
    })
}

fn sum(left: &Value, right: &Value) -> Value {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => json!(left.wrapping_add(right)),
        _ => json!(left.as_f64().unwrap_or_default() + right.as_f64().unwrap_or_default()),
    }
}
