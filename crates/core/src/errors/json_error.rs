//! The error for a caller's text that is not strict JSON, with the position.

use broker_model::CallCode;
use broker_model::json::{StrictError, position_of_offset};
use serde_json::json;

use crate::errors::error::CoreError;

/// Returns the error of a body, or of a part of it that begins at `offset`.
pub fn json_invalid(body: &str, offset: usize, part: &str, error: &StrictError) -> CoreError {
    let (reason, within) = match error {
        StrictError::Json(error) => {
            let text = error.to_string();
            // serde_json appends its own position, relative to the part.
            let reason = text
                .rfind(" at line ")
                .map_or(text.as_str(), |at| &text[..at]);
            (
                reason.to_owned(),
                offset_of(part, error.line(), error.column()),
            )
        }
        StrictError::Depth { limit, offset } => {
            (format!("nested deeper than {limit} levels"), *offset)
        }
        StrictError::Number { number, offset } => (
            format!("the number `{number}` cannot be kept exactly"),
            *offset,
        ),
    };
    let offset = offset + within;
    let place = position_of_offset(body, offset);
    CoreError::new(
        CallCode::JsonInvalid,
        format!(
            "the body is not strict JSON: {reason} at byte {offset} (line {}, column {})",
            place.line, place.column
        ),
    )
    .details(json!({ "offset": offset, "line": place.line, "column": place.column }))
}

/// Returns the byte offset of serde_json's line and column. They count from 1 and point to the byte where reading
/// stopped.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start = if line <= 1 {
        0
    } else {
        text.match_indices('\n')
            .nth(line - 2)
            .map_or(text.len(), |(at, _)| at + 1)
    };
    (start + column.saturating_sub(1)).min(text.len())
}
