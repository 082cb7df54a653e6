//! Readers of single values below a cursor. An error names the expected and the actual type; it never quotes the value,
//! since the value may be a secret.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};

use super::findings::{Cursor, Findings};
use super::spanned::{Data, Member, Spanned};
use super::template::{self, Template, is_own_variable, is_variable_name};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::{number_value, string_value};
use broker_model::text::shown_line;

/// Reports a value of the wrong type.
pub(super) fn wrong_type(findings: &mut Findings<'_>, cursor: &Cursor<'_>, expected: &str) {
    let message = format!("expected {expected}, got {}", cursor.value.type_name());
    findings.add(cursor, Diagnostic::error(Code::ConfigType, message));
}

pub(super) fn out_of_range(findings: &mut Findings<'_>, cursor: &Cursor<'_>, message: String) {
    findings.add(cursor, Diagnostic::error(Code::ConfigRange, message));
}

pub(super) fn boolean(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<bool> {
    match cursor.value.data {
        Data::Bool(value) => Some(value),
        _ => {
            wrong_type(findings, cursor, "a boolean");
            None
        }
    }
}

pub(super) fn string<'a>(findings: &mut Findings<'_>, cursor: &Cursor<'a>) -> Option<&'a str> {
    match &cursor.value.data {
        Data::String(text) => Some(text),
        _ => {
            wrong_type(findings, cursor, "a string");
            None
        }
    }
}

pub(super) fn object<'a>(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'a>,
    expected: &str,
) -> Option<&'a [Member]> {
    match &cursor.value.data {
        Data::Object(members) => Some(members),
        _ => {
            wrong_type(findings, cursor, expected);
            None
        }
    }
}

pub(super) fn list<'a>(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'a>,
    expected: &str,
) -> Option<&'a [Spanned]> {
    match &cursor.value.data {
        Data::Array(items) => Some(items),
        _ => {
            wrong_type(findings, cursor, expected);
            None
        }
    }
}

/// Every string of a list; `check` gets each with its cursor.
pub(super) fn strings<T>(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    mut check: impl FnMut(&mut Findings<'_>, &Cursor<'_>, &str) -> Option<T>,
) -> Vec<T> {
    let mut out = Vec::new();
    for (index, item) in list(findings, cursor, "a list of strings")
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let item = cursor.item(index, item);
        if let Some(text) = string(findings, &item) {
            out.extend(check(findings, &item, text));
        }
    }
    out
}

/// A whole number within `range`.
pub(super) fn integer(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    range: RangeInclusive<u64>,
) -> Option<usize> {
    let expected = format!("a whole number from {} to {}", range.start(), range.end());
    let Data::Number(text) = &cursor.value.data else {
        wrong_type(findings, cursor, &expected);
        return None;
    };
    match text.parse::<u64>().ok().filter(|n| range.contains(n)) {
        Some(number) => usize::try_from(number).ok(),
        None => {
            let message = format!("expected {expected}, got {}", shown_line(text, 40));
            out_of_range(findings, cursor, message);
            None
        }
    }
}

/// A time in seconds, fractions allowed, within `range`.
pub(super) fn seconds(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    range: RangeInclusive<f64>,
) -> Option<Duration> {
    let expected = format!(
        "seconds, a number from {} to {}",
        range.start(),
        range.end()
    );
    let found = match &cursor.value.data {
        Data::Number(text) => {
            if let Some(number) = text.parse::<f64>().ok().filter(|n| range.contains(n)) {
                return Some(Duration::from_secs_f64(number));
            }
            shown_line(text, 40)
        }
        // `"30s"` is reported as a value that is out of range, not as a wrong type.
        Data::String(_) => "a string".to_owned(),
        _ => {
            wrong_type(findings, cursor, &expected);
            return None;
        }
    };
    out_of_range(
        findings,
        cursor,
        format!("expected {expected}, got {found}"),
    );
    None
}

/// A string that is not expanded, such as a summary: a `${` is an error, and `$${` is read as `${`. `kind` is
/// the word for the string in messages.
pub(super) fn text(findings: &mut Findings<'_>, cursor: &Cursor<'_>, kind: &str) -> Option<String> {
    let text = string(findings, cursor)?;
    unescaped(findings, cursor, text, kind)
}

