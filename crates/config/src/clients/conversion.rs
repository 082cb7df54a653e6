//! One server in the file of a client, as an entry of `mcpServers` of a config: keys, types and values. Keys that
//! have no equal stay, and the reader of entries names them.

use super::command_line::{self, Words};
use super::entry::{Entry, position, value};
use super::note::NoteKind;
use super::{Client, headers, settings, text_of, texts, times, tools};
use crate::spanned::{Data, Member, Spanned};
use broker_model::json::child_pointer;

/// Keys of a URL; the first one that a server has counts, as in Gemini CLI.
const URL_KEYS: [&str; 4] = ["httpUrl", "url", "serverUrl", "uri"];
/// Words for a process.
const PROCESS_TYPES: [&str; 2] = ["stdio", "local"];
/// Words for a URL.
const URL_TYPES: [&str; 6] = [
    "http",
    "sse",
    "streamable-http",
    "streamableHttp",
    "streamable_http",
    "remote",
];
/// Words of goose for servers that are a part of it.
const PARTS_OF_GOOSE: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

impl Entry<'_, '_> {
    /// Converts the server in place; false if it is left out.
    pub(super) fn convert(&mut self, server: &mut Spanned) -> bool {
        let Data::Object(members) = &mut server.data else {
            return true;
        };
        // Null is absence in every file of a client.
        members.retain(|member| !matches!(member.value.data, Data::Null));
        self.unnest(members);
        self.rename(members);
        if is_disabled(members) {
            return true;
        }
        if let Some(reason) = self.reason_to_leave_out(members) {
            self.note(self.at, None, NoteKind::LeftOut(reason));
            return false;
        }
        members.retain(|member| {
            let Some(problem) = settings::misplaced(&member.key) else {
                return true;
            };
            let problem = problem.at(child_pointer(&self.pointer, &member.key));
            self.converted.problems.push((member.at, problem));
            false
        });
        self.one_type(members);
        self.one_url(members);
        texts::convert(self, members);
        headers::convert(self, members);
        times::convert(self, members);
        tools::convert(self, members);
        inherited(self, members);
        for member in members.iter_mut() {
            if matches!(member.key.as_str(), "env" | "headers" | "args") {
                scalars_as_texts(&mut member.value);
            }
        }
        self.split_command(members);
        self.hints(members);
        true
    }

    /// Zed has `command` as an object with `path`, `args` and `env`.
    fn unnest(&mut self, members: &mut Vec<Member>) {
        let Some(at) = position(members, "command") else {
            return;
        };
        let Some(Member { value, .. }) = members.get_mut(at) else {
            return;
        };
        let is_nested = value
            .get("path")
            .is_some_and(|path| text_of(path).is_some());
        let Data::Object(inner) = &mut value.data else {
            return;
        };
        if !is_nested {
            return;
        }
        let inner = std::mem::take(inner);
        members.remove(at);
        for mut member in inner {
            if matches!(member.value.data, Data::Null) {
                continue;
            }
            let place = format!("command/{}", member.key);
            if member.key == "path" {
                "command".clone_into(&mut member.key);
            }
            if position(members, &member.key).is_none() {
                self.renamed(&member.key, &place);
                members.push(member);
            }
        }
    }

    /// Gives keys of clients that mean the same the names of a config.
    fn rename(&mut self, members: &mut [Member]) {
        let pairs: &[(&str, &str)] = match self.rules.client {
            Some(Client::Goose) => &[("cmd", "command"), ("envs", "env")],
            Some(Client::Opencode) => &[("environment", "env")],
            _ => &[],
        };
        for (theirs, ours) in pairs {
            if position(members, ours).is_none()
                && let Some(member) = members.iter_mut().find(|member| member.key == *theirs)
            {
                (*ours).clone_into(&mut member.key);
                self.renamed(ours, theirs);
            }
        }
    }

