//! The three forms of a returned tool result: as the server sent it, as one text block, or as its structured content
//! alone. Each is a `CallToolResult` and keeps `isError`.

use std::borrow::Cow;

use broker_config::RenderMode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The parts of a result that a form uses; other members are not read.
#[derive(Deserialize)]
struct Parts<'r> {
    #[serde(borrow, default)]
    content: Vec<&'r RawValue>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'r RawValue>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block<'r> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    #[serde(borrow, default)]
    text: Cow<'r, str>,
}

/// Returns the result in this form. A result that lacks these parts, or that cannot be read, stays as the server sent
/// it: a form never produces an empty result.
pub(crate) fn render(mode: RenderMode, result: &[u8]) -> Cow<'_, [u8]> {
    let shaped = match mode {
        RenderMode::Json => None,
        RenderMode::Text => serde_json::from_slice(result)
            .ok()
            .and_then(|parts: Parts<'_>| text(&parts)),
        RenderMode::Structured => serde_json::from_slice(result)
            .ok()
            .and_then(|parts: Parts<'_>| structured(&parts)),
    };
    shaped.map_or(Cow::Borrowed(result), |shaped| {
        Cow::Owned(shaped.into_bytes())
    })
}

/// Returns one text block: the text blocks, joined by newlines. Other blocks are left out.
fn text(parts: &Parts<'_>) -> Option<String> {
    let texts: Vec<_> = parts
        .content
        .iter()
        .filter_map(|block| serde_json::from_str::<Block<'_>>(block.get()).ok())
        .filter(|block| block.kind == "text")
        .map(|block| block.text)
        .collect();
    if texts.is_empty() {
        return None;
    }
    let joined = Value::from(texts.join("\n"));
    Some(format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":{joined}}}]{}}}",
        flag(parts)
    ))
}

/// Returns `structuredContent` alone, byte for byte.
fn structured(parts: &Parts<'_>) -> Option<String> {
    let content = parts.structured?;
    Some(format!(
        "{{\"content\":[],\"structuredContent\":{content}{}}}",
        flag(parts)
    ))
}

fn flag(parts: &Parts<'_>) -> &'static str {
    if parts.is_error {
        ",\"isError\":true"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(mode: RenderMode, result: &str) -> String {
        String::from_utf8(render(mode, result.as_bytes()).into_owned()).expect("results are UTF-8")
    }

    #[test]
    fn text_mode_joins_the_text_blocks() {
        let result = r#"{"content":[{"type":"text","text":"a\"b"},{"type":"image","data":"x"},{"type":"text","text":"c"}],"isError":true,"_meta":{}}"#;
        assert_eq!(
            shaped(RenderMode::Text, result),
            r#"{"content":[{"type":"text","text":"a\"b\nc"}],"isError":true}"#
        );
    }

    #[test]
    fn structured_mode_keeps_the_bytes() {
        let result = r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1.0, "a":[] },"isError":false}"#;
        assert_eq!(
            shaped(RenderMode::Structured, result),
            r#"{"content":[],"structuredContent":{"n":1.0, "a":[] }}"#
        );
    }

    #[test]
    fn result_without_the_parts_of_a_mode_is_unchanged() {
        for (mode, result) in [
            (RenderMode::Json, r#"{"content":[]}"#),
            (
                RenderMode::Structured,
                r#"{"content":[{"type":"text","text":"a"}]}"#,
            ),
            (
                RenderMode::Text,
                r#"{"content":[{"type":"image","data":"x"}]}"#,
            ),
            (RenderMode::Text, r#"{"content":7}"#),
        ] {
            assert_eq!(shaped(mode, result), result);
        }
    }
}
