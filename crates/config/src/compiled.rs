//! The config document that is compiled into the binary: only the keys that the broker reads, with a
//! variable in place of every literal secret.

use serde_json::{Map, Value};

use super::confidential::{is_secret_key, is_secret_value, replace_secret_values, secrets_in_text};
use super::keys::Level;
use super::source::variable_for;
use super::template::{Part, Template};
use super::{Config, servers};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::{child_pointer, to_text};
use broker_model::redact::is_secret_name;
use broker_model::text::shown_line;

impl Config {
    /// The document to compile in, and a warning for each secret that was replaced. Keys of other clients
    /// and disabled entries are left out, since they may contain secrets that are not recognised.
    pub fn compiled(&self) -> (Value, Vec<Diagnostic>) {
        let mut document = self.document.value.clone();
        let mut warnings = Vec::new();
        let key = self.document.servers_key;
        if key != servers::KEY
            && let Value::Object(members) = &mut document
            && let Some(entries) = members.remove(key)
        {
            members.insert(servers::KEY.to_owned(), entries);
        }
        if let Some(tree) = document.get_mut("tree") {
            nodes(tree, "/tree", &mut warnings);
        }
        if let Some(Value::Object(entries)) = document.get_mut(servers::KEY) {
            entries.retain(|_, entry| !servers::is_left_out(entry));
            for (name, entry) in entries {
                convert(entry);
                keep(entry, Level::Source, &["type"]);
                source(
                    entry,
                    &child_pointer(&format!("/{key}"), name),
                    &mut warnings,
                );
            }
        }
        keep(&mut document, Level::Top, &[]);
        let warnings = warnings.into_iter().map(|w| self.place(w)).collect();
        (document, warnings)
    }

    /// Returns the text of the compiled-in document of a client file, for people, if the file is not a config itself.
    pub fn converted_text(&self) -> Option<String> {
        if !self.document.is_converted {
            return None;
        }
        let (document, _) = self.compiled();
        // Its `$schema` describes the file and not a config.
        let members = document.as_object()?.iter();
        let members = members.filter(|(key, _)| *key != "$schema");
        let members = members.map(|(key, value)| {
            let text = match value {
                Value::Object(entries) if key == servers::KEY => self.entries_text(entries),
                value => indented(value, "  "),
            };
            format!("  {}: {text}", Value::from(key.as_str()))
        });
        let members = members.collect::<Vec<_>>().join(",\n");
        Some(format!("{{\n{members}\n}}\n"))
    }

    /// The entries of a client file in its order, for people.
    fn entries_text(&self, entries: &Map<String, Value>) -> String {
        let entries = self.document.servers.iter().filter_map(|name| {
            let entry = indented(entries.get(name)?, "    ");
            Some(format!("    {}: {entry}", Value::from(name.as_str())))
        });
        let entries = entries.collect::<Vec<_>>().join(",\n");
        format!("{{\n{entries}\n  }}")
    }

    /// Returns the text of the compiled-in document. `mcpServers` keeps the order of the file, since the tree has this
    /// order; the members of all other objects are sorted by name.
    pub fn compiled_text(&self) -> String {
        let (document, _) = self.compiled();
        let Value::Object(members) = document else {
            return to_text(&document);
        };
        let members = members.iter().map(|(key, value)| match value {
            Value::Object(entries) if key == servers::KEY => {
                let names = &self.document.servers;
                let in_order = names
                    .iter()
                    .filter_map(|name| entries.get_key_value(name))
                    .map(|(name, entry)| (name, to_text(entry)));
                (key, object_text(in_order))
            }
            value => (key, to_text(value)),
        });
        object_text(members)
    }
}

/// An object with these members in this order; each value is already JSON.
fn object_text<'a>(members: impl Iterator<Item = (&'a String, String)>) -> String {
    let members: Vec<String> = members
        .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn keep(object: &mut Value, level: Level, besides: &[&str]) {
    if let Value::Object(members) = object {
        members.retain(|key, _| {
            level.keys().contains(&key.as_str()) || besides.contains(&key.as_str())
        });
        // A time that another client meant in milliseconds was ignored and is not compiled in.
        if level == Level::Source
            && members
                .get("timeout")
                .and_then(Value::as_f64)
                .is_some_and(|t| t > *super::keys::key(Level::Source, "timeout").numbers().end())
        {
            members.remove("timeout");
        }
    }
}

fn nodes(value: &mut Value, pointer: &str, warnings: &mut Vec<Diagnostic>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                nodes(item, &format!("{pointer}/{index}"), warnings);
            }
        }
        Value::Object(members) => {
            if let Some(mounted) = members.get_mut("source") {
                source(mounted, &format!("{pointer}/source"), warnings);
            }
            if let Some(children) = members.get_mut("children") {
                nodes(children, &format!("{pointer}/children"), warnings);
            }
        }
        _ => {}
    }
}

