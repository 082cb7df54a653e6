//! Finds API keys that were written into a config in place of their digests. No message shows them.

use crate::findings::{Cursor, Findings};
use crate::spanned::Data;
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;

/// The beginning of every key.
pub const KEY_PREFIX: &str = "mbk_";

/// Minimum number of characters of a key after its prefix, so that a part of a key is found as well.
const MIN_CHARS: usize = 12;

/// Reports every value below the cursor that contains a key, and returns whether there is one.
pub(super) fn report(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> bool {
    match &cursor.value.data {
        Data::String(text) if has_raw_key(text) => {
            add(findings, cursor);
            true
        }
        Data::Array(items) => {
            let mut found = false;
            for (index, item) in items.iter().enumerate() {
                found |= report(findings, &cursor.item(index, item));
            }
            found
        }
        Data::Object(members) => {
            let mut found = false;
            for member in members {
                if has_raw_key(&member.key) {
                    // The pointer of the member would show its key.
                    add(findings, cursor);
                    found = true;
                } else {
                    found |= report(findings, &cursor.member(member));
                }
            }
            found
        }
        _ => false,
    }
}

fn add(findings: &mut Findings<'_>, cursor: &Cursor<'_>) {
    let message = "an API key itself is written here; the config has the SHA-256 of a key only";
    let diagnostic = Diagnostic::error(Code::LiteralSecret, message);
    findings.add(
        cursor,
        diagnostic.help(
            "anyone who read this file knows the key: make another one with `mcp-broker key new NAME`, and store the JSON that it prints",
        ),
    );
}

fn has_raw_key(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.match_indices(KEY_PREFIX).any(|(at, _)| {
        let after = lower[at + KEY_PREFIX.len()..].bytes();
        after.take_while(u8::is_ascii_alphanumeric).count() >= MIN_CHARS
    })
}
