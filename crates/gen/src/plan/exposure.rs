//! The checks of filter and trust level with the tools that a source has: patterns without a match, sources without an
//! exposed tool, and settings of tools that are hidden.

use broker_config::Source;
use broker_model::DiagnosticCode;
use broker_model::filter::{ToolFilter, literal_pattern};
use broker_model::item::ItemKind;
use broker_model::lock::LockedSource;
use broker_model::text::{shown_line, visible_json};
use broker_model::trust::{HiddenBy, TrustLevel};
use serde_json::json;

use super::{Diagnostic, Planner, nearest};

/// Maximum length of a list of names to copy, in bytes.
const MAX_LIST_BYTES: usize = 64 << 10;

impl<'a> Planner<'a> {
    /// Refuses a source if its filter or level exposes no tool; a single pattern without a match is a warning.
    pub(super) fn check_exposure(&mut self, source: &'a Source, locked: &LockedSource) {
        let hidden = locked.hidden.iter().map(|tool| tool.name.as_str());
        let hidden = hidden.filter(|name| is_tool(name));
        if locked.exposed.is_empty() && locked.left_out.is_empty() {
            let hidden: Vec<&str> = hidden.collect();
            if self.check_level(source, &hidden) {
                self.check_whole_filter(source, &hidden);
            }
            return;
        }
        let exposed = locked.exposed.iter();
        let exposed = exposed.map(|tool| tool.upstream_name.as_str());
        let exposed = exposed.filter(|name| is_tool(name));
        let left_out = locked.left_out.iter();
        let left_out = left_out.filter(|part| part.kind == ItemKind::Tool);
        let left_out = left_out.filter_map(|part| part.name.as_deref());
        let names: Vec<&str> = exposed.chain(hidden).chain(left_out).collect();
        self.check_patterns(source, &names);
    }

    /// Whether the level lets the filter decide. If not, the tools that it hides are listed.
    fn check_level(&mut self, source: &Source, hidden: &[&str]) -> bool {
        let exposure = &source.exposure;
        let by_level = hidden.iter().copied().filter(|name| {
            let by = exposure.hidden_by(name);
            by.is_some_and(|by| by.is_by_level())
        });
        let by_level: Vec<&str> = by_level.collect();
        let is_unlisted =
            exposure.level() == TrustLevel::Verified && !exposure.filter().has_positive();
        if by_level.is_empty() && !is_unlisted {
            return true;
        }
        let (path, level) = (&source.path, exposure.level());
        let message = if is_unlisted {
            format!(
                "`{path}` has the trust level `{level}`, and its `tool_filter` has no positive pattern, so no tool is exposed"
            )
        } else {
            let count = by_level.len();
            format!(
                "the trust level `{level}` of `{path}` hides each of its {count} tools that the filter admits, since their names have sensitive words"
            )
        };
        let place = match source.trust {
            Some(_) => format!("{}/trust", source.pointer),
            None => source.pointer.clone(),
        };
        let problem = match is_unlisted || exposure.filter().has_positive() {
            true => Diagnostic::error(DiagnosticCode::TrustEmpty, message),
            // A source without settings for its exposure does not stop the other ones.
            false => Diagnostic::warning(DiagnosticCode::TrustEmpty, message),
        };
        let problem = problem.at(place).notes(filter_to_copy(&by_level));
        let problem = self.config.place(problem);
        match problem.is_error() {
            true => self.problems.push(problem),
            false => self.plan.warnings.push(problem),
        }
        false
    }

    fn check_whole_filter(&mut self, source: &Source, names: &[&str]) {
        let patterns = source.exposure.filter().patterns();
        if patterns.is_empty() {
            return;
        }
        let message = format!(
            "the filter of `{}` matches none of its {} tools",
            source.path,
            names.len()
        );
        let wanted = patterns.iter().map(String::as_str);
        let help = format!(
            "Its tools nearest to the patterns: {}.",
            nearest(wanted, names, 5)
        );
        self.error(
            source,
            "/tool_filter",
            DiagnosticCode::FilterEmpty,
            message,
            Some(help),
        );
    }