    fn reason_to_leave_out(&self, members: &[Member]) -> Option<&'static str> {
        let word = |key| value(members, key).and_then(text_of);
        let has = |key| position(members, key).is_some();
        match self.rules.client {
            Some(Client::Goose)
                if word("type").is_some_and(|word| PARTS_OF_GOOSE.contains(&word)) =>
            {
                Some("it is a part of goose")
            }
            Some(Client::Zed) if !has("command") && !has("url") => {
                Some("it is an extension of Zed, which alone knows its command")
            }
            _ => None,
        }
    }

    /// Makes one `type` with a word of a config of the key and the words of a client.
    fn one_type(&mut self, members: &mut Vec<Member>) {
        for other in ["transport", "transportType"] {
            let is_word = value(members, other)
                .and_then(text_of)
                .is_some_and(|word| known_type(word).is_some());
            if is_word && position(members, "type").is_none() {
                for member in members.iter_mut().filter(|member| member.key == other) {
                    "type".clone_into(&mut member.key);
                }
            } else if is_word {
                members.retain(|member| member.key != other);
            }
        }
        for member in members.iter_mut().filter(|member| member.key == "type") {
            if let Data::String(word) = &mut member.value.data
                && let Some(ours) = known_type(word)
            {
                ours.clone_into(word);
            }
        }
        // Zed says where the setting comes from.
        if self.rules.client == Some(Client::Zed) {
            members.retain(|member| !matches!(member.key.as_str(), "source" | "settings"));
        }
    }

    /// Makes one `url` of the keys of clients. Empty texts are absence.
    fn one_url(&mut self, members: &mut Vec<Member>) {
        let is_goose = self.rules.client == Some(Client::Goose);
        let is_key = |key: &str| URL_KEYS.contains(&key) && (key != "uri" || is_goose);
        members.retain(|member| {
            !(is_key(&member.key)
                && text_of(&member.value).is_some_and(|url| url.trim().is_empty()))
        });
        let has_url = members.iter().any(|member| is_key(&member.key));
        let is_empty = |value: &Spanned| match &value.data {
            Data::String(text) => text.trim().is_empty(),
            Data::Array(items) => items.is_empty(),
            _ => false,
        };
        if has_url {
            members.retain(|member| member.key != "command" || !is_empty(&member.value));
        }
        // Next to a command, the keys of other clients have no meaning.
        if position(members, "command").is_some() {
            return;
        }
        let mut keys = URL_KEYS.into_iter().filter(|key| is_key(key));
        let Some(first) = keys.find(|key| position(members, key).is_some()) else {
            return;
        };
        if first != "url" {
            self.renamed("url", first);
        }
        let mut others = Vec::new();
        members.retain_mut(|member| {
            if member.key == first {
                "url".clone_into(&mut member.key);
                return true;
            }
            let stays = !is_key(&member.key);
            if !stays {
                others.push((member.at, member.key.clone()));
            }
            stays
        });
        for (at, key) in others {
            let reason = None;
            let pointer = child_pointer(&self.pointer, &key);
            self.note(at, Some(pointer), NoteKind::NotTaken { key, reason });
        }
    }

    /// Splits a `command` that is a whole command line.
    fn split_command(&mut self, members: &mut Vec<Member>) {
        let has_args = value(members, "args")
            .is_some_and(|args| !matches!(&args.data, Data::Array(items) if items.is_empty()));
        if has_args {
            return;
        }
        let Some(at) = position(members, "command") else {
            return;
        };
        let Some(Member { value, .. }) = members.get_mut(at) else {
            return;
        };
        let offset = value.at;
        let Data::String(line) = &mut value.data else {
            return;
        };
        if !line.trim().contains([' ', '\t']) || (self.rules.exists)(line) {
            return;
        }
        let kind = match command_line::split_line(line) {
            // A variable in the program may stand for a folder with blanks.
            Some(Words { program, args }) if !program.contains('$') => {
                *line = program;
                let items = args.into_iter().map(|text| Spanned {
                    at: offset,
                    data: Data::String(text),
                });
                let data = Data::Array(items.collect());
                members.retain(|member| member.key != "args");
                members.push(Member {
                    at: offset,
                    key: "args".to_owned(),
                    value: Spanned { at: offset, data },
                });
                let message = "`command` names neither a program nor a file; it was split at blanks into a program and `args`, without a shell";
                NoteKind::Changed(message.to_owned())
            }
            _ => NoteKind::Hint(
                "`command` has blanks and names neither a program nor a file, and it cannot be split without a shell: put the arguments into `args`",
            ),
        };
        let pointer = child_pointer(&self.pointer, "command");
        self.note(offset, Some(pointer), kind);
    }

    /// Points at values that a process gets as they are, where a person may expect more.
    fn hints(&mut self, members: &[Member]) {
        for member in members {
            let is_place = matches!(member.key.as_str(), "command" | "args" | "cwd" | "env");
            let home = is_place.then(|| tilde(&member.value)).flatten();
            if let Some(at) = home {
                let hint = "`~/` is not expanded; write `${HOME}/`";
                let pointer = child_pointer(&self.pointer, &member.key);
                self.note(at, Some(pointer), NoteKind::Hint(hint));
            }
            if member.key == "command" && is_cmd(&member.value) {
                let hint = "`cmd` is the shell of Windows; name the program itself, and remove `/c` from `args`";
                let pointer = child_pointer(&self.pointer, &member.key);
                self.note(member.value.at, Some(pointer), NoteKind::Hint(hint));
            }
        }
    }
}

