//! The text in a result: its text blocks, and the JSON documents within them. Data of images, audio and resources is
//! not a text: it is neither counted nor cut.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

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
    pub(super) fn read(result: &[u8]) -> Self {
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