    fn check_patterns(&mut self, source: &Source, names: &[&str]) {
        for pattern in source.exposure.filter().patterns() {
            let glob = pattern.strip_prefix('!').unwrap_or(pattern);
            let matches = ToolFilter::compile(&[glob])
                .is_ok_and(|alone| names.iter().any(|name| alone.admits(name)));
            if !matches {
                let shown = shown_line(pattern, 100);
                let message = format!("the pattern `{shown}` of `{}` matches no tool", source.path);
                let warning = Diagnostic::warning(DiagnosticCode::FilterEmpty, message)
                    .at(format!("{}/tool_filter", source.pointer))
                    .help(format!(
                        "The nearest: {}.",
                        nearest([glob].into_iter(), names, 3)
                    ));
                self.plan.warnings.push(self.config.place(warning));
            }
        }
    }

    /// An alias or an override of a tool that is not exposed.
    pub(super) fn unknown_tool(
        &mut self,
        source: &Source,
        locked: &LockedSource,
        name: &str,
        key: &str,
    ) {
        let shown = shown_line(name, 100);
        let below = format!("/{key}/{}", broker_model::json::escape_token(name));
        if is_left_out(locked, name) {
            return self.warn_left_out(source, &below, name, key);
        }
        let is_hidden = locked.hidden.iter().any(|tool| tool.name == name);
        let (message, help) = match source.exposure.hidden_by(name) {
            Some(by @ HiddenBy::Word(_)) if is_hidden => (
                format!(
                    "`{key}` names `{shown}` of `{}`, which is {by}",
                    source.path
                ),
                format!(
                    "Add the name to `tool_filter`{}, or remove the key.",
                    beside_others(source)
                ),
            ),
            _ if is_hidden => (
                format!(
                    "`{key}` names `{shown}`, which the filter of `{}` hides",
                    source.path
                ),
                "Admit it in `tool_filter`, or remove the key.".to_owned(),
            ),
            _ => {
                let names = locked.exposed.iter();
                let names = names.map(|tool| tool.upstream_name.as_str());
                let names: Vec<&str> = names.filter(|name| is_tool(name)).collect();
                (
                    format!(
                        "`{key}` names `{shown}`, which `{}` does not have",
                        source.path
                    ),
                    format!("Did you mean {}?", nearest([name].into_iter(), &names, 3)),
                )
            }
        };
        self.error(
            source,
            &below,
            DiagnosticCode::OverrideUnknown,
            message,
            Some(help),
        );
    }
}

impl Planner<'_> {
    /// Warns about a key of the config that names a part that the lock leaves out.
    pub(super) fn warn_left_out(&mut self, source: &Source, below: &str, name: &str, key: &str) {
        let message = format!(
            "`{key}` names `{}` of `{}`, which the lock leaves out",
            shown_line(name, 100),
            source.path
        );
        let warning = Diagnostic::warning(DiagnosticCode::OverrideUnknown, message)
            .at(format!("{}{below}", source.pointer))
            .help("None: the key counts again when the lock has it.");
        self.plan.warnings.push(self.config.place(warning));
    }
}

/// Whether the lock leaves out the tool or item with this key.
pub(super) fn is_left_out(locked: &LockedSource, key: &str) -> bool {
    let mut parts = locked.left_out.iter();
    parts.any(|part| {
        part.name
            .as_deref()
            .is_some_and(|name| part.kind.key(name) == key)
    }) || locked.more_left_out.is_some()
}

/// Whether a key names a tool.
fn is_tool(key: &str) -> bool {
    ItemKind::parse_key(key).0 == ItemKind::Tool
}

/// Returns the hint to keep `*`, if it is needed: a filter whose only pattern is a name exposes only that tool.
fn beside_others(source: &Source) -> &'static str {
    match source.exposure.filter().has_positive() {
        true => "",
        false => ", beside `*` for the other tools",
    }
}

/// `tool_filter` with the names of these tools, as a line of a config; too many names are cut.
fn filter_to_copy(names: &[&str]) -> Option<String> {
    let mut names: Vec<&str> = names.to_vec();
    names.sort_unstable();
    let (mut list, mut count) = (String::new(), 0);
    for name in &names {
        let pattern = visible_json(&json!(literal_pattern(name)).to_string());
        if list.len() + pattern.len() > MAX_LIST_BYTES {
            break;
        }
        if count > 0 {
            list.push_str(", ");
        }
        list.push_str(&pattern);
        count += 1;
    }
    let more = match names.len() - count {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("  \"tool_filter\": [{list}]{more}"))
}
