//! One server of a client as a source of a config. Keys without an equal are noted by name.

use std::collections::BTreeMap;

use broker_config::client_file::{
    self, Data, Member, NoteKind, Part, Spanned, is_secret_key, is_secret_value, translate,
    variable_for,
};
use broker_config::own_broker::starts_a_broker;
use broker_config::{Template, is_own_variable};
use broker_model::json::child_pointer;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};

use super::client::{ClientServers, text_of};
use super::findings::{Findings, names};
use super::hide::Hider;
use super::out::Out;
use super::variables::{Reason, Variables, Wanted};

mod asked;
mod transport;

use transport::is_of_transport;

/// Keys without an equal in a config, and their replacements.
const REASONS: [(&[&str], &str); 2] = [
    (
        &["envFile", "env_file"],
        "the broker reads no file of variables: write each of them in `env`, as `\"NAME\": \"${NAME}\"`, and set it",
    ),
    (
        &["auth", "oauth", "oauth_resource", "scopes"],
        "the broker does not sign in as a user: give it a token in `headers` or with `auth`",
    ),
];
/// The longest timeout that a config takes, in seconds, and the longest one that is usual.
const MAX_TIMEOUT: f64 = 86_400.0;
const MAX_USUAL_TIMEOUT: f64 = 3_600.0;
/// The variable that only the entry of a broker names.
const SECRET_OF_BROKER: &str = "MCP_BROKER_SECRET";

/// A server as a node of the tree.
#[derive(Debug)]
pub(super) struct Draft {
    /// The name in the file.
    pub(super) name: String,
    /// The offset of its key, and its JSON pointer in the file.
    pub(super) at: usize,
    pub(super) pointer: String,
    pub(super) description: Option<String>,
    pub(super) source: Vec<(String, Out)>,
}

/// The reader of one server.
pub(super) struct Reader<'a, 't> {
    pub(super) findings: &'a mut Findings<'t>,
    variables: &'a mut Variables,
    client: &'a ClientServers<'a>,
    /// The name of the server.
    pub(super) name: &'a str,
    /// Returns the text of a file that a command names, if it can be read.
    read_file: &'a dyn Fn(&str) -> Option<String>,
    /// Variables of the process whose values are replaced, with what replaces them.
    secret_env: BTreeMap<&'a str, String>,
    /// Keys that are not taken.
    not_taken: Vec<String>,
}

/// The members of a source, as they are collected.
type Members = BTreeMap<&'static str, Out>;

impl<'a, 't> Reader<'a, 't> {
    pub(super) fn new(
        findings: &'a mut Findings<'t>,
        variables: &'a mut Variables,
        client: &'a ClientServers<'a>,
        name: &'a str,
        read_file: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let mut reader = Self {
            findings,
            variables,
            client,
            name,
            read_file,
            secret_env: BTreeMap::new(),
            not_taken: Vec::new(),
        };
        for note in client.notes.iter().filter(|note| note.server == name) {
            if let NoteKind::NotTaken { key, reason: None } = &note.kind {
                reader.not_taken(key);
            }
        }
        reader
    }

    /// Reads a server. `None` if it is left out or refused.
    pub(super) fn read(mut self, member: &'a Member) -> Option<Draft> {
        let entry = &member.value;
        let Data::Object(_) = &entry.data else {
            self.wrong_type(entry, &member.key, "an object");
            return None;
        };
        if let Some(reason) = self.reason_to_leave_out(entry) {
            self.findings.left_out(member.at, self.name, reason);
            return None;
        }
        let mut members = Members::new();
        // Arguments and headers may name variables of the process, so these are read first.
        let read = self.read_transport(member, &mut members)?;
        let mut description = None;
        for one in entry.members() {
            let value = &one.value;
            match one.key.as_str() {
                _ if matches!(value.data, Data::Null) => {}
                key if read.contains(&key) => {}
                "disabled" | "enabled" | "type" | "transport" | "backend" => {}
                "description" => description = self.description(value),
                key => self.read_other(one, key, &mut members),
            }
        }
        if !self.not_taken.is_empty() {
            let name = shown_line(self.name, 80);
            let message = format!("`{name}`: not taken: {}", names(&self.not_taken));
            self.findings.note(member.at, &message);
        }
        let keys = client_file::source_keys().iter();
        let source = keys.filter_map(|key| Some(((*key).to_owned(), members.remove(key)?)));
        Some(Draft {
            name: self.name.to_owned(),
            at: member.at,
            pointer: child_pointer(&format!("/{}", self.client.key), self.name),
            description,
            source: source.collect(),
        })
    }

