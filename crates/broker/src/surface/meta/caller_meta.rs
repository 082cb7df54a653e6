//! The `_meta` members of a caller that a server gets.

use broker_model::json::each_member;
use broker_model::text::shown_line;

/// The maximum bytes of the object that a server gets.
const MAX_META_BYTES: usize = 8 << 10;

/// Filters a `_meta` object of a caller, given as JSON: returns the object of the members that go to the
/// server, `None` if there are none. Keys with a prefix that the protocol reserves are left out, and so is
/// `progressToken`, since the broker has a separate token.
///
/// # Errors
///
/// A message for the caller: the text is not an object, has a key twice, or is too long.
pub(in crate::surface) fn to_forward(meta: &str) -> Result<Option<String>, String> {
    let mut names = std::collections::BTreeSet::new();
    let mut duplicate = None;
    let mut too_long = false;
    let mut out = String::from("{");
    let read = each_member(meta.as_bytes(), |name, value| {
        if !is_reserved(&name) && name != "progressToken" {
            let key = serde_json::Value::from(&*name).to_string();
            let comma = if out.len() > 1 { "," } else { "" };
            let needed = comma.len() + key.len() + 1 + value.get().len() + 1;
            if out.len() + needed > MAX_META_BYTES {
                too_long = true;
            } else {
                out.push_str(comma);
                out.push_str(&key);
                out.push(':');
                out.push_str(value.get());
            }
        }
        // A set of names is as long as the text, whose length the surface limits.
        if !names.insert(name.clone()) && duplicate.is_none() {
            duplicate = Some(shown_line(&name, 80));
        }
    });
    if read.is_err() {
        return Err("must be an object".to_owned());
    }
    if let Some(name) = duplicate {
        return Err(format!("has the key `{name}` twice"));
    }
    if too_long {
        return Err(format!(
            "has more than {MAX_META_BYTES} bytes for the server, which is the maximum"
        ));
    }
    out.push('}');
    Ok((out.len() > 2).then_some(out))
}

/// Whether the protocol reserves the prefix of a key: the labels before `/`, if the second is `mcp` or
/// `modelcontextprotocol`.
fn is_reserved(key: &str) -> bool {
    let prefix = key.split_once('/').map(|(prefix, _)| prefix);
    let second = prefix.and_then(|prefix| prefix.split('.').nth(1));
    second.is_some_and(|label| {
        ["mcp", "modelcontextprotocol"]
            .iter()
            .any(|reserved| label.eq_ignore_ascii_case(reserved))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_meta_without_reserved_keys_is_forwarded_as_sent() {
        let forwarded = |meta: &str| to_forward(meta).unwrap();
        assert_eq!(
            forwarded(
                r#" {"traceparent": "00-1", "io.modelcontextprotocol/logLevel":"debug","progressToken":1,
                "com.example/x":{"n": 1.0},"dev.mcp/x":1,"com.mcp.tools/x":2,"\u0070rogressToken":3,"mcp.dev/x":[],"mcp":4}"#
                    .replace(r#","\u0070rogressToken":3"#, "")
                    .as_str()
            )
            .unwrap(),
            r#"{"traceparent":"00-1","com.example/x":{"n": 1.0},"mcp.dev/x":[],"mcp":4}"#
        );
        for nothing in ["{}", " { } ", r#"{"progressToken":1,"io.MCP/x":1}"#] {
            assert_eq!(forwarded(nothing), None, "{nothing}");
        }
        let escaped = r#"{"io.modelcontextprotocol\/x":1,"\u0070rogressToken":2}"#;
        assert_eq!(forwarded(escaped), None);
    }

    #[test]
    fn caller_meta_that_is_no_object_has_a_key_twice_or_is_too_long_is_refused() {
        for (meta, words) in [
            ("[]", "must be an object"),
            ("null", "must be an object"),
            (r#"{"a":1,"\u0061":2}"#, "the key `a` twice"),
            (r#"{"progressToken":1,"progressToken":2}"#, "twice"),
        ] {
            assert!(to_forward(meta).unwrap_err().contains(words), "{meta}");
        }
        let of = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length));
        let most = MAX_META_BYTES - of(0).len();
        assert_eq!(
            to_forward(&of(most)).unwrap().unwrap().len(),
            MAX_META_BYTES
        );
        assert!(to_forward(&of(most + 1)).unwrap_err().contains("8192"));
        let reserved = format!(r#"{{"a.mcp/b":"{}"}}"#, "x".repeat(1 << 20));
        assert_eq!(to_forward(&reserved).unwrap(), None);
    }
}
