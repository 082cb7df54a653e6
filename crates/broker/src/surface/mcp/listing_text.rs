//! The texts of listings and descriptions for models. They say the same as the JSON of the meta API with fewer tokens.

use std::borrow::Cow;

use broker_model::text::shown_line;
use broker_wire::write::ObjectWriter;
use broker_wire::{JsonMembers, valid_string};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// The maximum characters of a summary in one line.
const MAX_SUMMARY_CHARS: usize = 200;
/// The members of a description that only a request with `full` gets: they do not help to make a call.
const FULL_ONLY: [&str; 2] = ["digest", "output_schema"];

/// The members of `meta_tree` that its text shows.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    summary: Cow<'a, str>,
    #[serde(default, borrow)]
    children: Vec<Self>,
    withdrawn: Option<IgnoredAny>,
    /// Of a search: nodes with good tools.
    #[serde(default, borrow)]
    nodes: Vec<Self>,
    /// Of a search: no tool fits well.
    #[serde(default)]
    weak: bool,
    /// What was not used of the request.
    #[serde(default, borrow)]
    warnings: Vec<Cow<'a, str>>,
}

/// One line for an entry: its path, with `/` at the end of a node, and its summary.
pub(super) fn line(path: &str, is_node: bool, summary: &str) -> String {
    let end = if is_node { "/" } else { "" };
    format!("{path}{end}  {}", shown_line(summary, MAX_SUMMARY_CHARS))
}

/// A reply of `meta_tree` as lines; as it is if it cannot be read.
pub(super) fn tree(json: &str) -> String {
    let Ok(top) = serde_json::from_str::<Entry<'_>>(json) else {
        return json.to_owned();
    };
    let mut lines = Vec::new();
    push(&mut lines, &top.children);
    if lines.is_empty() {
        lines.push("(no entries)".to_owned());
    }
    if top.weak {
        let nodes: Vec<String> = top
            .nodes
            .iter()
            .map(|node| format!("{}/", node.path))
            .collect();
        let or = if nodes.is_empty() { "" } else { ": " };
        let nodes = nodes.join(", ");
        lines.push(format!("weak: rephrase `query`, or list a node{or}{nodes}"));
    }
    let warnings = top.warnings.iter();
    lines.extend(warnings.map(|warning| format!("warning: {warning}")));
    lines.join("\n")
}

fn push(lines: &mut Vec<String>, entries: &[Entry<'_>]) {
    for entry in entries {
        let mut text = line(&entry.path, entry.kind == "node", &entry.summary);
        if entry.withdrawn.is_some() {
            text.push_str(" (withdrawn: cannot be called)");
        }
        lines.push(text);
        push(lines, &entry.children);
    }
}

/// A reply of `meta_desc` without the members that only a request with `full` gets, and without a summary that is the
/// beginning of the description. The others are the same byte for byte.
pub(super) fn description(json: &str) -> Cow<'_, str> {
    let Some(members) = JsonMembers::of_valid(json) else {
        return Cow::Borrowed(json);
    };
    match members
        .get("entries")
        .map(serde_json::from_str::<Vec<&RawValue>>)
    {
        Some(Ok(entries)) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|entry| description(entry.get()))
                .collect();
            let warnings = members.get("warnings");
            let warnings = warnings.map(|list| format!(",\"warnings\":{list}"));
            Cow::Owned(format!(
                "{{\"entries\":[{}]{}}}",
                entries.join(","),
                warnings.unwrap_or_default()
            ))
        }
        _ => without(json, &members),
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
    use serde_json::json;

    #[test]
    fn tree_is_one_line_for_each_entry() {
        let reply = json!({"path": "/", "type": "node", "summary": "all", "children": [
            {"path": "/a", "type": "node", "summary": "Files", "children": [
                {"path": "/a/b", "type": "tool", "summary": "Reads"},
                {"path": "/a/c", "type": "tool", "summary": "Writes", "withdrawn": {"class": "gone"}}]},
            {"path": "/t", "type": "tool", "summary": "T"}]});
        assert_eq!(
            tree(&reply.to_string()),
            "/a/  Files\n/a/b  Reads\n/a/c  Writes (withdrawn: cannot be called)\n/t  T"
        );
        let empty = json!({"path": "/e", "type": "node", "summary": "", "children": []});
        assert_eq!(tree(&empty.to_string()), "(no entries)");
    }

    #[test]
    fn search_without_a_good_tool_says_so_with_its_nodes() {
        let node = json!({"path": "/a", "type": "node", "summary": "A"});
        let tool = json!({"path": "/a/b", "type": "tool", "summary": "B", "score": 0.1});
        let found = |weak: bool| json!({"path": "/", "type": "node", "query": "q", "children": [tool], "nodes": [node], "weak": weak});
        assert_eq!(tree(&found(false).to_string()), "/a/b  B");
        assert_eq!(
            tree(&found(true).to_string()),
            "/a/b  B\nweak: rephrase `query`, or list a node: /a/"
        );
        let mut warned = found(false);
        warned["warnings"] = json!(["`depth` was not used"]);
        assert_eq!(
            tree(&warned.to_string()),
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
            let entry = json!({"path": "/a/b", "type": "tool", "summary": summary});
            let reply = json!({"path": "/a", "type": "node", "summary": "", "children": [entry]});
            let text = tree(&reply.to_string());
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
        let many = format!(r#"{{"entries":[{entry},{{"path":"/c","error":{{}}}}]}}"#);
        assert_eq!(
            description(&many),
            format!(r#"{{"entries":[{short},{{"path":"/c","error":{{}}}}]}}"#)
        );
        let warned = format!(r#"{{"entries":[{entry}],"warnings":["both"]}}"#);
        assert_eq!(
            description(&warned),
            format!(r#"{{"entries":[{short}],"warnings":["both"]}}"#)
        );
    }
}
