//! Lists the tools of a server over HTTP and calls some of them: `http_client URL [TOOL JSON]…`.
//!
//! The official conformance suite runs it as its client: there the last argument is the URL, and the calls come in
//! `MCP_CONFORMANCE_CONTEXT`, or are the first tool of the list with arguments that its schema asks for.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program is a command line"
)]

use std::process::ExitCode;

use broker_mcp::{ClientError, ClientErrorKind, HttpClient};
use serde_json::{Map, Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let is_conformance = std::env::var_os("MCP_CONFORMANCE_SCENARIO").is_some();
    let url = match is_conformance {
        true => arguments.pop(),
        false => (!arguments.is_empty()).then(|| arguments.remove(0)),
    };
    let Some(url) = url else {
        eprintln!("usage: http_client URL [TOOL JSON]...");
        return ExitCode::from(2);
    };
    let calls = match is_conformance {
        true => None,
        false => Some(pairs(&arguments)),
    };
    match run(&url, calls, &context).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The calls of a command line: each tool is followed by its arguments.
fn pairs(words: &[String]) -> Vec<(String, Value)> {
    let pairs = words.chunks(2).map(|pair| {
        let arguments = pair.get(1).and_then(|text| serde_json::from_str(text).ok());
        (pair[0].clone(), arguments.unwrap_or_else(|| json!({})))
    });
    pairs.collect()
}

async fn run(
    url: &str,
    calls: Option<Vec<(String, Value)>>,
    context: &str,
) -> Result<(), ClientError> {
    let client = HttpClient::new(url, None)?;
    client.initialize().await?;
    let tools = client.list_tools().await?;
    for tool in &tools {
        println!("{}", tool["name"]);
    }
    let calls = calls.unwrap_or_else(|| calls_of(context, &tools));
    for (tool, arguments) in calls {
        match client.call_tool(&tool, &arguments).await {
            Ok(result) => println!("{result}"),
            Err(error) if is_of_tool(&error) => println!("{tool} failed: {error}"),
            Err(error) => return Err(error),
        }
    }
    client.close().await
}

/// Whether a call failed and others may not.
fn is_of_tool(error: &ClientError) -> bool {
    matches!(
        error.kind(),
        ClientErrorKind::Tool { .. } | ClientErrorKind::Rpc { .. }
    )
}

/// The calls that a scenario of the suite names, else one of each tool.
fn calls_of(context: &str, tools: &[Map<String, Value>]) -> Vec<(String, Value)> {
    let context: Value = serde_json::from_str(context).unwrap_or_default();
    if let Some(named) = context["toolCalls"].as_array() {
        let calls = named.iter().map(|call| {
            let name = call["name"].as_str().unwrap_or_default();
            (name.to_owned(), call["arguments"].clone())
        });
        return calls.collect();
    }
    let calls = tools.iter().map(|tool| {
        let name = tool["name"].as_str().unwrap_or_default();
        (name.to_owned(), arguments_of(&tool["inputSchema"], tools))
    });
    calls.collect()
}

/// Arguments with a value for each required property. A property `schema` is the schema of the first tool: the
/// suite compares it with the one that its server sent.
fn arguments_of(schema: &Value, tools: &[Map<String, Value>]) -> Value {
    let required = schema["required"].as_array().into_iter().flatten();
    let values = required.filter_map(|name| {
        let name = name.as_str()?;
        let value = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(true),
            Some("object") if name == "schema" => tools[0]["inputSchema"].clone(),
            _ => json!("text"),
        };
        Some((name.to_owned(), value))
    });
    Value::Object(values.collect())
}
