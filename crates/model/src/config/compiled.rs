//! The config document that is compiled into the binary: only the keys that the broker reads, with a
//! variable in place of every literal secret.

use serde_json::{Map, Value};

use super::keys::Level;
use super::source::variable_for;
use super::template::{Part, Template};
use super::{Config, servers, vscode};
use crate::codes::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::json::child_pointer;
use crate::redact::is_secret_name;
use crate::text::shown_line;

impl Config {
    /// The document to compile in, and a warning for each secret that was replaced. Keys of other clients
    /// and disabled entries are left out, since they may contain secrets that are not recognised.
    pub fn compiled(&self) -> (Value, Vec<Diagnostic>) {
        let mut document = self.document.value.clone();
        let mut warnings = Vec::new();
        let key = self.document.servers_key;
        if key == vscode::SERVERS
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

    /// The text of the compiled-in document of a client file, for people, if the text of the file is not that
    /// of a config.
    pub fn converted_text(&self) -> Option<String> {
        if self.document.servers_key != vscode::SERVERS {
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

    /// The text of the compiled-in document. `mcpServers` keeps the order of the file, which is the order
    /// of the tree; the members of all other objects are sorted by name.
    pub fn compiled_text(&self) -> String {
        let (document, _) = self.compiled();
        let Value::Object(members) = document else {
            return document.to_string();
        };
        let members = members.iter().map(|(key, value)| match value {
            Value::Object(entries) if key == servers::KEY => {
                let names = &self.document.servers;
                let in_order = names
                    .iter()
                    .filter_map(|name| entries.get_key_value(name))
                    .map(|(name, entry)| (name, entry.to_string()));
                (key, object_text(in_order))
            }
            value => (key, value.to_string()),
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
                .is_some_and(|t| t > *super::source::TIMEOUT.end())
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
}

fn hide(
    members: &mut Map<String, Value>,
    header: bool,
    pointer: &str,
    warnings: &mut Vec<Diagnostic>,
) {
    for (name, value) in members.iter_mut().filter(|(name, _)| is_secret_name(name)) {
        let Some(replacement) = value.as_str().and_then(|text| asked(name, text, header)) else {
            continue;
        };
        let message = format!(
            "the config contains the value of `{}`; the compiled-in config has `{replacement}` instead",
            shown_line(name, 80)
        );
        warnings.push(
            Diagnostic::warning(Code::LiteralSecret, message).at(child_pointer(pointer, name)),
        );
        *value = Value::String(replacement);
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
