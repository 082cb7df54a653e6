//! Tools for testing a client: one is slow, and one fails on request.

use std::time::Duration;

use serde_json::json;

use super::schema::{choice, integer, object, string};
use super::{Answer, Arguments, Failure, Tool};

/// Maximum wait of `slow_echo`, in milliseconds.
const MAX_WAIT: i64 = 30_000;
/// Outside the range that JSON-RPC and MCP reserve.
const REQUESTED_ERROR: i64 = 1000;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "slow_echo",
            title: "Echo after a wait",
            description: "Waits, then answers with the text it was given. Other calls are answered meanwhile, and the wait can be cancelled.",
            input: object(
                json!({
                    "text": string("The text to answer with"),
                    "milliseconds": integer("How long to wait", 0, MAX_WAIT),
                }),
                &["text", "milliseconds"],
            ),
            output: None,
            run: slow_echo,
        },
        Tool {
            name: "fail",
            title: "Fail on request",
            description: "Always fails with the given message, as a tool error or as a JSON-RPC error with code 1000.",
            input: object(
                json!({
                    "message": string("The message to fail with"),
                    "kind": choice("How to fail; tool when left out", &["tool", "rpc"]),
                }),
                &["message"],
            ),
            output: None,
            run: fail,
        },
    ]
}

fn slow_echo(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let wait = arguments.integer("milliseconds")?.unwrap_or_default();
    let wait = Duration::from_millis(wait.unsigned_abs());
    Ok(Answer::Later(wait, arguments.text("text")?.to_owned()))
}

fn fail(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let message = arguments.text("message")?.to_owned();
    Err(match arguments.find("kind")? {
        Some("rpc") => Failure::Rpc {
            code: REQUESTED_ERROR,
            message,
        },
        _ => Failure::Tool(message),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{call, refusal};
    use super::*;

    #[test]
    fn slow_echo_waits_up_to_its_maximum() {
        assert_eq!(
            call("slow_echo", json!({"text": "a", "milliseconds": 30_000})),
            Ok(Answer::Later(Duration::from_secs(30), "a".to_owned()))
        );
        let longer = json!({"text": "a", "milliseconds": 30_001});
        assert_eq!(
            refusal("slow_echo", longer),
            "argument `milliseconds` must be from 0 to 30000"
        );
    }

    #[test]
    fn fail_returns_a_tool_error_or_an_rpc_error() {
        assert_eq!(refusal("fail", json!({"message": "no"})), "no");
        assert_eq!(
            call("fail", json!({"message": "no", "kind": "rpc"})),
            Err(Failure::Rpc {
                code: 1000,
                message: "no".to_owned()
            })
        );
    }
}