    /// The reason why the config does not have the server, if there is one.
    fn reason_to_leave_out(&mut self, entry: &Spanned) -> Option<&'static str> {
        for (key, off) in [("disabled", true), ("enabled", false)] {
            match entry.get(key).map(|value| (&value.data, value)) {
                Some((Data::Bool(is), _)) if *is == off => {
                    return Some("it is disabled in the file");
                }
                None | Some((Data::Bool(_) | Data::Null, _)) => {}
                Some((_, value)) => self.wrong_type(value, key, "a boolean"),
            }
        }
        is_broker(entry).then_some("it is the broker itself")
    }

    /// Reads a key that is neither of the transport nor about tools.
    fn read_other(&mut self, member: &'a Member, key: &str, members: &mut Members) {
        let value = &member.value;
        let own = client_file::source_keys().iter().find(|own| **own == key);
        match (own, &value.data) {
            (_, Data::Number(text)) if key == "timeout" => {
                let seconds = text.parse::<f64>().unwrap_or_default();
                if seconds > MAX_USUAL_TIMEOUT {
                    let name = shown_line(self.name, 80);
                    let taken = match seconds > MAX_TIMEOUT {
                        true => "is not taken",
                        false => "is taken as seconds",
                    };
                    let message = format!(
                        "`{name}`: `timeout` of {text} {taken}; `--from CLIENT` converts milliseconds of a client that counts them"
                    );
                    self.findings.note(member.at, &message);
                }
                if seconds <= MAX_TIMEOUT {
                    members.insert("timeout", Out::from_value(value));
                }
            }
            (Some(&"auth"), _) if client_file::is_own_auth(value) => {
                let auth = self.own_auth(value);
                members.insert("auth", auth);
            }
            (Some(&own @ ("ca_file" | "client_cert" | "client_key")), _) => {
                if let Some(text) = self.string(key, value) {
                    members.insert(own, Out::Template(text));
                }
            }
            // Other clients have a key of this name.
            (Some(&"trust"), Data::Bool(_)) => self.not_taken(key),
            (Some(own), _) if !is_of_transport(key) && *own != "auth" => {
                members.insert(own, Out::from_value(value));
            }
            _ => match REASONS.iter().find(|(keys, _)| keys.contains(&key)) {
                Some((_, reason)) => {
                    let name = shown_line(self.name, 80);
                    let message = format!("`{name}`: `{key}` is not taken: {reason}");
                    self.findings.note(member.at, &message);
                }
                None => self.not_taken(key),
            },
        }
    }

    /// The member `auth` of a config.
    fn own_auth(&mut self, value: &'a Spanned) -> Out {
        match &value.data {
            Data::Object(members) => {
                let members = members.iter();
                let members = members.map(|one| {
                    let out = match &one.value.data {
                        Data::String(text) => {
                            let text = self.text(&one.key, text);
                            Out::Template(self.read_auth_text(&one.key, text))
                        }
                        _ => self.own_auth(&one.value),
                    };
                    (one.key.clone(), out)
                });
                Out::Object(members.collect())
            }
            Data::Array(items) => {
                let words = items.iter().filter_map(|item| self.string("auth", item));
                let words: Vec<_> = words.collect();
                let words = self.hider().words(&words).into_iter();
                Out::List(words.map(Out::Template).collect())
            }
            _ => Out::from_value(value),
        }
    }

    /// Reads a string of `auth` without its secrets.
    fn read_auth_text(&mut self, key: &str, text: String) -> String {
        if key != "token_command" {
            return self.hider().hide_auth(key, text);
        }
        let mut words = self.hider().words(&[text]).into_iter();
        words.next().unwrap_or_default()
    }

    /// The description of the node. One with a secret is not taken.
    fn description(&mut self, value: &Spanned) -> Option<String> {
        let Some(text) = text_of(value) else {
            self.wrong_type(value, "description", "a string");
            return None;
        };
        if !client_file::secrets_in_text("", text).is_empty() {
            self.not_taken("description");
            return None;
        }
        // No variable is expanded there.
        (!text.trim().is_empty()).then(|| text.replace("${", "$${"))
    }

    /// A string of the file as a template.
    pub(super) fn string(&mut self, key: &str, value: &'a Spanned) -> Option<String> {
        let Some(text) = text_of(value) else {
            self.wrong_type(value, key, "a string");
            return None;
        };
        Some(self.text(key, text))
    }

    /// A text of the file as a template. A text that a config cannot have becomes a variable.
    pub(super) fn text(&mut self, key: &str, text: &'a str) -> String {
        self.try_text(key, text).unwrap_or_else(|| {
            let place = format!("`{}` of `{}`", shown_line(key, 80), self.name);
            self.hider()
                .whole(key, &written(text), Reason::Text, &place)
        })
    }

    /// A text of the file as a template; `None` if a config cannot have it.
    pub(super) fn try_text(&mut self, key: &str, text: &'a str) -> Option<String> {
        translate(text, &mut |part| self.part(key, part))
    }

    /// Returns a script as a template: its variables come from the environment in every file.
    pub(super) fn script(&mut self, text: &'a str) -> Option<String> {
        translate(text, &mut |part| self.part("args", part))
    }

    /// The text of a config for a part of a text.
    fn part(&mut self, key: &str, part: Part<'a>) -> String {
        match part {
            Part::Variable(name) => self.variable(name, false),
            Part::Default(name, default) => {
                let is_secret =
                    is_secret_key(name) || is_secret_key(key) || is_secret_value(name, default);
                if is_secret && !default.is_empty() {
                    self.variables.dropped(default);
                    self.not_taken(&format!("default of {name}"));
                    return self.variable(name, false);
                }
                let variable = self.variable(name, true);
                let open = variable.strip_suffix('}').unwrap_or(&variable);
                format!("{open}:-{default}}}")
            }
            Part::OfClient(inner) => {
                let place = format!("`{}` of `{}`", shown_line(key, 80), self.name);
                let id = inner.split_once(':').map_or(inner, |(_, id)| id);
                let description = inner.strip_prefix("input:").map(|id| {
                    let description = self.client.inputs.get(id).map_or("", String::as_str);
                    format!("input `{id}` {description}").trim_end().to_owned()
                });
                let reason = description.unwrap_or_else(|| format!("`${{{inner}}}` of the client"));
                let wanted = Wanted {
                    server: "client",
                    name: &id.to_ascii_uppercase(),
                    is_bare: true,
                };
                let reason = Reason::OfClient(reason);
                self.variables.assign(wanted, inner, reason, &place)
            }
        }
    }

    /// The variable of a config for one that the file names.
    pub(super) fn variable(&mut self, name: &str, has_default: bool) -> String {
        if let Some(variable) = self.secret_env.get(name) {
            return variable.clone();
        }
        let name = match is_own_variable(name) {
            true => variable_for(name, false),
            false => name.to_owned(),
        };
        self.variables.named(&name, self.name, has_default);
        format!("${{{name}}}")
    }

    /// The value of a variable of the process.
    pub(super) fn env(&mut self, name: &'a str, value: &'a Spanned) -> Option<String> {
        let text = self.scalar(name, value)?;
        let Some(read) = self.try_text(name, text) else {
            let reason = match is_secret_key(name) {
                true => Reason::Secret,
                false => Reason::Text,
            };
            return Some(self.hider().env_variable(name, &written(text), reason));
        };
        let hidden = self.hider().env(name, read.clone());
        let is_variable = Template::parse(&hidden).is_ok_and(|parsed| parsed.parts().len() == 1);
        if hidden != read && is_variable {
            self.secret_env.insert(name, hidden.clone());
        }
        Some(hidden)
    }

    /// The text of a string, a number or a boolean, as it is written. `None` for null and other values.
    pub(super) fn scalar(&mut self, key: &str, value: &'a Spanned) -> Option<&'a str> {
        match &value.data {
            Data::String(text) | Data::Number(text) => Some(text),
            Data::Bool(true) => Some("true"),
            Data::Bool(false) => Some("false"),
            Data::Null => None,
            Data::Array(_) | Data::Object(_) => {
                self.wrong_type(value, key, "a string");
                None
            }
        }
    }

    pub(super) fn hider(&mut self) -> Hider<'_> {
        Hider {
            server: self.name,
            variables: self.variables,
        }
    }

    pub(super) fn wrong_type(&mut self, value: &Spanned, key: &str, expected: &str) {
        self.findings
            .wrong_type(value.at, key, expected, value.type_name());
    }

    /// Notes a key that is not taken.
    pub(super) fn not_taken(&mut self, key: &str) {
        if self.not_taken.last().is_none_or(|last| last != key) {
            self.not_taken.push(key.to_owned());
        }
    }

    /// Adds a problem of the source.
    pub(super) fn refuse(&mut self, at: usize, message: impl Into<String>) {
        let problem = Diagnostic::error(DiagnosticCode::ConfigSourceKind, message);
        self.findings.problem(at, problem);
    }
}

/// Whether a server is a broker: its command is one of the broker's programs, or it presents the secret of the
/// broker.
fn is_broker(entry: &Spanned) -> bool {
    let text = |value: Option<&'_ Spanned>| value.and_then(text_of).unwrap_or_default().to_owned();
    let args = match entry.get("args").map(|args| &args.data) {
        Some(Data::Array(args)) => args.iter().map(|arg| text(Some(arg))).collect(),
        _ => Vec::new(),
    };
    let command = match entry.get("command").map(|command| &command.data) {
        Some(Data::Array(words)) => words.iter().map(|word| text(Some(word))).collect(),
        _ => vec![text(entry.get("command"))],
    };
    let words: Vec<String> = command.into_iter().chain(args).collect();
    let headers = entry.get("headers").map_or(&[][..], Spanned::members);
    let mut headers = headers.iter().map(|header| text(Some(&header.value)));
    starts_a_broker(&words) || headers.any(|value| value.contains(SECRET_OF_BROKER))
}

/// A text as the file has it: `${` that is only text is marked by a second dollar sign.
fn written(text: &str) -> String {
    text.replace("$${", "${")
}
