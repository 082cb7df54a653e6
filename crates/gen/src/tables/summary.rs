//! The summaries of nodes and tools: one line that says what an entry is for.

use broker_config::{Node, ToolOverride};
use broker_model::NodePath;
use broker_model::lock::LockedTool;
use broker_model::tool_names;
use serde_json::Value;

use crate::plan::{Entry, Plan, ToolEntry};
use crate::text::first_sentence;

/// A word of titles without a meaning.
const EMPTY_WORD: &str = "tool";

/// The summary, else the description's first sentence, else for a source the names of its tools, else the
/// name.
pub fn node_summary(plan: &Plan<'_>, path: &NodePath, node: &Node) -> String {
    if let Some(summary) = &node.summary {
        return summary.clone();
    }
    if let Some(sentence) = node.description.as_deref().and_then(first_sentence) {
        return sentence;
    }
    if path.is_root() {
        return "All tools of this broker".to_owned();
    }
    tool_names::summary(names_of_tools(plan, path)).unwrap_or_else(|| path.leaf().to_owned())
}

/// The names of the tools directly below a node.
fn names_of_tools<'p>(plan: &'p Plan<'_>, path: &NodePath) -> Vec<&'p str> {
    let Some(Entry::Node { children, .. }) = plan.entries.get(path) else {
        return Vec::new();
    };
    let tools = children
        .iter()
        .filter(|child| matches!(plan.entries.get(*child), Some(Entry::Tool(_))));
    tools.map(NodePath::leaf).collect()
}

/// [`summary`] of a tool of the plan.
pub fn tool_summary(tool: &ToolEntry<'_>) -> String {
    summary(tool.said, tool.tool)
}

/// The override, else a title that says more than the name, else the description's first sentence, else a title that
/// repeats the name, else the name.
pub fn summary(said: Option<&ToolOverride>, tool: &LockedTool) -> String {
    if let Some(summary) = said.and_then(|said| said.summary.clone()) {
        return summary;
    }
    let raw = &tool.raw;
    let annotated = raw.get("annotations").and_then(|hints| hints.get("title"));
    let titles = [raw.get("title"), annotated];
    let titles = titles.into_iter().flatten().filter_map(Value::as_str);
    let mut titles = titles.map(one_line).filter(|title| !title.is_empty());
    let title = titles.next();
    let says_more = |title: &String| !only_repeats(title, name_of(tool));
    let description = raw.get("description").and_then(Value::as_str);
    title
        .clone()
        .filter(says_more)
        .or_else(|| description.and_then(first_sentence))
        .or(title)
        .unwrap_or_else(|| name_of(tool).to_owned())
}

/// Returns the name of a tool, or the name of a prompt or resource. The key of a prompt or resource does not have this
/// name.
fn name_of(tool: &LockedTool) -> &str {
    let name = tool.raw.get("name").and_then(Value::as_str);
    name.unwrap_or(&tool.upstream_name)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a title has only words of the name: `Read File` and `Read file tool` for `read_file` or `readFile`.
fn only_repeats(title: &str, name: &str) -> bool {
    let (said, known) = (words(title), words(name));
    let repeats = |word: &String| known.contains(word) || word == EMPTY_WORD;
    said.iter().all(repeats) || said.concat() == known.concat()
}

/// The words of a name or a title, in lower case: letters and digits, split where a capital follows a small letter.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (was_small && c.is_uppercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words
                .last_mut()
                .expect("there is always a word")
                .extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::digest::Digest;
    use serde_json::json;

    fn of(name: &str, members: Value) -> String {
        let raw = members.as_object().unwrap().clone();
        let tool = LockedTool {
            search_hints: Vec::new(),
            upstream_name: name.to_owned(),
            summary: None,
            exposed_name: name.to_owned(),
            digest: Digest::from_tool(&raw),
            unvalidated: false,
            raw,
        };
        summary(None, &tool)
    }

    #[test]
    fn title_that_repeats_the_name_gives_way_to_the_first_sentence() {
        let described =
            |title: &str| json!({"title": title, "description": "Reads one file. More."});
        for (name, title) in [
            ("read_file", "Read File"),
            ("read-file", "Read file tool"),
            ("readFile", "Read File"),
            ("readfile", "Read file"),
            ("fs_read_file", "Read file"),
        ] {
            assert_eq!(
                of(name, described(title)),
                "Reads one file",
                "{name} {title}"
            );
        }
        for title in ["Read one text file", "Files"] {
            assert_eq!(of("read_file", described(title)), title);
        }
        let annotated = json!({"annotations": {"title": "Read file"}, "description": "Reads one."});
        assert_eq!(of("read_file", annotated), "Reads one");
        assert_eq!(
            of("read_file", json!({"title": "Read\n File"})),
            "Read File"
        );
        assert_eq!(of("read_file", json!({"description": " "})), "read_file");
    }
}