/// [`text`] for a string that was already read.
pub(super) fn unescaped(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    text: &str,
    kind: &str,
) -> Option<String> {
    match template::unescape(text) {
        Ok(text) => Some(text),
        Err(at) => {
            findings.add(cursor, unexpanded(&text[at..], kind));
            None
        }
    }
}

/// Returns a value as JSON, without expanding its strings and member names.
pub(super) fn unexpanded_value(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    kind: &str,
) -> Value {
    match &cursor.value.data {
        Data::String(text) => unescaped(findings, cursor, text, kind)
            .map(|text| string_value(&text))
            .unwrap_or_default(),
        Data::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, item)| unexpanded_value(findings, &cursor.item(index, item), kind))
                .collect()
        }
        Data::Object(members) => {
            let mut object = Map::new();
            for member in members {
                let value = cursor.member(member);
                match template::unescape(&member.key) {
                    Ok(name) => {
                        object.insert(name, unexpanded_value(findings, &value, kind));
                    }
                    Err(at) => findings.add_key(&value, unexpanded(&member.key[at..], kind)),
                }
            }
            Value::Object(object)
        }
        Data::Null | Data::Bool(_) | Data::Number(_) => cursor.value.to_value(),
    }
}

/// Returns the error for a text with a `${`; `rest` begins with it. Of a variable only the name is shown, since its
/// default may be a secret.
pub(super) fn unexpanded(rest: &str, kind: &str) -> Diagnostic {
    let name = rest
        .get(2..)
        .and_then(|inner| inner.split(['}', ':']).next())
        .filter(|name| is_variable_name(name));
    let shown = match name {
        Some(name) => format!("`${{{}}}`", shown_line(name, 80)),
        None => "a `${`".to_owned(),
    };
    let message = format!("{kind} has {shown}, and variables are not expanded there");
    Diagnostic::error(Code::TextVariable, message)
}

/// A string with variables, `${NAME}`.
pub(super) fn template(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Template> {
    let text = string(findings, cursor)?;
    template_of(findings, cursor, text)
}

/// [`template`] for a string that was already read.
pub(super) fn template_of(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    text: &str,
) -> Option<Template> {
    if text.contains('\0') {
        let message = "a NUL cannot be passed to a process or over the network";
        findings.add(cursor, Diagnostic::error(Code::EnvValue, message));
        return None;
    }
    match Template::parse(text) {
        Ok(template) => {
            let own = template.variables().find(|name| is_own_variable(name));
            if let Some(name) = own {
                let message = format!(
                    "`${{{}}}` is a variable of the broker itself, which no source may read",
                    shown_line(name, 80)
                );
                let help = "use a variable whose name does not begin with `MCP_BROKER_`";
                findings.add(
                    cursor,
                    Diagnostic::error(Code::EnvSyntax, message).help(help),
                );
                return None;
            }
            Some(template)
        }
        Err(error) => {
            let message = error.to_string();
            findings.add(cursor, Diagnostic::error(Code::EnvSyntax, message));
            None
        }
    }
}

/// An object of templates. `is_name` decides whether a name is valid, `kind` is the word for them in messages.
pub(super) fn templates(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    kind: &str,
    is_name: impl Fn(&str) -> bool,
) -> BTreeMap<String, Template> {
    let mut out = BTreeMap::new();
    for member in object(findings, cursor, "an object of strings").unwrap_or_default() {
        let value = cursor.member(member);
        if !is_name(&member.key) {
            let message = format!("`{}` is not a valid {kind}", shown_line(&member.key, 80));
            let diagnostic = Diagnostic::error(Code::EnvSyntax, message);
            findings.add_key(&value, diagnostic.help(format!("correct the {kind}")));
        }
        if let Some(template) = template(findings, &value) {
            out.insert(member.key.clone(), template);
        }
    }
    out
}

/// Reports numbers below the cursor that are over a limit.
pub(super) fn check_numbers(findings: &mut Findings<'_>, cursor: &Cursor<'_>) {
    match &cursor.value.data {
        Data::Number(text) if number_value(text).is_none() => {
            let message = format!(
                "the number {} has more than 1000 digits, or an exponent beyond ±10000",
                shown_line(text, 40)
            );
            out_of_range(findings, cursor, message);
        }
        Data::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_numbers(findings, &cursor.item(index, item));
            }
        }
        Data::Object(members) => {
            for member in members {
                check_numbers(findings, &cursor.member(member));
            }
        }
        _ => {}
    }
}
