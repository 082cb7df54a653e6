//! `_meta.ui` of a resource that is read: what a page in it may load and use (MCP Apps).
//!
//! A host prefers the content's member to the listing's member, so that a server could widen the policy that was
//! reviewed. Contents of the locked resource get the reviewed member; all other contents lose the member. Other members
//! and all other bytes stay as the server sent them.

use std::ops::Range;
use std::sync::LazyLock;

use broker_memory::{Account, Charge, UNCHARGED_BYTES};
use broker_model::CallCode;
use broker_model::apps::UI;
use broker_model::item::ItemKind;
use broker_model::json::{each_element, each_member, to_text};
use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::{Catalog, Item};
use crate::errors::error::CoreError;
use crate::errors::failure;

/// A part of a result that is replaced by a text.
type Change = (Range<usize>, String);

static META: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"_meta"));
/// A name of a member may be written with escapes.
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));

/// Whether the contents of a result may have the member.
pub(super) fn is_needed(kind: ItemKind, result: &[u8]) -> bool {
    match kind {
        ItemKind::Tool | ItemKind::Prompt => false,
        ItemKind::Resource | ItemKind::Template => {
            META.find(result).is_some() || ESCAPE.find(result).is_some()
        }
    }
}

/// Returns the result with the reviewed member in its contents, or without the member.
pub(super) fn with_reviewed(
    catalog: &Catalog,
    tool: &Item,
    result: Bytes,
    account: &Account,
) -> Result<Bytes, Box<CoreError>> {
    let listed = format!("{{{}}}", catalog.text(tool.list_head));
    // The build wrote the text.
    let listed = broker_model::json::parse(&listed).unwrap_or_default();
    let uri = match (tool.kind, tool.is_live()) {
        (ItemKind::Resource, false) => Some(tool.id),
        (ItemKind::Tool | ItemKind::Prompt | ItemKind::Template | ItemKind::Resource, _) => None,
    };
    let reviewed = Reviewed {
        uri,
        ui: listed
            .get("_meta")
            .and_then(|meta| meta.get(UI))
            .filter(|ui| !ui.is_null()),
        is_template: tool.kind == ItemKind::Template,
    };
    let unreadable = || {
        let message = "the contents of the resource that the server sent cannot be read";
        Box::new(CoreError::new(CallCode::SourceProtocol, message).maybe_executed(true))
    };
    let text = std::str::from_utf8(&result).map_err(|_| unreadable())?;
    let changes = reviewed.changes(text).map_err(|_| unreadable())?;
    if changes.is_empty() {
        return Ok(result);
    }
    let mut charge = Charge::default();
    let replaced: usize = changes.iter().map(|(_, text)| text.len()).sum();
    let most = text.len() + replaced;
    charge
        .cover(account, most)
        .map_err(|error| Box::new(failure::memory_error_for_result(error)))?;
    let mut edited = String::with_capacity(most);
    let mut at = 0;
    for (range, with) in changes {
        edited.push_str(&text[at..range.start]);
        edited.push_str(&with);
        at = range.end;
    }
    edited.push_str(&text[at..]);
    let is_charged = edited.len() > UNCHARGED_BYTES;
    charge.shrink(if is_charged { edited.len() } else { 0 });
    Ok(charge.hold(edited))
}

/// The reviewed parts of an entry.
struct Reviewed<'a> {
    /// The URI of a locked resource.
    uri: Option<&'a str>,
    /// Its `_meta.ui`.
    ui: Option<&'a Value>,
    /// Whether it is a template that covers the requested URI.
    is_template: bool,
}

