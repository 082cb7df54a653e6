//! The last resort: a result whose structure alone is too long is replaced by the head of its text.

use broker_model::json::each_member;

use super::walk::{self, CutDetail};
use super::{Cut, Reply};

/// Returns a result with one text block: as much of the original text as fits, and `isError`.
pub(super) fn cut(reply: &Reply, result: &[u8]) -> (Vec<u8>, Cut) {
    let mut is_error = false;
    let read = each_member(result, |name, value| {
        // If the member occurs twice, an error in either counts.
        is_error |= name == "isError" && value.get() == "true";
    });
    let is_error = is_error && read.is_ok();
    let flag = if is_error { ",\"isError\":true" } else { "" };
    let total = walk::chars(result);
    let shortened = |to| CutDetail {
        pointer: String::new(),
        kind: "head",
        from: total,
        to,
    };
    let around = reply.chars_beside(&[shortened(total)], 0)
        + format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"…\"}}]{flag}}}")
            .chars()
            .count();
    let mut room = reply.limit.saturating_sub(around);
    let mut text = String::new();
    let mut kept = 0;
    for c in String::from_utf8_lossy(result).chars() {
        // The text is JSON itself, so that quotes and backslashes cost an escape.
        let cost = match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if (c as u32) < 0x20 => 6,
            _ => 1,
        };
        if cost > room {
            break;
        }
        room -= cost;
        kept += 1;
        text.push(c);
    }
    text.push('…');
    let text = serde_json::Value::from(text);
    let head = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]{flag}}}");
    (head.into_bytes(), reply.cut(vec![shortened(kept)], 0))
}
