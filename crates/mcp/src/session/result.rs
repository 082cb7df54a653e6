//! The check of a result: it is an object, complete, and asks for no input; and whether its tool says that it failed.

use std::iter;
use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use broker_model::json::each_member;

use crate::failure::CallFailure;

pub(super) fn protocol(message: &str) -> CallFailure {
    CallFailure::Protocol {
        message: message.to_owned(),
        maybe_executed: true,
    }
}

const RESULT_TYPE: &str = "resultType";
const IS_ERROR: &str = "isError";
/// Members of a result that asks for input (MCP 2026-07-28, multi round-trip requests). A client may act on them
/// whatever the type of the result.
const INPUT_MEMBERS: [&str; 2] = ["inputRequests", "requestState"];
/// Finds, in one pass, the texts that require parsing a result: the names of members that the broker checks, and an
/// escape that can spell such a name. A processor without vector instructions has no such search (`None`); every result
/// is parsed there.
static MARKS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let names = [RESULT_TYPE, IS_ERROR].into_iter().chain(INPUT_MEMBERS);
    let names = names.map(|name| format!("\"{name}\""));
    Searcher::new(iter::once("\\u".to_owned()).chain(names))
});
/// The pattern of [`MARKS`] that is the name of the type of a result.
const RESULT_TYPE_MARK: usize = 1;
/// The pattern of [`MARKS`] that is the name of the member that says that a tool failed.
const IS_ERROR_MARK: usize = 2;

/// Whether the text has no escape, no name of a member that asks for input or says that a tool failed, and only types that
/// are `complete`, at every level. `isError` may be `false`.
fn is_plain_at_all_levels(result: &[u8]) -> bool {
    let Some(marks) = &*MARKS else {
        return false;
    };
    marks.find_iter(result).all(|mark| {
        let expected: &[u8] = match mark.pattern().as_usize() {
            RESULT_TYPE_MARK => b"\"complete\"",
            IS_ERROR_MARK => b"false",
            _ => return false,
        };
        result[mark.end()..]
            .trim_ascii_start()
            .strip_prefix(b":")
            .is_some_and(|value| value.trim_ascii_start().starts_with(expected))
    })
}

/// Checks that a result is an object and complete: the broker has no user whom a server could ask for
/// input. Every member that decodes to `resultType` must be `complete`; an unknown type is refused,
/// including `null`. So is a complete result with a member that asks for input. Returns whether its tool says that it failed
/// (MCP, `CallToolResult.isError`).
pub(super) fn check_result(result: &[u8]) -> Result<bool, CallFailure> {
    if result.first() != Some(&b'{') {
        return Err(protocol("the result is not an object"));
    }
    // The names are written either in letters or with `\u` escapes. If they are always in letters, and the type is
    // always `complete`, this holds at the top level too: nearly every result passes without being parsed.
    if is_plain_at_all_levels(result) {
        return Ok(false);
    }
    let (mut is_complete, mut asks, mut is_error) = (true, None, false);
    let read = each_member(result, |name, value| {
        asks = asks.or(INPUT_MEMBERS.into_iter().find(|member| name == *member));
        if name == IS_ERROR {
            is_error = value.get() == "true";
        }
        if name == RESULT_TYPE {
            let kind = serde_json::from_str::<String>(value.get());
            is_complete &= kind.is_ok_and(|kind| kind == "complete");
        }
    });
    match read {
        Ok(()) if is_complete => match asks {
            None => Ok(is_error),
            Some(member) => Err(protocol(&format!(
                "the result asks for input: it has `{member}`"
            ))),
        },
        Ok(()) => Err(protocol(
            "the result is not complete: its `resultType` is not `complete`",
        )),
        Err(_) => Err(protocol("the result's members cannot be read")),
    }
}
