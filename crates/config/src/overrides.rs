//! `path_aliases` and `tool_overrides`: the reviewer's settings for single tools. Whether the tools exist
//! is checked with the lock.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::spanned::Data;
use super::{RenderMode, SchemaPolicy, ToolOverride, fields, search};
use broker_model::access::Hint;
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::path::NodePath;
use broker_model::text::shown_line;

const LEVEL: Level = Level::Override;
/// The maximum number of arguments that lines of the audit log show.
const MAX_POINTERS: usize = 16;
/// The maximum characters of the pointer of one.
const MAX_POINTER_CHARS: usize = 200;

/// Leaf names by upstream tool name; each is one segment, and all differ.
pub(super) fn aliases(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut taken: HashMap<&str, (&str, usize)> = HashMap::new();
    for member in fields::object(findings, cursor, "an object of strings").unwrap_or_default() {
        let value = cursor.member(member);
        let Some(alias) = fields::string(findings, &value) else {
            continue;
        };
        // An alias has no character that would have to be escaped.
        if fields::unescaped(findings, &value, alias, "an alias").is_none() {
            continue;
        }
        if let Err(error) = NodePath::root().join(alias) {
            let message = format!("the alias `{}`: {error}", shown_line(alias, 80));
            let diagnostic = Diagnostic::error(Code::PathInvalid, message);
            findings.add(&value, diagnostic.help("an alias is one path segment"));
        }
        match taken.get(alias) {
            // A duplicate key was already reported.
            Some((tool, first)) if *tool != member.key => {
                let message = format!(
                    "`{}` and `{}` both get the alias `{}`",
                    shown_line(tool, 80),
                    shown_line(&member.key, 80),
                    shown_line(alias, 80)
                );
                let diagnostic = Diagnostic::error(Code::LeafClash, message);
                findings.add_also(&value, diagnostic, *first);
            }
            _ => {
                taken.insert(alias, (&member.key, member.value.at));
            }
        }
        out.insert(member.key.clone(), alias.to_owned());
    }
    out
}

/// The name that means every tool of a source.
pub(super) const EVERY_TOOL: &str = "*";
/// The keys that it may have: the others replace texts of one tool, or are keys of the source.
const KEYS_OF_EVERY_TOOL: [&str; 2] = ["max_output_chars", "coerce"];

/// Overrides by upstream tool name, and the one of every tool.
pub(super) fn read(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
) -> (BTreeMap<String, ToolOverride>, ToolOverride) {
    let (mut out, mut of_every_tool) = (BTreeMap::new(), ToolOverride::default());
    for member in fields::object(findings, cursor, "an object of overrides").unwrap_or_default() {
        let value = cursor.member(member);
        if member.key == EVERY_TOOL {
            check_every_tool(findings, &value);
            of_every_tool = one(findings, &value);
        } else {
            out.insert(member.key.clone(), one(findings, &value));
        }
    }
    (out, of_every_tool)
}

/// Refuses keys that only single tools can have.
fn check_every_tool(findings: &mut Findings<'_>, cursor: &Cursor<'_>) {
    let Data::Object(members) = &cursor.value.data else {
        return;
    };
    for member in members {
        if KEYS_OF_EVERY_TOOL.contains(&member.key.as_str())
            || !Level::Override.keys().contains(&member.key.as_str())
        {
            continue;
        }
        let message = format!("`{}` cannot be set for `{EVERY_TOOL}`", member.key);
        let diagnostic = Diagnostic::error(Code::ConfigUnknownKey, message);
        findings.add(
            &cursor.member(member),
            diagnostic.help("set it for single tools; `timeout`, `max_timeout` and `schema` are also keys of the source"),
        );
    }
}

fn one(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> ToolOverride {
    let mut out = ToolOverride::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "summary" => out.summary = fields::text(findings, &value, "a summary"),
            "description" => {
                out.description = fields::text(findings, &value, "a description");
            }
            key @ "timeout" => out.timeout = keys::seconds(findings, &value, LEVEL, key),
            key @ "max_timeout" => out.max_timeout = keys::seconds(findings, &value, LEVEL, key),
            "example_args" => {
                if fields::object(findings, &value, "an object, the arguments").is_some() {
                    fields::check_numbers(findings, &value);
                    if let Value::Object(args) = value.value.to_value() {
                        out.example_args = Some(args);
                    }
                }
            }
            key @ "max_output_chars" => {
                out.max_output_chars = keys::integer(findings, &value, LEVEL, key);
            }
            "audit" => out.audit = pointers(findings, &value),
            "coerce" => out.coerce = fields::boolean(findings, &value),
            "render_mode" => out.render_mode = render_mode(findings, &value),
            "annotations" => out.annotations = annotations(findings, &value),
            "schema" => out.schema = SchemaPolicy::read(findings, &value, LEVEL),
            "hints" => out.search_hints = search::hints(findings, &value),
            unknown => keys::unknown(findings, &value, unknown, Level::Override),
        }
    }
    out
}

/// JSON pointers of arguments for lines of the audit log.
fn pointers(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let read = fields::strings(findings, cursor, |findings, item, text| {
        let is_escaped = |part: &str| part.is_empty() || !part.starts_with(['0', '1']);
        let is_pointer = text.starts_with('/') && !text.split('~').skip(1).any(is_escaped);
        let problem = if !is_pointer {
            "is not a JSON pointer to an argument, such as `/org`"
        } else if text.chars().count() > MAX_POINTER_CHARS {
            "has more than 200 characters"
        } else if out.iter().any(|known| known == text) {
            "is in the list twice: remove one"
        } else {
            out.push(text.to_owned());
            return Some(());
        };
        fields::out_of_range(
            findings,
            item,
            format!("`{}` {problem}", shown_line(text, 80)),
        );
        None
    });
    if read.len() > MAX_POINTERS {
        let message = format!(
            "lines of the audit log show at most {MAX_POINTERS} arguments, got {}; remove some",
            read.len()
        );
        fields::out_of_range(findings, cursor, message);
    }
    out
}

/// Values of hints, by the names that annotations have.
fn annotations(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Map<String, Value>> {
    let mut out = Map::new();
    for member in fields::object(findings, cursor, "an object of hints")? {
        let value = cursor.member(member);
        if Hint::from_key(&member.key).is_none() {
            keys::unknown(findings, &value, &member.key, Level::Hints);
        } else if let Some(hint) = fields::boolean(findings, &value) {
            out.insert(member.key.clone(), hint.into());
        }
    }
    Some(out)
}

fn render_mode(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> RenderMode {
    let mode = keys::choice(findings, cursor, LEVEL, "render_mode", |name| match name {
        "json" => Some(RenderMode::Json),
        "text" => Some(RenderMode::Text),
        "structured" => Some(RenderMode::Structured),
        _ => None,
    });
    mode.unwrap_or_default()
}