fn indented(value: &Value, indent: &str) -> String {
    format!("{value:#}").replace('\n', &format!("\n{indent}"))
}

fn source(value: &mut Value, pointer: &str, warnings: &mut Vec<Diagnostic>) {
    for (key, header) in [("env", false), ("headers", true)] {
        if let Some(Value::Object(members)) = value.get_mut(key) {
            hide(members, header, &format!("{pointer}/{key}"), warnings);
        }
    }
    let secret = "/auth/client_credentials/client_secret";
    if let Some(Value::String(text)) = value.pointer_mut(secret)
        && let Some(replacement) = asked("client_secret", text, true)
    {
        let warning = replaced("client_secret", &replacement);
        warnings.push(warning.at(format!("{pointer}{secret}")));
        *text = replacement;
    }
    for place in ["/url", "/auth/client_credentials/token_url"] {
        if let Some(Value::String(url)) = value.pointer_mut(place) {
            *url = replace_secret_values(url, |name, value| {
                let replacement = asked(name, value, true)?;
                warnings.push(replaced(name, &replacement).at(format!("{pointer}{place}")));
                Some(replacement)
            });
        }
    }
}

/// Leaves out an `auth` and a `trust` of another client: they have another meaning.
fn convert(entry: &mut Value) {
    let Value::Object(members) = entry else {
        return;
    };
    let is_own = |auth: &Value| Level::Auth.keys().iter().any(|key| auth.get(key).is_some());
    if !members.get("auth").is_none_or(is_own) {
        members.remove("auth");
    }
    if members.get("trust").is_some_and(Value::is_boolean) {
        members.remove("trust");
    }
}

fn hide(
    members: &mut Map<String, Value>,
    header: bool,
    pointer: &str,
    warnings: &mut Vec<Diagnostic>,
) {
    for (name, value) in members {
        let replacement = match value.as_str() {
            Some(text) if header => asked_header(name, text),
            Some(text) if is_secret_name(name) => asked(name, text, false),
            _ => None,
        };
        let Some(replacement) = replacement else {
            continue;
        };
        warnings.push(replaced(name, &replacement).at(child_pointer(pointer, name)));
        *value = Value::String(replacement);
    }
}

/// The warning about a secret that is not compiled in.
fn replaced(name: &str, replacement: &str) -> Diagnostic {
    let message = format!(
        "the config contains the value of `{}`; the compiled-in config has `{replacement}` instead",
        shown_line(name, 80)
    );
    Diagnostic::warning(Code::LiteralSecret, message)
}

/// The replacement of the value of a header: by its name, or by the text of the value.
fn asked_header(name: &str, text: &str) -> Option<String> {
    if !is_secret_key(name) && !is_secret_value(name, text) {
        return None;
    }
    let asked = asked(name, text, true);
    let left = asked.as_deref().unwrap_or(text);
    // A secret next to a variable.
    match secrets_in_text(name, left).is_empty() {
        true => asked,
        false => Some(format!("${{{}}}", variable_for(name, true))),
    }
}

/// The replacement of a value that contains a secret; `None` for a value without one. A default of a
/// variable counts as a literal value.
fn asked(name: &str, text: &str, header: bool) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let template = Template::parse(text).ok()?;
    if template.variables().next().is_none() {
        return Some(format!("${{{}}}", variable_for(name, header)));
    }
    let mut hidden = false;
    let parts = template
        .parts()
        .iter()
        .map(|part| match part {
            Part::Variable {
                name,
                default: Some(default),
            } if !default.is_empty() => {
                hidden = true;
                Part::Variable {
                    name: name.clone(),
                    default: None,
                }
            }
            part => part.clone(),
        })
        .collect();
    let template = Template::from_parts(parts);
    hidden.then(|| template.raw().to_owned())
}
