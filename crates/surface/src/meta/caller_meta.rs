//! The `_meta` members of a caller that a server gets.

use std::collections::BTreeSet;

use broker_model::json::each_member;
use broker_model::text::shown_line;
use broker_wire::JsonMembers;
use broker_wire::write::push_string;

use crate::idempotency_key;

/// The maximum bytes of the object that a server gets.
const MAX_META_BYTES: usize = 8 << 10;

/// Filters the members of a caller's `_meta`: returns the object of the members that go to the server, `None` if it
/// would be empty. Keys with a prefix that the protocol reserves are left out, and so are `progressToken`, since the
/// broker has a separate token, and the idempotency key, which is for the broker.
///
/// # Errors
///
/// A message for the caller: a key occurs twice, or the object is too long.
pub fn to_forward(meta: &JsonMembers<'_>) -> Result<Option<String>, String> {
    if let Some(name) = meta.first_duplicate() {
        return Err(occurs_twice(name));
    }
    let mut forwarded = Forwarded::default();
    for (name, value) in meta.iter() {
        forwarded.add(name, value);
    }
    forwarded.object()
}

/// As [`to_forward`], of a `_meta` object that is given as JSON and may be long: its members are not collected.
///
/// # Errors
///
/// In addition, the message that the text is not an object.
pub fn text_to_forward(meta: &str) -> Result<Option<String>, String> {
    let mut names = BTreeSet::new();
    let mut duplicate = None;
    let mut forwarded = Forwarded::default();
    let read = each_member(meta.as_bytes(), |name, value| {
        forwarded.add(&name, value.get());
        // A set of names is as long as the text, whose length the surface limits.
        if !names.insert(name.clone()) && duplicate.is_none() {
            duplicate = Some(occurs_twice(&name));
        }
    });
    match (read, duplicate) {
        (Err(_), _) => Err("must be an object".to_owned()),
        (Ok(()), Some(message)) => Err(message),
        (Ok(()), None) => forwarded.object(),
    }
}

fn occurs_twice(name: &str) -> String {
    format!("has the key `{}` twice", shown_line(name, 80))
}

/// The object for the server, without its last bracket.
#[derive(Default)]
struct Forwarded {
    json: Vec<u8>,
    is_too_long: bool,
}

impl Forwarded {
    /// Adds a member, if it goes to the server and there is room for it.
    fn add(&mut self, name: &str, value: &str) {
        if self.is_too_long || is_reserved(name) || is_for_the_broker(name) {
            return;
        }
        // The marks around it and the last bracket; escapes in the name are more.
        let least = name.len() + value.len() + r#"{"":}"#.len();
        if self.json.len() + least > MAX_META_BYTES {
            self.is_too_long = true;
            return;
        }
        let mark = if self.json.is_empty() { b'{' } else { b',' };
        self.json.push(mark);
        push_string(&mut self.json, name);
        self.json.push(b':');
        self.json.extend_from_slice(value.as_bytes());
        self.is_too_long = self.json.len() + 1 > MAX_META_BYTES;
    }

    fn object(mut self) -> Result<Option<String>, String> {
        if self.is_too_long {
            return Err(format!(
                "has more than {MAX_META_BYTES} bytes for the server, which is the maximum"
            ));
        }
        if self.json.is_empty() {
            return Ok(None);
        }
        self.json.push(b'}');
        Ok(String::from_utf8(self.json).ok())
    }
}

/// Whether the broker reads a key, and has its own for the server or none.
fn is_for_the_broker(key: &str) -> bool {
    key == "progressToken" || key == idempotency_key::META_NAME
}

/// Whether the protocol reserves the prefix of a key: the labels before `/`, if the second is `mcp` or
/// `modelcontextprotocol`.
fn is_reserved(key: &str) -> bool {
    // Every request of the modern era has several of these.
    if key.starts_with("io.modelcontextprotocol/") {
        return true;
    }
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

    /// The common result of both functions.
    fn both(meta: &str) -> Result<Option<String>, String> {
        let result = text_to_forward(meta);
        if let Ok(members) = JsonMembers::parse(meta) {
            assert_eq!(to_forward(&members), result, "{meta}");
        }
        result
    }

    #[test]
    fn caller_meta_without_reserved_keys_is_forwarded_as_sent() {
        let forwarded = |meta: &str| both(meta).unwrap();
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
        for nothing in [
            "{}",
            " { } ",
            r#"{"progressToken":1,"io.MCP/x":1}"#,
            r#"{"dev.mcp-broker/idempotency-key":"order-17"}"#,
        ] {
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
            assert!(both(meta).unwrap_err().contains(words), "{meta}");
        }
        let of = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length));
        let most = MAX_META_BYTES - of(0).len();
        assert_eq!(both(&of(most)).unwrap().unwrap().len(), MAX_META_BYTES);
        assert!(both(&of(most + 1)).unwrap_err().contains("8192"));
        let reserved = format!(r#"{{"a.mcp/b":"{}"}}"#, "x".repeat(1 << 20));
        assert_eq!(both(&reserved).unwrap(), None);
    }
}
