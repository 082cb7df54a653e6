//! The section `access`: the groups of callers, and the rules for what they see and call.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fields;
use super::findings::{Cursor, Findings};
use super::identities::is_key_name;
use super::keys::{self, Level};
use super::spanned::Member;
use broker_model::access::{
    Access, Denied, Effect, GroupSet, Hint, MAX_GROUPS, PathPatterns, Rule, check_claims,
};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::suggest;
use broker_model::text::shown_line;

/// The maximum number of rules.
const MAX_RULES: usize = 10_000;
/// In place of a group: every group.
const EVERY: &str = "*";
/// The word for a text in messages.
const GROUP: &str = "the name of a group";

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Access> {
    let members = fields::object(findings, cursor, "an object with `groups` and `rules`")?;
    // Everything else names groups, so they are read first, wherever they are in the section.
    let groups = match cursor.get("groups") {
        Some(value) => groups(findings, &value),
        None => {
            let message = "`access` has no `groups`; name at least one";
            findings.add(cursor, Diagnostic::error(Code::ConfigType, message));
            Vec::new()
        }
    };
    let every = GroupSet::first(groups.len());
    let mut access = Access {
        groups,
        rules: Vec::new(),
        local: every,
        secret: every,
        anonymous: GroupSet::NONE,
        operators: None,
        denied: Denied::default(),
    };
    if cursor.get("rules").is_none() {
        let message = "`access` has no `rules`; without a rule that allows it, nothing is allowed";
        let diagnostic = Diagnostic::error(Code::ConfigType, message);
        findings.add(
            cursor,
            diagnostic.help("write `\"rules\": []` if that is meant"),
        );
    }
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "groups" => {}
            "rules" => access.rules = rules(findings, &value, &access),
            "local" => access.local = set(findings, &value, &access),
            "secret" => access.secret = set(findings, &value, &access),
            "anonymous" => access.anonymous = set(findings, &value, &access),
            "operators" => access.operators = Some(set(findings, &value, &access)),
            "denied" => access.denied = denied(findings, &value),
            unknown => keys::unknown(findings, &value, unknown, Level::Access),
        }
    }
    Some(access)
}

