//! The catalog: the type of a tool, the list of all tools, the search of a call's tool and the check of its
//! arguments. It is independent of the protocol.

mod arguments;
mod data;
mod diagnostics;
mod encoding;
mod hash;
mod schema;
mod text;
mod time;

use std::time::Duration;

use serde_json::{Map, Value, json};

pub(crate) use self::arguments::Arguments;

/// Maximum length of a tool's text, in bytes.
const MAX_TEXT: usize = 8 * 1024 * 1024;

/// One tool: its description for clients and its function.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    input: Value,
    output: Option<Value>,
    run: fn(&Arguments<'_>) -> Result<Answer, Failure>,
}

/// The answer of a tool.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Text(String),
    /// An object that matches the tool's output schema; the client gets it as text as well.
    Structured(Value),
    /// A text that is sent after the wait.
    Later(Duration, String),
}

/// The failure of a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    /// An error message of the tool, in a result with `isError`.
    Tool(String),
    /// The call ends with a JSON-RPC error.
    Rpc { code: i64, message: String },
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self::Tool(message.into())
    }
}

/// Every tool, in the order in which a client sees them.
pub(crate) fn all() -> Vec<Tool> {
    let mut tools = time::tools();
    tools.extend(text::tools());
    tools.extend(data::tools());
    tools.extend(encoding::tools());
    tools.extend(hash::tools());
    tools.extend(diagnostics::tools());
    tools
}

impl Tool {
    /// The tool as a member of a `tools/list` result.
    pub(crate) fn describe(&self) -> Value {
        let mut tool = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input,
            "annotations": {
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        });
        if let Some(output) = &self.output {
            tool["outputSchema"] = output.clone();
        }
        tool
    }

    /// Checks the arguments and runs the tool.
    pub(crate) fn call(&self, arguments: &Map<String, Value>) -> Result<Answer, Failure> {
        let arguments = Arguments::check(arguments, &self.input)?;
        let answer = (self.run)(&arguments)?;
        match &answer {
            Answer::Text(text) if text.len() > MAX_TEXT => Err(Failure::new(format!(
                "the answer would be longer than {MAX_TEXT} bytes"
            ))),
            _ => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls a tool of the catalog by name, as a client would.
    pub(super) fn call(name: &str, arguments: Value) -> Result<Answer, Failure> {
        let tools = all();
        let tool = tools
            .iter()
            .find(|tool| tool.name == name)
            .expect("the tool exists");
        tool.call(arguments.as_object().expect("arguments are an object"))
    }

    /// The text answer of a call that works.
    pub(super) fn text(name: &str, arguments: Value) -> String {
        match call(name, arguments).unwrap() {
            Answer::Text(text) => text,
            other => panic!("no text: {other:?}"),
        }
    }

    /// The structured answer of a call that works.
    pub(super) fn structured(name: &str, arguments: Value) -> Value {
        match call(name, arguments).unwrap() {
            Answer::Structured(value) => value,
            other => panic!("no structure: {other:?}"),
        }
    }

    /// The message of a call that the tool refuses.
    pub(super) fn refusal(name: &str, arguments: Value) -> String {
        match call(name, arguments) {
            Err(Failure::Tool(message)) => message,
            other => panic!("no refusal: {other:?}"),
        }
    }

    #[test]
    fn toolbox_tools_have_descriptions_and_closed_schemas() {
        let tools = all();
        let mut names: Vec<_> = tools.iter().map(|tool| tool.name).collect();
        for tool in &tools {
            let seen = tool.describe();
            assert!(tool.description.len() > 20, "{}", tool.name);
            assert!(!tool.title.is_empty(), "{}", tool.name);
            assert_eq!(seen["inputSchema"]["type"], "object", "{}", tool.name);
            assert_eq!(
                seen["inputSchema"]["additionalProperties"], false,
                "{}",
                tool.name
            );
            let properties = seen["inputSchema"]["properties"].as_object().unwrap();
            for (property, schema) in properties {
                assert!(
                    schema["description"].is_string(),
                    "{}.{property}",
                    tool.name
                );
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn toolbox_arguments_that_violate_the_schema_are_refused() {
        assert_eq!(
            refusal("text_case", json!({"text": "a"})),
            "argument `to` is missing"
        );
        assert_eq!(
            refusal("text_case", json!({"text": "a", "to": "upper", "too": 1})),
            "argument `too` is not known; known are `text`, `to`"
        );
        assert_eq!(
            refusal("text_case", json!({"text": 1, "to": "upper"})),
            "argument `text` must be of type string"
        );
        assert_eq!(
            refusal("text_case", json!({"text": "a", "to": "loud"})),
            "argument `to` must be one of `upper`, `lower`, `title`"
        );
        assert_eq!(
            refusal("text_lorem", json!({"paragraphs": 201})),
            "argument `paragraphs` must be from 1 to 200"
        );
    }
}
