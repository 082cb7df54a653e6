//! Whether the result of a tool is an error of the tool (MCP, `CallToolResult.isError`).

use broker_model::json::each_member;
use memchr::memmem;

const IS_ERROR: &str = "isError";

/// Whether the result has `"isError": true` at its top level.
pub(crate) fn is_tool_error(result: &[u8]) -> bool {
    // Few results have the name or an escape that can spell it, so that few are parsed.
    let may_have_it = [&b"isError"[..], b"\\u"]
        .iter()
        .any(|mark| memmem::find(result, mark).is_some());
    if !may_have_it {
        return false;
    }
    let mut is_error = false;
    let read = each_member(result, |name, value| {
        if name == IS_ERROR {
            is_error = value.get() == "true";
        }
    });
    read.is_ok() && is_error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_member_of_the_result_itself_makes_it_an_error() {
        for (result, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"content":[],"isError": true }"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"is\u0045rror":true}"#, true),
            (r#"{"content":[{"isError":true}]}"#, false),
            (r#"{"content":[{"text":"\"isError\":true"}]}"#, false),
            (r#"{"content":[]}"#, false),
            (r#"{"content":[],"isError":"true"}"#, false),
        ] {
            assert_eq!(is_tool_error(result.as_bytes()), expected, "{result}");
        }
    }
}
