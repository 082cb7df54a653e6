//! The texts of listings and descriptions for models. They say the same as the JSON of the meta API with fewer tokens.

use std::borrow::Cow;

use broker_model::text::shown_line;
use broker_wire::write::ObjectWriter;
use broker_wire::{JsonMembers, valid_string};
use bytes::Bytes;

use crate::core::{Identity, ListedEntry, Reply, Services, descriptions_json};
use crate::surface::meta::{DescriptionForm, Listed, ListingAnswer, with_warnings};

/// The maximum characters of a summary in one line.
const MAX_SUMMARY_CHARS: usize = 200;
/// The members of a description that only a request with `full` gets: they do not help to make a call.
const FULL_ONLY: [&str; 2] = ["digest", "output_schema"];

/// One line for an entry: its path, with `/` at the end of a node, and its summary.
pub(super) fn line(path: &str, is_node: bool, summary: &str) -> String {
    let end = if is_node { "/" } else { "" };
    format!("{path}{end}  {}", shown_line(summary, MAX_SUMMARY_CHARS))
}

/// Returns the text of a listing.
pub(super) fn listing(listed: Listed, services: &Services, identity: &Identity) -> String {
    let warnings = &listed.warnings;
    let short = |body: Bytes| {
        let reply = Reply { body, etag: None };
        with_warnings(reply, warnings).body
    };
    let json = match &listed.answer {
        ListingAnswer::Tree(listing) => {
            let mut lines = Vec::new();
            push(
                &mut lines,
                listing.tree().children.as_deref().unwrap_or_default(),
            );
            return with_warning_lines(lines, None, warnings);
        }
        ListingAnswer::Found(_, found) => {
            let mut lines = Vec::new();
            for hit in &found.hits {
                push(&mut lines, std::slice::from_ref(&hit.entry));
            }
            return with_warning_lines(lines, found.is_weak.then_some(&found.nodes), warnings);
        }
        ListingAnswer::One(one, DescriptionForm::Short) => {
            short(Bytes::from(description(one.json()).into_owned()))
        }
        ListingAnswer::Many(paths, described, DescriptionForm::Short) => {
            short(descriptions_json(paths, described, |one| {
                description(one.json())
            }))
        }
        ListingAnswer::One(_, DescriptionForm::Full)
        | ListingAnswer::Many(_, _, DescriptionForm::Full) => {
            listed.into_reply(services, identity).body
        }
    };
    String::from_utf8_lossy(&json).into_owned()
}

/// Joins the lines of entries; `weak` has the nodes of a search in which no tool fits well.
fn with_warning_lines(
    mut lines: Vec<String>,
    weak: Option<&Vec<ListedEntry>>,
    warnings: &[&str],
) -> String {
    if lines.is_empty() {
        lines.push("(no entries)".to_owned());
    }
    if let Some(nodes) = weak {
        let nodes = nodes.iter().map(|node| format!("{}/", node.path));
        let nodes: Vec<String> = nodes.collect();
        let or = if nodes.is_empty() { "" } else { ": " };
        let nodes = nodes.join(", ");
        lines.push(format!("weak: rephrase `query`, or list a node{or}{nodes}"));
    }
    let warnings = warnings.iter();
    lines.extend(warnings.map(|warning| format!("warning: {warning}")));
    lines.join("\n")
}

fn push(lines: &mut Vec<String>, entries: &[ListedEntry]) {
    for entry in entries {
        let mut text = line(entry.path, entry.is_node(), &entry.summary);
        if entry.withdrawn.is_some() {
            text.push_str(" (withdrawn: cannot be called)");
        }
        lines.push(text);
        push(lines, entry.children.as_deref().unwrap_or_default());
    }
}

/// Returns a description without the members that only a request with `full` gets, and without a summary that is the
/// beginning of the description. The others are the same byte for byte.
fn description(json: &str) -> Cow<'_, str> {
    match JsonMembers::from_valid(json) {
        Some(members) => without(json, &members),
        None => Cow::Borrowed(json),
    }
}

