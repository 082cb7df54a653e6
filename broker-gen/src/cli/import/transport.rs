//! How a server is reached: the keys of a process or of a URL.

use std::collections::BTreeSet;

use broker_model::config::client_file::{
    self, Data, Member, SecretKind, Spanned, is_variable_name,
};
use broker_model::config::invalid_url;
use broker_model::url::UrlError;
use broker_model::{Diagnostic, DiagnosticCode};

use super::client::text_of;
use super::hide::header_of;
use super::out::Out;
use super::server::{Members, Reader};
use super::variables::Reason;

/// Keys of a URL; the first one that a server has counts.
const URL_KEYS: [&str; 3] = ["httpUrl", "url", "serverUrl"];
/// Keys of a process, or of a command for a token.
const PROCESS_KEYS: [&str; 6] = ["command", "args", "cwd", "env", "env_vars", "inherit_env"];
/// Keys of a server with a URL.
const HEADER_KEYS: [&str; 4] = [
    "bearer_token_env_var",
    "env_http_headers",
    "headers",
    "http_headers",
];
/// Options before a package that have no value.
const PACKAGE_OPTIONS: [&str; 4] = ["--from", "--package", "--with", "--yes"];

/// Whether a key says how a server is reached.
pub(super) fn is_of_transport(key: &str) -> bool {
    URL_KEYS.contains(&key) || PROCESS_KEYS.contains(&key) || HEADER_KEYS.contains(&key)
}

