//! The resources that the sources with `"resources": "live"` list now. They are content and no part of the lock: their
//! texts are the server's, so each is bounded, checked for hidden characters and marked as not reviewed.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use broker_model::apps::UI;
use broker_model::item::{ItemKind, id_of};
use broker_model::json::{string_text, to_text};
use broker_model::null_members::remove_nulls;
use broker_model::snapshot::ListedTool;
use broker_model::text::{is_invisible, shown_line};
use broker_model::trust::Exposure;
use broker_model::uri::{MAX_URI_BYTES, has_dot_segment};
use serde_json::{Map, Value, json};

/// Maximum length of one resource with its texts, in bytes.
const MAX_RESOURCE_BYTES: usize = 16 << 10;
/// The member of `_meta` that marks a text as not reviewed.
const META_REVIEWED: &str = "dev.mcp-broker/reviewed";
/// The member of `_meta` with the reason why the server's texts are left out.
const META_LEFT_OUT: &str = "dev.mcp-broker/left_out";

/// The lists of all sources.
#[derive(Debug)]
pub(crate) struct LiveResources(Box<[ArcSwapOption<LiveList>]>);

/// The resources of one source, by URI: each one JSON object.
#[derive(Debug, Default)]
pub(crate) struct LiveList(BTreeMap<Arc<str>, Arc<str>>);

impl LiveResources {
    /// Makes the state without a list of any source.
    pub(crate) fn new(sources: usize) -> Self {
        Self((0..sources).map(|_| ArcSwapOption::empty()).collect())
    }

    /// Replaces the list of a source.
    pub(crate) fn store(&self, source: usize, list: Arc<LiveList>) {
        self.0[source].store(Some(list));
    }

    /// Returns the latest list of a source; `None` before the first one.
    pub(crate) fn get(&self, source: usize) -> Option<Arc<LiveList>> {
        self.0[source].load_full()
    }
}

impl LiveList {
    /// Makes the list of a source, as its filter admits it. A resource whose URI cannot be shown or has dot segments is
    /// left out.
    pub(crate) fn new(source: &str, resources: &[ListedTool], exposure: &Exposure) -> Self {
        let mut list = BTreeMap::new();
        let exposed = resources.iter();
        for resource in exposed.filter(|resource| exposure.exposes(resource.name())) {
            let members = resource.read();
            let uri: Arc<str> = id_of(ItemKind::Resource, &members).into();
            if is_usable(&uri) {
                let entry = entry(&uri, members, resource.text().len());
                list.insert(uri, entry.into());
            } else {
                let uri = shown_line(&uri, 120);
                tracing::warn!(
                    source,
                    uri,
                    "a resource is left out: its URI has hidden characters, dot segments or too many bytes"
                );
            }
        }
        Self(list)
    }

    /// Whether the source lists a URI.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.0.contains_key(uri)
    }

    /// Returns the number of resources.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all resources in the order of their URIs: each the URI and one JSON object.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.0.iter()
    }
}

fn is_usable(uri: &str) -> bool {
    uri.len() <= MAX_URI_BYTES && !uri.chars().any(is_hidden) && !has_dot_segment(uri)
}

fn is_hidden(c: char) -> bool {
    is_invisible(c) || c.is_control()
}

/// Returns the listed object of this many bytes with the mark. Only the URI remains of an object that is too long or
/// has hidden characters.
fn entry(uri: &str, mut members: Map<String, Value>, bytes: usize) -> String {
    members.remove("inputSchema");
    remove_nulls(&mut members);
    let left_out = if bytes > MAX_RESOURCE_BYTES {
        Some("more than 16 KiB")
    } else if has_hidden_text(&Value::Object(members.clone())) {
        Some("hidden characters")
    } else {
        None
    };
    // The rights of a page are reviewed or absent.
    if let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove(UI);
    }
    let mut marks = Map::new();
    if let Some(reason) = left_out {
        members = Map::from_iter([
            ("uri".to_owned(), json!(uri)),
            ("name".to_owned(), json!(uri)),
        ]);
        marks.insert(META_LEFT_OUT.to_owned(), json!(reason));
    }
    marks.insert(META_REVIEWED.to_owned(), json!(false));
    match members.get_mut("_meta").and_then(Value::as_object_mut) {
        Some(meta) => meta.extend(marks),
        None => {
            members.insert("_meta".to_owned(), Value::Object(marks));
        }
    }
    to_text(&members)
}

fn has_hidden_text(value: &Value) -> bool {
    let is_hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    match value {
        Value::String(_) => string_text(value).is_some_and(|text| text.chars().any(is_hidden)),
        Value::Array(items) => items.iter().any(has_hidden_text),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.chars().any(is_hidden) || has_hidden_text(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(resources: &[Value]) -> LiveList {
        let listed = resources.iter().map(|raw| {
            let uri = raw["uri"].as_str().expect("a URI");
            ListedTool::new(ItemKind::Resource.key(uri), &raw.to_string())
        });
        let listed: Vec<_> = listed.collect();
        LiveList::new("/a", &listed, &Exposure::expose_all())
    }

    fn only(resource: Value) -> Value {
        let list = list(&[resource]);
        let (_, json) = list.iter().next().expect("one resource");
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn live_resource_keeps_its_members_and_is_marked() {
        let raw = json!({"uri": "x://a", "name": "A", "description": "two\nlines",
            "inputSchema": {}, "_meta": {"k": 1}});
        assert_eq!(
            only(raw),
            json!({"uri": "x://a", "name": "A", "description": "two\nlines",
                "_meta": {"k": 1, META_REVIEWED: false}})
        );
    }

    #[test]
    fn texts_of_a_live_resource_with_hidden_characters_or_too_many_bytes_are_left_out() {
        for (text, reason) in [
            ("a\u{200b}b".to_owned(), "hidden characters"),
            ("\u{e0041}".to_owned(), "hidden characters"),
            ("\u{1b}[31m".to_owned(), "hidden characters"),
            ("x".repeat(MAX_RESOURCE_BYTES), "more than 16 KiB"),
        ] {
            let raw = json!({"uri": "x://a", "name": "A", "annotations": {"k": [text]}});
            assert_eq!(
                only(raw),
                json!({"uri": "x://a", "name": "x://a",
                    "_meta": {META_LEFT_OUT: reason, META_REVIEWED: false}})
            );
        }
    }

    #[test]
    fn live_resource_whose_uri_cannot_be_shown_is_left_out() {
        let long = format!("x://{}", "a".repeat(MAX_URI_BYTES));
        for uri in [
            "x://a\u{202e}b",
            "x://a/../b",
            "x://a/%2e%2E/b",
            "x://a\nb",
            &long,
        ] {
            assert_eq!(
                list(&[json!({"uri": uri, "name": "A"})]).iter().count(),
                0,
                "{uri}"
            );
        }
    }
}
