//! Leaves `structuredContent` out of a result.

use std::borrow::Cow;

use broker_model::json::each_member;

use super::walk::{self, CutDetail};

/// Returns a result without `structuredContent`, and the record of it if it was left out. Its JSON becomes a text block
/// if the result has no other content.
pub(super) fn without(result: &[u8]) -> (Cow<'_, [u8]>, Option<CutDetail>) {
    let (mut structured, mut content, mut others) = (None, None, Vec::new());
    let read = each_member(result, |name, value| match name.as_ref() {
        "structuredContent" => structured = Some(value.get().to_owned()),
        "content" => content = Some(value.get().to_owned()),
        other => others.push(format!(
            "{}:{}",
            serde_json::Value::from(other),
            value.get()
        )),
    });
    let (Ok(_), Some(structured)) = (read, structured) else {
        return (Cow::Borrowed(result), None);
    };
    let has_content = content.as_deref().is_some_and(|list| {
        let inner = list.trim().strip_prefix('[');
        inner.is_some_and(|inner| !inner.trim_start().starts_with(']'))
    });
    let (content, left_out) = match content.filter(|_| has_content) {
        Some(content) => {
            let from = walk::chars(structured.as_bytes());
            let left_out = CutDetail {
                pointer: "/structuredContent".to_owned(),
                kind: "member",
                from,
                to: 0,
            };
            (content, Some(left_out))
        }
        None => {
            let text = serde_json::Value::from(structured);
            (format!("[{{\"type\":\"text\",\"text\":{text}}}]"), None)
        }
    };
    let mut out = format!("{{\"content\":{content}");
    for member in others {
        out.push(',');
        out.push_str(&member);
    }
    out.push('}');
    (Cow::Owned(out.into_bytes()), left_out)
}