impl<'a> Reader<'a, '_> {
    /// Reads the keys of the transport and returns those that count. `None` if the server is left out or refused.
    pub(super) fn read_transport(
        &mut self,
        member: &'a Member,
        members: &mut Members,
    ) -> Option<Vec<&'static str>> {
        let entry = &member.value;
        let kind = present(entry, "type").or_else(|| present(entry, "transport"));
        let has_url = match kind.map(text_of) {
            None => None,
            Some(Some("stdio")) => Some(false),
            Some(Some(
                "http" | "sse" | "streamable-http" | "streamableHttp" | "streamable_http",
            )) => Some(true),
            Some(_) => {
                let reason = "its type is not supported";
                self.findings.left_out(member.at, self.name, reason);
                return None;
            }
        };
        let command = present(entry, "command");
        let mut urls = URL_KEYS.into_iter();
        let url = urls.find_map(|key| Some((key, present(entry, key)?)));
        match (command, url) {
            (Some(_), Some((_, url))) => {
                let message = "the server has both `command` and a URL; give exactly one";
                self.refuse(url.at, message);
                None
            }
            (Some(command), None) if has_url == Some(true) => {
                let message = "a server of this type has a URL and no `command`";
                self.refuse(command.at, message);
                None
            }
            (None, Some((_, url))) if has_url == Some(false) => {
                let message = "a server of this type has a `command` and no URL";
                self.refuse(url.at, message);
                None
            }
            (Some(command), None) => {
                self.read_environment(entry, members);
                self.read_command(entry, command, members);
                Some(PROCESS_KEYS.to_vec())
            }
            (None, Some((key, url))) => {
                let mut read = [&[key][..], &HEADER_KEYS].concat();
                if present(entry, "auth").is_some_and(|auth| auth.get("token_command").is_some()) {
                    self.read_environment(entry, members);
                    read.extend(["cwd", "env", "env_vars", "inherit_env"]);
                }
                let text = self.string(key, url)?;
                let mut secrets = client_file::literal_secrets_in_url(&text).into_iter();
                if secrets.any(|secret| secret.kind == SecretKind::UrlUser) {
                    let problem = invalid_url(UrlError::UserInfo);
                    self.findings.problem(url.at, problem);
                    return None;
                }
                let text = self.hider().url(&text);
                members.insert("url", Out::Template(text));
                self.read_headers(entry, members);
                Some(read)
            }
            (None, None) => {
                let reason = "it has neither `command` nor a URL";
                self.findings.left_out(member.at, self.name, reason);
                None
            }
        }
    }

    fn read_command(&mut self, entry: &'a Spanned, command: &'a Spanned, members: &mut Members) {
        let mut words: Vec<&'a Spanned> = match &command.data {
            Data::Array(items) => items.iter().collect(),
            _ => vec![command],
        };
        match present(entry, "args").map(|args| (&args.data, args)) {
            Some((Data::Array(items), _)) => words.extend(items),
            None => {}
            Some((_, args)) => self.wrong_type(args, "args", "a list of strings"),
        }
        let mut texts: Vec<String> = Vec::new();
        for word in words {
            let key = if texts.is_empty() { "command" } else { "args" };
            let Some(text) = self.scalar(key, word) else {
                continue;
            };
            let option = texts.last().map_or("", String::as_str);
            if !(option.starts_with('-') && option.ends_with('c')) {
                texts.push(self.text(key, text));
                continue;
            }
            // A shell would not run a variable in place of its script.
            match self.script(text) {
                Some(script) => texts.push(script),
                None => {
                    let message = "a script has a `${…}` that a config cannot have";
                    let problem = Diagnostic::error(DiagnosticCode::EnvSyntax, message);
                    let help = "put the script into a file, and name the file in `command`";
                    self.findings.problem(word.at, problem.help(help));
                }
            }
        }
        let hidden = self.hider().words(&texts);
        let Some((program, args)) = hidden.split_first() else {
            return;
        };
        // Without arguments the string would be split.
        if !args.is_empty() || !is_plain_word(program) {
            members.insert("args", Out::List(arguments(args)));
        }
        members.insert("command", Out::text(program));
    }

    /// Reads the variables of a process and its folder.
    fn read_environment(&mut self, entry: &'a Spanned, members: &mut Members) {
        if let Some(env) = present(entry, "env") {
            let Data::Object(list) = &env.data else {
                return self.wrong_type(env, "env", "an object of strings");
            };
            let variables = list.iter().filter_map(|one| {
                let text = self.env(&one.key, &one.value)?;
                Some((one.key.clone(), Out::Template(text)))
            });
            let variables: Vec<_> = variables.collect();
            if !variables.is_empty() {
                members.insert("env", Out::Object(variables));
            }
        }
        if let Some(cwd) = present(entry, "cwd")
            && let Some(text) = self.string("cwd", cwd)
        {
            members.insert("cwd", Out::Template(text));
        }
        let mut inherited = Vec::new();
        for (key, value) in entry.members().iter().map(|one| (&*one.key, &one.value)) {
            match &value.data {
                Data::Array(items) if key == "inherit_env" => {
                    inherited.extend(items.iter().map(Out::of));
                }
                Data::Array(items) if key == "env_vars" => {
                    inherited.extend(items.iter().filter_map(|item| self.inherited(item)));
                }
                _ => {}
            }
        }
        if !inherited.is_empty() {
            members.insert("inherit_env", Out::List(inherited));
        }
    }

    /// A variable that the process inherits: a name, or an object of Codex with the name of a local variable.
    fn inherited(&mut self, item: &'a Spanned) -> Option<Out> {
        let is_local = item
            .get("source")
            .is_none_or(|s| text_of(s) == Some("local"));
        let name = text_of(item).or_else(|| item.get("name").and_then(text_of));
        let name = name.filter(|name| is_local && is_variable_name(name));
        if name.is_none() {
            self.not_taken("env_vars");
        }
        name.map(Out::text)
    }

    fn read_headers(&mut self, entry: &'a Spanned, members: &mut Members) {
        let mut headers: Vec<(String, Out)> = Vec::new();
        let mut seen = BTreeSet::new();
        if let Some(name) = present(entry, "bearer_token_env_var")
            && let Some(token) = self.reference("bearer_token_env_var", name)
        {
            let value = Out::Template(format!("Bearer {token}"));
            headers.push(("Authorization".to_owned(), value));
            seen.insert("authorization".to_owned());
        }
        for member in entry.members() {
            if !matches!(
                member.key.as_str(),
                "headers" | "http_headers" | "env_http_headers"
            ) {
                continue;
            }
            let Data::Object(list) = &member.value.data else {
                if !matches!(member.value.data, Data::Null) {
                    self.wrong_type(&member.value, &member.key, "an object of strings");
                }
                continue;
            };
            for header in list {
                let name = &header.key;
                let key = format!("{}.{name}", member.key);
                if client_file::is_own_header(name) || !seen.insert(name.to_ascii_lowercase()) {
                    self.not_taken(&key);
                    continue;
                }
                let value = match member.key.as_str() {
                    "env_http_headers" => self.reference(&key, &header.value),
                    _ => self.header(name, &header.value),
                };
                headers.extend(value.map(|value| (name.clone(), Out::Template(value))));
            }
        }
        if !headers.is_empty() {
            members.insert("headers", Out::Object(headers));
        }
    }

    fn header(&mut self, name: &str, value: &'a Spanned) -> Option<String> {
        let text = self.scalar(name, value)?;
        Some(match self.try_text(name, text) {
            Some(text) => self.hider().header(name, text),
            None => {
                let place = header_of(name, self.name);
                self.hider().whole(name, text, Reason::Secret, &place)
            }
        })
    }

    /// The template for a variable that is named without `${…}`.
    fn reference(&mut self, key: &str, name: &'a Spanned) -> Option<String> {
        match text_of(name) {
            Some(text) if is_variable_name(text) => Some(self.variable(text, false)),
            _ => {
                self.not_taken(key);
                None
            }
        }
    }
}

/// The arguments of a program. A package stays as it is, and a word as a whole is one text.
fn arguments(args: &[String]) -> Vec<Out> {
    let is_word = |text: &str| {
        let is_path = text.starts_with(['/', '.', '~']);
        !is_path && !text.contains([' ', '=']) && !text.contains("://")
    };
    let mut has_package = false;
    let mut before = "";
    let arguments = args.iter().map(|arg| {
        // The word after a long option is usually its value.
        let is_value = before.starts_with("--") && !PACKAGE_OPTIONS.contains(&before);
        before = arg;
        match is_word(arg) && !arg.starts_with('-') && !is_value {
            true if !has_package => {
                has_package = true;
                Out::text(arg)
            }
            true => Out::Word(arg.clone()),
            false => Out::Template(arg.clone()),
        }
    });
    arguments.collect()
}

/// A member that is not null.
fn present<'s>(entry: &'s Spanned, key: &str) -> Option<&'s Spanned> {
    let value = entry.get(key);
    value.filter(|value| !matches!(value.data, Data::Null))
}

/// Whether a program alone is read as one word.
fn is_plain_word(program: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:+%".contains(c);
    !program.is_empty() && program.chars().all(is_plain)
}