impl Reviewed<'_> {
    /// Returns the values of `_meta` in the contents that have the member, each with what replaces it.
    fn changes(&self, result: &str) -> serde_json::Result<Vec<Change>> {
        let mut changes = Vec::new();
        let mut contents = Vec::new();
        let mut lists = Vec::new();
        each_member(result.as_bytes(), |name, value| {
            if name == "contents" {
                lists.push(value);
            }
        })?;
        for list in lists {
            let each = |content| {
                contents.push(content);
                Ok::<(), serde_json::Error>(())
            };
            each_element(list.get().as_bytes(), each)??;
        }
        for content in contents.into_iter().filter(|content| is_object(content)) {
            let (mut metas, mut is_own) = (Vec::new(), self.is_template);
            each_member(content.get().as_bytes(), |name, value| match &*name {
                "_meta" => metas.push(value),
                "uri" => {
                    let uri: Option<String> = serde_json::from_str(value.get()).ok();
                    is_own |= uri.is_some() && uri.as_deref() == self.uri;
                }
                _ => {}
            })?;
            for meta in metas.into_iter().filter(|meta| is_object(meta)) {
                let ui = self.ui.filter(|_| is_own);
                if let Some(with) = replaced(meta, ui)? {
                    let start = meta.get().as_ptr() as usize - result.as_ptr() as usize;
                    changes.push((start..start + meta.get().len(), with));
                }
            }
        }
        Ok(changes)
    }
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// Returns the `_meta` with this member; `None` if it lacks the member.
fn replaced(meta: &RawValue, ui: Option<&Value>) -> serde_json::Result<Option<String>> {
    let (mut members, mut has_ui) = (Vec::new(), false);
    each_member(meta.get().as_bytes(), |name, value| match &*name {
        UI => has_ui = true,
        name => members.push(format!("{}:{}", Value::from(name), value.get())),
    })?;
    if !has_ui {
        return Ok(None);
    }
    members.extend(ui.map(|ui| format!("\"{UI}\":{}", to_text(ui))));
    Ok(Some(format!("{{{}}}", members.join(","))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(uri: Option<&str>, is_template: bool, ui: Option<&Value>, result: &str) -> String {
        let reviewed = Reviewed {
            uri,
            ui,
            is_template,
        };
        let mut text = result.to_owned();
        let changes = reviewed.changes(result).unwrap();
        for (range, with) in changes.into_iter().rev() {
            text.replace_range(range, &with);
        }
        text
    }

    #[test]
    fn contents_get_the_reviewed_member_and_keep_every_other_byte() {
        let ui = json!({"csp": {"connectDomains": ["https://a.example"]}});
        let wide = r#"{"ui": {"csp": {"connectDomains": ["*"]}}, "k": 1.00}"#;
        let result = |meta: &str| {
            format!(
                r#"{{ "contents": [{{"uri":"ui://x","_meta":{meta},"text":"a"}}], "n":1.0,"n":2}}"#
            )
        };
        let wanted = result(&format!(r#"{{"k":1.00,"ui":{ui}}}"#));
        for meta in [wide, r#"{"\u0075i": 1, "k": 1.00, "ui": null}"#] {
            let found = edited(Some("ui://x"), false, Some(&ui), &result(meta));
            assert_eq!(found, wanted, "{meta}");
            assert_eq!(edited(None, true, Some(&ui), &result(meta)), wanted);
            // Another resource, a live one, and one whose listing has no such member.
            for (uri, ui) in [
                (Some("ui://y"), Some(&ui)),
                (None, Some(&ui)),
                (Some("ui://x"), None),
            ] {
                let found = edited(uri, false, ui, &result(meta));
                assert_eq!(found, result(r#"{"k":1.00}"#), "{meta}");
            }
        }
        let without = result(r#"{"k": {"ui": 1}}"#);
        assert_eq!(edited(Some("ui://x"), false, Some(&ui), &without), without);
    }

    #[test]
    fn every_member_of_a_repeated_name_is_replaced() {
        let result = r#"{"contents":[{"uri":"ui://x","_meta":{"ui":1},"\u005fmeta":{"ui":2}},{"_meta":{"ui":3}}],"contents":[{"_meta":{"ui":4}}, 5]}"#;
        let found = edited(Some("ui://x"), false, Some(&json!(0)), result);
        assert_eq!(
            found,
            r#"{"contents":[{"uri":"ui://x","_meta":{"ui":0},"\u005fmeta":{"ui":0}},{"_meta":{}}],"contents":[{"_meta":{}}, 5]}"#
        );
    }

    #[test]
    fn contents_that_cannot_be_read_are_an_error_and_tools_are_not_searched() {
        let reviewed = Reviewed {
            uri: None,
            ui: None,
            is_template: false,
        };
        for result in [
            "[]",
            r#"{"contents":{"_meta":{"ui":1}}}"#,
            r#"{"contents":[{"_meta":{"ui":1}"#,
        ] {
            assert!(reviewed.changes(result).is_err(), "{result}");
        }
        assert!(!is_needed(ItemKind::Tool, b"_meta"));
        assert!(is_needed(ItemKind::Resource, br#"{"\u005fmeta":1}"#));
        assert!(!is_needed(ItemKind::Template, b"{}"));
    }
}
