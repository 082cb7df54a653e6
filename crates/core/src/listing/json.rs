//! The JSON of the meta API for values that the build did not render: search hits and lists of descriptions.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::errors::error::ErrorMembers;
use crate::listing::description::{Described, Description};
use crate::listing::search::FoundTools;

/// The element for an entry that cannot be described.
#[derive(Serialize)]
struct UndescribedEntry<'a> {
    path: &'a str,
    error: ErrorMembers<'a>,
}

/// Returns `{"entries":[…]}` with one element for each path: what `shown` returns for its description, or its path and
/// its error.
pub fn descriptions_json<'d>(
    paths: &[impl AsRef<str>],
    described: &'d [Described],
    shown: impl Fn(&'d Description) -> Cow<'d, str>,
) -> Bytes {
    let mut out = "{\"entries\":[".to_owned();
    for (index, (path, one)) in paths.iter().zip(described).enumerate() {
        if index > 0 {
            out.push(',');
        }
        match one {
            Ok(description) => out.push_str(&shown(description)),
            Err(error) => {
                let (path, error) = (path.as_ref(), error.members(None));
                let element = serde_json::to_string(&UndescribedEntry { path, error });
                out.push_str(&element.expect("strings and JSON values always serialize"));
            }
        }
    }
    out.push_str("]}");
    Bytes::from(out)
}

impl FoundTools {
    /// Returns the answer to a query:
    /// `{"path","type","query","children":[…],"nodes":[…],"weak"?,"degraded"?}`. Each child has its path, type, summary
    /// and score; `"degraded":"words"` says that the model gave no vector in time.
    pub fn json(&self, query: &str) -> Bytes {
        let mut out = String::with_capacity(1024);
        push(&mut out, format_args!("{{\"path\":\"{}\"", self.place));
        let query = Value::from(query);
        push(
            &mut out,
            format_args!(",\"type\":\"node\",\"query\":{query},\"children\":["),
        );
        for (rank, hit) in self.hits.iter().enumerate() {
            out.push_str(if rank > 0 { "," } else { "" });
            hit.entry.push_open_json(&mut out);
            let score = Value::from(hit.score);
            push(&mut out, format_args!(",\"score\":{score}}}"));
        }
        out.push_str("],\"nodes\":[");
        for (rank, node) in self.nodes.iter().enumerate() {
            out.push_str(if rank > 0 { "," } else { "" });
            node.push_json(&mut out);
        }
        out.push(']');
        if self.is_weak {
            out.push_str(",\"weak\":true");
        }
        if self.is_degraded {
            out.push_str(",\"degraded\":\"words\"");
        }
        out.push('}');
        Bytes::from(out)
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all text");
}
