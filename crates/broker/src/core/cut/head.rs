//! The last resort: a result whose structure alone is too long becomes the head of its text.

use broker_model::json::each_member;

use super::Wrapper;
use super::walk::{self, Cut};

/// A reply whose result has one text block: as much of the original text as fits, and `isError`.
pub(super) fn reply(wrapper: &Wrapper<'_>, result: &[u8]) -> Vec<u8> {
    let mut is_error = false;
    let read = each_member(result, |name, value| {
        // If the member occurs twice, an error in either counts.
        is_error |= name == "isError" && value.get() == "true";
    });
    let is_error = is_error && read.is_ok();
    let flag = if is_error { ",\"isError\":true" } else { "" };
    let total = walk::chars(result);
    let cut = |to| {
        [Cut {
            pointer: String::new(),
            kind: "head",
            from: total,
            to,
        }]
    };
    let around = wrapper.before.chars().count()
        + wrapper.after(&cut(total), 0).chars().count()
        + format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"…\"}}]{flag}}}")
            .chars()
            .count();
    let mut room = wrapper.limit.saturating_sub(around);
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
    let shortened = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]{flag}}}");
    wrapper.body(shortened.as_bytes(), &cut(kept), 0)
}
