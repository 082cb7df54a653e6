//! The arguments whose values a line of the audit log shows: scalars that the config of the tool names.

use std::collections::BTreeMap;
use std::ops::Range;

use broker_core::ShownArgs;
use broker_model::redact::MASK;
use broker_model::secret_text::{Evidence, find};
use serde_json::Value;

/// The maximum bytes of arguments that are read for their values.
const MAX_READ_BYTES: usize = 256 << 10;
/// The maximum characters of a value.
const MAX_VALUE_CHARS: usize = 200;

/// Returns the scalars at the pointers of a tool. Secrets in them are masked, before they are cut.
pub(crate) fn values(args: &[u8], shown: &ShownArgs) -> BTreeMap<String, Value> {
    if args.len() > MAX_READ_BYTES {
        return BTreeMap::new();
    }
    let Ok(args) = serde_json::from_slice::<Value>(args) else {
        return BTreeMap::new();
    };
    let values = shown.pointers.iter().filter_map(|pointer| {
        let value = args.pointer(pointer)?;
        let text = match value {
            Value::Object(_) | Value::Array(_) => return None,
            Value::String(text) => text.clone(),
            scalar => scalar.to_string(),
        };
        let masked = masked(&shown.redactor.redact(&text));
        let value = match masked == text && masked.len() <= MAX_VALUE_CHARS {
            true => value.clone(),
            false => masked
                .chars()
                .take(MAX_VALUE_CHARS)
                .collect::<String>()
                .into(),
        };
        Some(((*pointer).to_owned(), value))
    });
    values.collect()
}

/// Masks what has the form of a secret.
fn masked(text: &str) -> String {
    let mut out = text.to_owned();
    let found = find(text).into_iter();
    let found = found.filter(|one| one.evidence == Evidence::Form);
    let mut ranges: Vec<Range<usize>> = found.map(|one| one.range).collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.start));
    for range in ranges {
        out.replace_range(range, MASK);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::redact::{Redactor, Secret};
    use serde_json::json;

    #[test]
    fn values_are_scalars_masked_and_cut() {
        let shown = ShownArgs {
            pointers: &[
                "/org", "/n", "/list", "/list/1", "/none", "/long", "/token", "/big", "/null",
            ],
            redactor: Redactor::new([Secret::new("hunter2-long")]),
        };
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let args = json!({
            "org": "acme hunter2-long",
            "n": 3,
            "list": [1, "two"],
            "long": "é".repeat(300),
            "token": format!("Bearer {token}"),
            "big": 123_456_789_012_345_678_u64,
            "null": null,
            "other": "not shown",
        });
        let values = values(args.to_string().as_bytes(), &shown);
        let expected = json!({
            "/org": format!("acme {MASK}"),
            "/n": 3,
            "/list/1": "two",
            "/long": "é".repeat(200),
            "/token": format!("Bearer {MASK}"),
            "/big": 123_456_789_012_345_678_u64,
            "/null": null,
        });
        assert_eq!(json!(values), expected);
        let long = format!("{{\"org\":\"{}\"}}", "x".repeat(MAX_READ_BYTES));
        assert_eq!(super::values(long.as_bytes(), &shown).len(), 0);
        assert_eq!(super::values(b"[", &shown).len(), 0);
    }
}
