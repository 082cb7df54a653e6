//! Names that can be confused: equal names on two sources, similar-looking names, mixed scripts.

use std::collections::BTreeMap;

use super::rules::rule;
use super::texts::{Role, Text};
use super::{CrossSourceFinding, TextFinding, excerpt, path_of, quoted};
use broker_drift::Finding;
use broker_drift::encoded::{Script, folded};
use broker_model::lock::{LockedSource, LockedTool};

/// The findings on the tools of two sources.
pub(super) fn check(sources: &[LockedSource]) -> Vec<CrossSourceFinding> {
    let mut by_name: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    let mut by_look: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, source) in sources.iter().enumerate() {
        for (index, tool) in source.exposed.iter().enumerate() {
            by_name
                .entry(&tool.upstream_name)
                .or_default()
                .push((number, index));
            by_look
                .entry(look(&tool.upstream_name))
                .or_default()
                .push((number, index));
        }
    }
    let mut found = Vec::new();
    for tools in by_name.values() {
        found.extend(pairs(sources, tools, "same-name", |one, other| {
            one.exposed_name == other.exposed_name
        }));
    }
    for tools in by_look.values() {
        found.extend(pairs(sources, tools, "confusable-name", |one, other| {
            one.upstream_name != other.upstream_name
        }));
    }
    found
}

/// For each tool, the first tool of an earlier source that it can be confused with. Two tools with the same bytes are
/// one server that is mounted twice.
fn pairs(
    sources: &[LockedSource],
    tools: &[(usize, usize)],
    id: &'static str,
    is_taken_for: fn(&LockedTool, &LockedTool) -> bool,
) -> Vec<CrossSourceFinding> {
    let of = |at: (usize, usize)| (&sources[at.0], &sources[at.0].exposed[at.1]);
    let mut found = Vec::new();
    for (place, tool) in tools.iter().enumerate() {
        let (_, one) = of(*tool);
        let mut earlier = tools[..place].iter().filter(|other| {
            let (_, other_tool) = of(**other);
            other.0 != tool.0 && other_tool.digest != one.digest && is_taken_for(one, other_tool)
        });
        let Some((source, other)) = earlier.next().map(|other| of(*other)) else {
            continue;
        };
        let path = quoted(&path_of(source, other));
        let message = if id == "same-name" {
            format!("{path} has this name as well")
        } else {
            format!("looks like {path}")
        };
        found.push(CrossSourceFinding {
            tool: *tool,
            finding: Finding {
                pointer: "/name".to_owned(),
                new: Some(excerpt(&one.upstream_name, 0, one.upstream_name.len()).into()),
                ..Finding::new(rule(id), message, "")
            },
        });
    }
    found
}

/// The skeleton of a name: without separators and case, each letter replaced by its look-alike.
fn look(name: &str) -> String {
    let mut look = String::with_capacity(name.len());
    for c in name.chars().map(folded).filter(|c| c.is_alphanumeric()) {
        look.push(match c {
            'i' | '1' => 'l',
            '0' => 'o',
            c => c,
        });
    }
    look.replace("rn", "m").replace("vv", "w")
}

/// A Latin word in a name that also has look-alike letters of another script. Letters that do not look
/// Latin, as in `Δt`, are not confusing.
pub(super) fn check_script(text: &Text<'_>) -> Option<TextFinding> {
    if !matches!(text.role, Role::Name | Role::Parameter | Role::Key) || text.text.is_ascii() {
        return None;
    }
    let is_latin = |c: char| Script::find(c) == Some(Script::Latin);
    let mut at = 0;
    for part in text.text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        let mut others = word.chars().filter(|c| c.is_alphabetic() && !is_latin(*c));
        let (first, alike) = (others.clone().next(), others.all(|c| folded(c).is_ascii()));
        if let Some(script) = first.and_then(Script::find)
            && alike
            && word.chars().any(is_latin)
        {
            return Some(TextFinding {
                rule: "mixed-script-name",
                at,
                to: at + word.len(),
                message: format!(
                    "{} letters in a Latin word, which reads as {}",
                    script.name(),
                    quoted(&word.chars().map(folded).collect::<String>())
                ),
            });
        }
        at += part.len();
    }
    None
}