fn groups(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<String> {
    let mut known = BTreeSet::new();
    let groups = fields::strings(findings, cursor, |findings, item, text| {
        fields::unescaped(findings, item, text, GROUP)?;
        let refused = if !is_key_name(text) {
            Some(format!(
                "`{}` is not the name of a group: 1 to 64 letters, digits, `_`, `.` and `-`",
                shown_line(text, 80)
            ))
        } else if !known.insert(text.to_owned()) {
            Some(format!("the group `{text}` is named twice"))
        } else {
            None
        };
        match refused {
            Some(message) => {
                fields::out_of_range(findings, item, message);
                None
            }
            None => Some(text.to_owned()),
        }
    });
    if groups.len() > MAX_GROUPS {
        let message = format!("{} groups, at most {MAX_GROUPS} are allowed", groups.len());
        fields::out_of_range(findings, cursor, message);
    }
    if groups.is_empty() {
        let message = "`groups` is empty; name at least one group".to_owned();
        fields::out_of_range(findings, cursor, message);
    }
    groups.into_iter().take(MAX_GROUPS).collect()
}

/// A list of groups, or `["*"]` for all.
fn set(findings: &mut Findings<'_>, cursor: &Cursor<'_>, access: &Access) -> GroupSet {
    let groups = fields::strings(findings, cursor, |findings, item, text| {
        if text == EVERY {
            return Some(access.all());
        }
        fields::unescaped(findings, item, text, GROUP)?;
        let group = access.group(text);
        if group.is_none() {
            findings.add(item, unknown_group(text, &access.groups));
        }
        group
    });
    groups.into_iter().fold(GroupSet::NONE, GroupSet::union)
}

/// The problem of a name that is not one of the groups.
pub(super) fn unknown_group(name: &str, groups: &[String]) -> Diagnostic {
    let message = format!(
        "`{}` is not one of the groups in `access.groups`",
        shown_line(name, 80)
    );
    let diagnostic = Diagnostic::error(Code::AccessGroupUnknown, message);
    let known = groups.iter().map(String::as_str);
    match suggest::nearest(name, known, 1).pop() {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

fn denied(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Denied {
    match fields::string(findings, cursor) {
        Some("hidden") | None => Denied::Hidden,
        Some("forbidden") => Denied::Forbidden,
        Some(other) => {
            let message = format!(
                "expected `hidden` or `forbidden`, got `{}`",
                shown_line(other, 40)
            );
            fields::out_of_range(findings, cursor, message);
            Denied::Hidden
        }
    }
}

fn rules(findings: &mut Findings<'_>, cursor: &Cursor<'_>, access: &Access) -> Vec<Rule> {
    let items = fields::list(findings, cursor, "a list of rules").unwrap_or_default();
    if items.len() > MAX_RULES {
        let message = format!("{} rules, at most {MAX_RULES} are allowed", items.len());
        fields::out_of_range(findings, cursor, message);
    }
    let items = items.iter().enumerate().take(MAX_RULES);
    items
        .filter_map(|(index, item)| rule(findings, &cursor.item(index, item), access))
        .collect()
}

fn rule(findings: &mut Findings<'_>, cursor: &Cursor<'_>, access: &Access) -> Option<Rule> {
    let members = fields::object(findings, cursor, "an object, a rule")?;
    let effect = effect(findings, cursor)?;
    let mut rule = Rule {
        effect,
        paths: PathPatterns::default(),
        to: GroupSet::NONE,
        except: GroupSet::NONE,
        hints: Vec::new(),
        args: None,
        pointer: cursor.pointer(),
    };
    if cursor.get("to").is_none() {
        let message = "the rule has no `to`, the groups to which it applies";
        let diagnostic = Diagnostic::error(Code::ConfigType, message);
        findings.add(
            cursor,
            diagnostic.help("`\"to\": [\"*\"]` names every group"),
        );
    }
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "allow" | "deny" => rule.paths = paths(findings, &value),
            "to" => rule.to = set(findings, &value, access),
            "except" if effect == Effect::Deny => rule.except = set(findings, &value, access),
            "args" if effect == Effect::Allow => rule.args = args(findings, &value),
            "except" | "args" => misplaced(findings, &value, member),
            "where" => rule.hints = hints(findings, &value),
            unknown => keys::unknown(findings, &value, unknown, Level::AccessRule),
        }
    }
    Some(rule)
}

/// What the rule does: it has exactly one of `allow` and `deny`.
fn effect(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Effect> {
    match (cursor.get("allow"), cursor.get("deny")) {
        (Some(_), None) => Some(Effect::Allow),
        (None, Some(_)) => Some(Effect::Deny),
        (allow, _) => {
            let which = allow.map_or("neither `allow` nor `deny`", |_| "both `allow` and `deny`");
            let message = format!("the rule has {which}; give exactly one");
            findings.add(cursor, Diagnostic::error(Code::ConfigType, message));
            None
        }
    }
}

fn misplaced(findings: &mut Findings<'_>, cursor: &Cursor<'_>, member: &Member) {
    let (message, help) = match member.key.as_str() {
        "except" => (
            "`except` belongs to a rule with `deny`",
            "remove `except`: `to` already names the groups that the rule allows",
        ),
        _ => (
            "`args` belongs to a rule with `allow`",
            "remove the rule, and give the rule that allows the tool an `args` that refuses these arguments",
        ),
    };
    let diagnostic = Diagnostic::error(Code::ConfigType, message);
    findings.add_key(cursor, diagnostic.help(help));
}

fn paths(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> PathPatterns {
    let patterns = fields::strings(findings, cursor, |findings, item, text| {
        let text = fields::unescaped(findings, item, text, "a path of a rule")?;
        match PathPatterns::compile(&[&text]) {
            Ok(_) => Some(text),
            Err(error) => {
                let message = format!("`{}`: {}", shown_line(&text, 80), error.reason);
                findings.add(item, Diagnostic::error(Code::GlobSyntax, message));
                None
            }
        }
    });
    PathPatterns::compile(&patterns).unwrap_or_else(|error| {
        findings.add(cursor, Diagnostic::error(Code::GlobSyntax, error.reason));
        PathPatterns::default()
    })
}

fn hints(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<(Hint, bool)> {
    let mut out = Vec::new();
    for member in fields::object(findings, cursor, "an object of hints").unwrap_or_default() {
        let value = cursor.member(member);
        let Some(hint) = Hint::from_key(&member.key) else {
            keys::unknown(findings, &value, &member.key, Level::Hints);
            continue;
        };
        out.extend(fields::boolean(findings, &value).map(|value| (hint, value)));
    }
    out
}

fn args(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Value> {
    fields::object(findings, cursor, "an object, a JSON Schema")?;
    fields::check_numbers(findings, cursor);
    let schema = fields::unexpanded_value(findings, cursor, "`args` of a rule");
    if let Err(error) = check_claims(&schema) {
        let message = format!("at `{}`: {}", error.pointer, error.reason);
        fields::out_of_range(findings, cursor, message);
    }
    Some(schema)
}