/// Returns the word of a config for a word of a client.
fn known_type(word: &str) -> Option<&'static str> {
    if PROCESS_TYPES.contains(&word) {
        return Some("stdio");
    }
    // The word of a config that compiled files have had.
    match word {
        "sse" => Some("sse"),
        _ => URL_TYPES.contains(&word).then_some("http"),
    }
}

fn is_disabled(members: &[Member]) -> bool {
    let is = |key, wanted| matches!(value(members, key).map(|v| &v.data), Some(Data::Bool(b)) if *b == wanted);
    is("disabled", true) || is("enabled", false)
}

/// Makes `inherit_env` of the lists of names that clients have for it.
fn inherited(entry: &mut Entry<'_, '_>, members: &mut Vec<Member>) {
    let mut names: Vec<Spanned> = Vec::new();
    let mut place = None;
    let mut refused = Vec::new();
    members.retain_mut(|member| {
        let is_list = match member.key.as_str() {
            "env_vars" => true,
            "env_keys" => entry.rules.client == Some(Client::Goose),
            _ => false,
        };
        let Data::Array(items) = &mut member.value.data else {
            return true;
        };
        if !is_list {
            return true;
        }
        place.get_or_insert(member.at);
        for item in std::mem::take(items) {
            match local_name(&item) {
                Some(name) => names.push(Spanned {
                    at: item.at,
                    data: Data::String(name),
                }),
                None => refused.push((item.at, member.key.clone())),
            }
        }
        false
    });
    for (at, key) in refused {
        entry.not_taken(at, &key, None);
    }
    let Some(at) = place.filter(|_| !names.is_empty()) else {
        return;
    };
    match members
        .iter_mut()
        .find(|member| member.key == "inherit_env")
    {
        Some(member) => {
            if let Data::Array(items) = &mut member.value.data {
                items.extend(names);
            }
        }
        None => members.push(Member {
            at,
            key: "inherit_env".to_owned(),
            value: Spanned {
                at,
                data: Data::Array(names),
            },
        }),
    }
}

/// The name of a variable of this machine: a text, or an object of Codex with `source`.
fn local_name(item: &Spanned) -> Option<String> {
    let is_local = item
        .get("source")
        .is_none_or(|s| text_of(s) == Some("local"));
    let name = text_of(item).or_else(|| item.get("name").and_then(text_of));
    let name = name.filter(|name| is_local && crate::template::is_variable_name(name));
    name.map(str::to_owned)
}

/// Clients write numbers and booleans where a process or a request has texts.
fn scalars_as_texts(value: &mut Spanned) {
    let items: Vec<&mut Spanned> = match &mut value.data {
        Data::Array(items) => items.iter_mut().collect(),
        Data::Object(members) => {
            members.retain(|member| !matches!(member.value.data, Data::Null));
            members.iter_mut().map(|member| &mut member.value).collect()
        }
        _ => return,
    };
    for item in items {
        let text = match &item.data {
            Data::Number(text) => text.clone(),
            Data::Bool(value) => value.to_string(),
            _ => continue,
        };
        item.data = Data::String(text);
    }
}

/// The place of a text that begins with the sign for the home folder.
fn tilde(value: &Spanned) -> Option<usize> {
    match &value.data {
        Data::String(text) => text.starts_with("~/").then_some(value.at),
        Data::Array(items) => items.iter().find_map(tilde),
        Data::Object(members) => members.iter().find_map(|member| tilde(&member.value)),
        _ => None,
    }
}

fn is_cmd(command: &Spanned) -> bool {
    let word = match &command.data {
        Data::Array(items) => items.first().and_then(text_of),
        _ => text_of(command),
    };
    word.is_some_and(|word| {
        word.eq_ignore_ascii_case("cmd") || word.eq_ignore_ascii_case("cmd.exe")
    })
}
