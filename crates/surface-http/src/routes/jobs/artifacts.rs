//! The parts of a result: the blocks of its content, and its structured content, each as bytes.

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The parts of a result.
pub(super) struct Artifacts(Vec<Artifact>);

/// One part.
pub(super) struct Artifact {
    name: String,
    media_type: String,
    pub(super) bytes: Bytes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    #[serde(default)]
    content: Vec<Value>,
    #[serde(default)]
    structured_content: Option<Box<RawValue>>,
}

impl Artifacts {
    /// Reads the parts of a result. A result in another form is one part.
    pub(super) fn read(result: &[u8]) -> Self {
        let Ok(read) = serde_json::from_slice::<ToolResult>(result) else {
            let whole = Artifact::new("result.json", "application/json", result.to_vec());
            return Self(vec![whole]);
        };
        let blocks = read.content.iter().enumerate();
        let mut parts: Vec<_> = blocks.map(|(at, block)| block_part(at, block)).collect();
        if let Some(structured) = read.structured_content {
            let bytes = structured.get().as_bytes().to_vec();
            parts.push(Artifact::new("structured.json", "application/json", bytes));
        }
        Self(parts)
    }

    /// Returns the list of the parts: `{"job_id":…,"artifacts":[{"name","part","media_type","size","sha256"}]}`.
    pub(super) fn manifest(&self, id: &str) -> Value {
        let parts = self.0.iter().enumerate().map(|(at, part)| {
            json!({
                "name": part.name,
                "part": at,
                "media_type": part.media_type,
                "size": part.bytes.len(),
                "sha256": HEXLOWER.encode(&Sha256::digest(&part.bytes)),
            })
        });
        json!({ "job_id": id, "artifacts": parts.collect::<Vec<_>>() })
    }

    /// Returns one part.
    pub(super) fn part(self, number: u64) -> Option<Artifact> {
        let number = usize::try_from(number).ok()?;
        self.0.into_iter().nth(number)
    }
}

impl Artifact {
    fn new(name: impl Into<String>, media_type: &str, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            media_type: media_type.to_owned(),
            bytes: bytes.into(),
        }
    }
}

/// Returns a block of the content as a part: text and data as their bytes, other blocks as JSON.
fn block_part(at: usize, block: &Value) -> Artifact {
    let text =
        |place: &Value, name: &str| place.get(name).and_then(Value::as_str).map(str::to_owned);
    let decoded = |place: &Value, name: &str| {
        let data = text(place, name)?;
        BASE64.decode(data.as_bytes()).ok()
    };
    let media_of = |place: &Value| text(place, "mimeType");
    let resource = block.get("resource").unwrap_or(&Value::Null);
    let found = match block.get("type").and_then(Value::as_str) {
        Some("text") => {
            text(block, "text").map(|text| ("text/plain".to_owned(), text.into_bytes()))
        }
        Some("image" | "audio") => media_of(block).zip(decoded(block, "data")),
        Some("resource") => {
            let bytes = text(resource, "text")
                .map(String::into_bytes)
                .or_else(|| decoded(resource, "blob"));
            let media = media_of(resource).unwrap_or_else(|| "application/octet-stream".to_owned());
            bytes.map(|bytes| (media, bytes))
        }
        _ => None,
    };
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("block");
    let kind: String = kind
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(32)
        .collect();
    match found {
        Some((media_type, bytes)) => Artifact::new(format!("{at}-{kind}"), &media_type, bytes),
        None => {
            let bytes = block.to_string().into_bytes();
            Artifact::new(format!("{at}-{kind}.json"), "application/json", bytes)
        }
    }
}