fn without<'j>(json: &'j str, members: &JsonMembers<'_>) -> Cow<'j, str> {
    let mut out = ObjectWriter::with_capacity(json.len());
    let text = |name| members.get(name).and_then(valid_string).unwrap_or_default();
    let repeats = text("description").starts_with(&*text("summary"));
    for (name, value) in members.iter() {
        let is_left_out = FULL_ONLY.contains(&name) || (name == "summary" && repeats);
        if !is_left_out {
            out.member(name, value);
        }
    }
    let short = out.end();
    match std::str::from_utf8(short.as_ref()) {
        Ok(short) => Cow::Owned(short.to_owned()),
        Err(_) => Cow::Borrowed(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_drift::Class;

    use crate::core::{
        Broker as _, Core, EntryType, FoundTool, FoundTools, ItemKind, WithdrawalNote,
    };

    fn entry(path: &'static str, summary: &str, children: Option<Vec<ListedEntry>>) -> ListedEntry {
        let kind = match children {
            Some(_) => EntryType::Node,
            None => EntryType::Item(ItemKind::Tool),
        };
        ListedEntry {
            path,
            kind,
            summary: summary.to_owned().into(),
            withdrawn: None,
            children,
        }
    }

    /// Returns the text of an answer.
    fn text(answer: ListingAnswer, warnings: &[&'static str]) -> String {
        let core = Core::builder(&crate::core::catalog::NONE).build().unwrap();
        let warnings = warnings.to_vec();
        let listed = Listed { answer, warnings };
        listing(listed, core.services(), &Identity::local())
    }

    fn tree(children: Vec<ListedEntry>) -> String {
        let root = entry("/", "all", Some(children));
        text(ListingAnswer::Tree(root.into()), &[])
    }

    #[test]
    fn tree_is_one_line_for_each_entry() {
        let mut withdrawn = entry("/a/c", "Writes", None);
        let since = "2026-01-01T00:00:00Z".to_owned();
        withdrawn.withdrawn = Some(WithdrawalNote::new(Class::Breaking, "it differs", since));
        let below = vec![entry("/a/b", "Reads", None), withdrawn];
        let children = vec![entry("/a", "Files", Some(below)), entry("/t", "T", None)];
        assert_eq!(
            tree(children),
            "/a/  Files\n/a/b  Reads\n/a/c  Writes (withdrawn: cannot be called)\n/t  T"
        );
        assert_eq!(tree(Vec::new()), "(no entries)");
    }

    #[test]
    fn search_without_a_good_tool_says_so_with_its_nodes() {
        let found = |is_weak: bool, warnings: &[&'static str]| {
            let found = FoundTools {
                place: "/",
                hits: vec![FoundTool {
                    entry: entry("/a/b", "B", None),
                    callable: None,
                    score: 0.1,
                }],
                nodes: vec![entry("/a", "A", Some(Vec::new()))],
                is_weak,
                is_degraded: false,
            };
            text(ListingAnswer::Found("q".to_owned(), found), warnings)
        };
        assert_eq!(found(false, &[]), "/a/b  B");
        assert_eq!(
            found(true, &[]),
            "/a/b  B\nweak: rephrase `query`, or list a node: /a/"
        );
        assert_eq!(
            found(false, &["`depth` was not used"]),
            "/a/b  B\nwarning: `depth` was not used"
        );
    }

    #[test]
    fn hostile_summary_stays_in_its_line() {
        for summary in [
            "a\n/b/x  fake",
            "a\r\n\u{2028}x",
            "a\u{1b}[2K\u{202e}b\u{e0041}",
            "a\tb",
        ] {
            let text = tree(vec![entry("/a/b", summary, None)]);
            assert!(
                text.starts_with("/a/b  a") && text.lines().count() == 1,
                "{text:?}"
            );
            assert!(
                !text.contains(['\u{1b}', '\u{202e}', '\u{2028}', '\r', '\u{e0041}']),
                "{text:?}"
            );
        }
        let long = line("/a", false, &"x".repeat(10_000));
        assert!(long.chars().count() < 300);
    }

    #[test]
    fn description_has_no_digest_and_no_output_schema() {
        let entry = r#"{"path":"/a/b","args_schema":{"n":1.00,"digest":"x"},"output_schema":{"a":1},"digest":"sha256/1:00"}"#;
        let short = r#"{"path":"/a/b","args_schema":{"n":1.00,"digest":"x"}}"#;
        assert_eq!(description(entry), short);
        let repeated = r#"{"path":"/a/b","summary":"Reads","description":"Reads. More"}"#;
        assert_eq!(
            description(repeated),
            r#"{"path":"/a/b","description":"Reads. More"}"#
        );
        let own = r#"{"path":"/a/b","summary":"Files","description":"Reads."}"#;
        assert_eq!(description(own), own);
    }
}
