//! The text in a result: its text blocks, and the JSON documents within them. Data of images, audio and resources is
//! not a text: it is neither counted nor cut.

use std::borrow::Cow;
use std::collections::BTreeMap;

use broker_model::json::each_member;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::walk::{self, CutDetail};

/// Returns a result without `structuredContent`, and the record of it if it was left out. Its JSON becomes a text block
/// if the result has no other content.
pub(super) fn without_structured(result: &[u8]) -> (Cow<'_, [u8]>, Option<CutDetail>) {
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

/// The JSON documents in the text blocks of a result, by the offset of the string that contains each.
#[derive(Debug, Default)]
pub(super) struct Documents(BTreeMap<usize, Vec<u8>>);

#[derive(Deserialize)]
struct Blocks<'r> {
    #[serde(borrow)]
    content: Vec<&'r RawValue>,
}

#[derive(Deserialize)]
struct Block<'r> {
    #[serde(default, borrow)]
    text: Option<&'r RawValue>,
    #[serde(default, borrow)]
    resource: Option<Resource<'r>>,
}

#[derive(Deserialize)]
struct Resource<'r> {
    #[serde(default, borrow)]
    text: Option<&'r RawValue>,
}

impl Documents {
    /// Returns the documents of a result; empty if its content cannot be read.
    pub(super) fn of(result: &[u8]) -> Self {
        let mut found = BTreeMap::new();
        let Ok(Blocks { content }) = serde_json::from_slice(result) else {
            return Self(found);
        };
        for block in content {
            let Ok(Block { text, resource }) = serde_json::from_str(block.get()) else {
                continue;
            };
            let text = text.or(resource.and_then(|resource| resource.text));
            if let Some(text) = text
                && let Some(document) = document(text.get())
            {
                let at = text.get().as_ptr() as usize - result.as_ptr() as usize;
                found.insert(at, document);
            }
        }
        Self(found)
    }

    /// Returns the document in the string that begins at an offset.
    pub(super) fn at(&self, offset: usize) -> Option<&[u8]> {
        self.0.get(&offset).map(Vec::as_slice)
    }
}

/// Returns the text of a string, if it is a JSON object or list.
fn document(string: &str) -> Option<Vec<u8>> {
    let text: String = serde_json::from_str(string).ok()?;
    let is_container = text.trim_start().starts_with(['{', '[']);
    // The reader bounds the depth.
    let is_json = is_container && serde_json::from_str::<IgnoredAny>(&text).is_ok();
    is_json.then(|| text.into_bytes())
}
