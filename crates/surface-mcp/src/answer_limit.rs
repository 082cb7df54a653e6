//! The length of messages that clients read. A longer answer becomes an error of its request: a client that gets more
//! than it reads ends its connection, and with it the calls of every other server.

use broker_model::CallCode;
use broker_wire::write::{Outgoing, Text};
use broker_wire::{Era, JsonMembers, RpcError};
use serde_json::json;

use crate::{item_error, result};
use broker_core::{CoreError, RequestId};

/// The way of a message to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A line over stdio.
    Line,
    /// An event of a stream over HTTP.
    Event,
    /// A frame over WebSocket.
    Frame,
}

impl Way {
    const fn shown(self) -> &'static str {
        match self {
            Self::Line => "a line over stdio",
            Self::Event => "an event of a stream",
            Self::Frame => "a message over WebSocket",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Line | Self::Frame => {
                "Ask for less in one call; `max_output_chars` of the tool cuts long results."
            }
            Self::Event => {
                "Ask for less in one call, or call without `progressToken`: an answer that is not an event may be longer. `max_output_chars` of the tool cuts long results."
            }
        }
    }
}

/// The maximum of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerLimit {
    pub(super) way: Way,
    pub(super) bytes: usize,
}

impl AnswerLimit {
    /// Returns the message if its client reads it, else an error in place of its answers. `None` for a notification that
    /// is too long. The log has the error under the id that `request_id` returns.
    pub(super) fn fit(
        self,
        message: Outgoing,
        request_id: impl Fn() -> RequestId,
    ) -> Option<Outgoing> {
        let size = message.size();
        if size <= self.bytes {
            return Some(message);
        }
        let fitting = message.fitting(self.bytes, |result| {
            self.other_answer(result, size, request_id())
        });
        if fitting.is_none() {
            tracing::warn!(
                size,
                limit = self.bytes,
                "a notification was dropped: it is longer than its client reads"
            );
        }
        fitting
    }

    /// Returns the error in place of an answer with this result, in the form of the result.
    fn other_answer(
        self,
        result: &str,
        size: usize,
        request_id: RequestId,
    ) -> Result<Text, RpcError> {
        let limit = self.bytes;
        let id = request_id.as_str();
        tracing::warn!(
            request_id = id,
            size,
            limit,
            "an answer is longer than its client reads, which gets `output_too_large`"
        );
        let message = format!(
            "the answer has {size} bytes, and {} has at most {limit}",
            self.way.shown()
        );
        let error = CoreError::new(CallCode::OutputTooLarge, message)
            .details(json!({"limit_bytes": limit, "size_bytes": size}))
            .hint(self.way.hint())
            .maybe_executed(true);
        let members = JsonMembers::from_valid(result).unwrap_or_default();
        let has = |name: &str| members.get(name).is_some();
        if !has("content") && !has("structuredContent") {
            let object = result::error_object(&error, id);
            return Err(item_error::refusal(&error, object));
        }
        let era = match has("resultType") {
            true => Era::Modern,
            false => Era::Legacy,
        };
        Ok(result::error(&error, id, era).into())
    }
}

#[cfg(test)]
mod tests {
    use broker_surface::RequestIds;
    use broker_wire::{Id, write};
    use serde_json::Value;

    use super::*;

    fn fit(result: &str, bytes: usize) -> Value {
        let ids = RequestIds::random();
        let limit = AnswerLimit {
            way: Way::Event,
            bytes,
        };
        let answer = write::result(&Id::Integer(7), result.as_bytes().to_vec().into());
        let fitting = limit.fit(answer, || ids.next()).expect("an answer");
        serde_json::from_slice(&fitting.into_line().into_bytes()).expect("a message")
    }

    #[test]
    fn answer_that_is_too_long_becomes_an_error_in_its_form() {
        let long = "x".repeat(2000);
        let legacy = format!(r#"{{"content":[{{"type":"text","text":"{long}"}}]}}"#);
        assert_eq!(fit(&legacy, 4000)["result"]["content"][0]["text"], long);
        let error = fit(&legacy, 1000);
        assert_eq!(
            (&error["id"], &error["result"]["isError"]),
            (&7.into(), &true.into())
        );
        assert!(error["result"].get("resultType").is_none(), "{error}");
        let text = error["result"]["content"][0]["text"].as_str().unwrap();
        for part in [
            "output_too_large",
            "1000",
            "2073",
            "progressToken",
            "max_output_chars",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let modern = format!(r#"{{"structuredContent":{{"a":"{long}"}},"resultType":"complete"}}"#);
        assert_eq!(fit(&modern, 1000)["result"]["resultType"], "complete");
        for other in ["contents", "messages", "tools"] {
            let error = fit(&format!(r#"{{"{other}":["{long}"]}}"#), 1000);
            let data = &error["error"]["data"];
            assert_eq!(data["code"], "output_too_large", "{error}");
            assert_eq!(data["maybe_executed"], true, "{error}");
            assert_eq!(data["details"]["limit_bytes"], 1000, "{error}");
        }
    }
}
