//! How a server is reached: the keys of a process or of a URL.

use broker_config::client_file::{self, Data, Member, SecretKind, Spanned};
use broker_config::invalid_url;
use broker_model::url::UrlError;
use broker_model::{Diagnostic, DiagnosticCode};

use super::{Members, Reader, written};
use crate::cli::import::client::text_of;
use crate::cli::import::hide::header_of;
use crate::cli::import::out::Out;
use crate::cli::import::variables::Reason;

/// Keys of a process, or of a command for a token.
const PROCESS_KEYS: [&str; 5] = ["command", "args", "cwd", "env", "inherit_env"];
/// Keys of a server with a URL.
const URL_KEYS: [&str; 2] = ["url", "headers"];
/// Options before a package that have no value.
const PACKAGE_OPTIONS: [&str; 4] = ["--from", "--package", "--with", "--yes"];

/// Whether a key says how a server is reached.
pub(super) fn is_of_transport(key: &str) -> bool {
    URL_KEYS.contains(&key) || PROCESS_KEYS.contains(&key)
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
            Some(Some("http" | "sse")) => Some(true),
            Some(_) => {
                let reason = "its type is not supported";
                self.findings.left_out(member.at, self.name, reason);
                return None;
            }
        };
        let command = present(entry, "command");
        let url = present(entry, "url");
        match (command, url) {
            (Some(_), Some(url)) => {
                let message = "the server has both `command` and a URL; give exactly one";
                self.refuse(url.at, message);
                None
            }
            (Some(command), None) if has_url == Some(true) => {
                let message = "a server of this type has a URL and no `command`";
                self.refuse(command.at, message);
                None
            }
            (None, Some(url)) if has_url == Some(false) => {
                let message = "a server of this type has a `command` and no URL";
                self.refuse(url.at, message);
                None
            }
            (Some(command), None) => {
                self.read_environment(entry, members);
                self.read_command(entry, command, members);
                Some(PROCESS_KEYS.to_vec())
            }
            (None, Some(url)) => {
                let mut read = URL_KEYS.to_vec();
                if present(entry, "auth").is_some_and(|auth| auth.get("token_command").is_some()) {
                    self.read_environment(entry, members);
                    read.extend(["cwd", "env", "inherit_env"]);
                }
                let text = self.string("url", url)?;
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
        let asking: Vec<&str> = words.iter().copied().filter_map(text_of).collect();
        self.inherit_asked(entry, &asking, members);
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
        if let Some(Data::Array(names)) = present(entry, "inherit_env").map(|names| &names.data)
            && !names.is_empty()
        {
            let names = names.iter().map(Out::from_value);
            members.insert("inherit_env", Out::List(names.collect()));
        }
    }

    fn read_headers(&mut self, entry: &'a Spanned, members: &mut Members) {
        let Some(value) = present(entry, "headers") else {
            return;
        };
        let Data::Object(list) = &value.data else {
            return self.wrong_type(value, "headers", "an object of strings");
        };
        let headers = list.iter().filter_map(|header| {
            let value = self.header(&header.key, &header.value)?;
            Some((header.key.clone(), Out::Template(value)))
        });
        let headers: Vec<_> = headers.collect();
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
                self.hider()
                    .whole(name, &written(text), Reason::Secret, &place)
            }
        })
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
