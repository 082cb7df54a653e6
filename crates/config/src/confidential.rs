//! The parts of a command that a lock does not contain: literal secrets, user parts of URLs, and absolute paths.
//!
//! Only the text of the config decides, never a value of a variable, so that every machine finds the same
//! parts. A `${NAME}` is not a literal; its default is one.

use std::ops::Range;

use super::template::{Template, variable};
use super::{CommandLine, Config, Endpoint, Part, ProcessEndpoint};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::redact::is_secret_name;
use broker_model::text::shown_line;

mod literal;
mod names;
mod paths;
pub(super) mod shell_words;
mod urls;
mod values;

pub use literal::{LiteralSecret, literal_secrets_in, literal_secrets_in_url};
pub use names::is_secret_key;
pub(crate) use urls::without_secret_values;
pub(super) use urls::{replace_secret_values, secret_parameter};
pub use values::{is_secret_value, secrets_in_text};

/// Shorter values of `env` are not searched for in words: they would match by chance.
const MIN_SECRET_BYTES: usize = 4;
/// Headers with a secret, in lower case.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
];

/// The words of a command as the config has them.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) texts: Vec<&'a str>,
    /// Whether a shell runs them; then their quotes are kept, and operators are words.
    pub(crate) shell: bool,
    /// The word that is a shell script.
    script: Option<usize>,
}

/// A part of a word that a lock does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Its place in the word.
    pub(crate) range: Range<usize>,
    /// The secret in it; `None` for a path.
    secret: Option<Secret>,
}

/// A literal secret in a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Secret {
    /// Its kind. `None` if no warning is needed.
    kind: Option<SecretKind>,
    /// The place of its value.
    place: Range<usize>,
    /// The value, if it is a literal as a whole.
    value: Option<Range<usize>>,
}

/// The kind of a literal secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// The value of an option, a variable, a header or a parameter of a query, by its name.
    Named(String),
    /// The user part of a URL.
    UrlUser,
    /// The default of a variable, by its name.
    Default(String),
}

impl SecretKind {
    /// The description of the secret for people.
    fn describe(&self) -> String {
        match self {
            Self::Named(name) => format!("the value of `{name}`"),
            Self::UrlUser => "the password of a URL".to_owned(),
            Self::Default(name) => format!("the default of `{name}`"),
        }
    }
}

impl<'a> Words<'a> {
    pub(crate) fn from_command(command: &'a CommandLine) -> Self {
        match command {
            CommandLine::Direct {
                program,
                args,
                script,
            } => Self {
                texts: std::iter::once(program)
                    .chain(args)
                    .map(Template::raw)
                    .collect(),
                shell: false,
                script: script.as_ref().map(|script| script.at + 1),
            },
            CommandLine::Shell { written, .. } => Self {
                texts: shell_words::split(written)
                    .into_iter()
                    .map(|range| &written[range])
                    .collect(),
                shell: true,
                script: None,
            },
        }
    }

    /// The hidden parts of each word, in order and disjoint. `known` are secrets of the config.
    pub(crate) fn hidden(&self, known: &[&str], hides_paths: bool) -> Vec<Vec<Hidden>> {
        let search = Search { known, hides_paths };
        let mut option = None;
        let words = self.texts.iter().enumerate();
        words
            .map(|(index, word)| {
                let form = if self.shell {
                    Form::ShellWord
                } else if self.script == Some(index) {
                    Form::Script
                } else {
                    Form::Word
                };
                let found = search.word(option, word, form);
                option = option_name(word, self.shell);
                found
            })
            .collect()
    }
}

impl Config {
    /// Literal secrets of `env`, by their names, and of `headers`. A command may repeat them.
    pub(crate) fn literal_secrets(&self) -> Vec<&str> {
        let endpoints = || self.sources().map(|source| &source.endpoint);
        let env = endpoints()
            .filter_map(Endpoint::any_process)
            .flat_map(|one| &one.env)
            .filter(|(name, _)| is_secret_name(name));
        let headers = endpoints()
            .filter_map(Endpoint::http)
            .flat_map(|one| &one.headers)
            .filter(|(name, value)| is_secret_value(name, value.raw()));
        env.chain(headers)
            .filter(|(_, value)| value.variables().next().is_none())
            .map(|(_, value)| value.raw())
            .filter(|value| value.len() >= MIN_SECRET_BYTES)
            .collect()
    }

    /// A warning for each literal secret in a command. Unlike one in `env` it is compiled in, since the lock
    /// depends on the words of the command.
    pub fn literal_secrets_in_commands(&self) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        for source in self.sources() {
            let Some(process) = source.endpoint.any_process() else {
                continue;
            };
            for (index, kind) in secrets_of(process) {
                let message = format!(
                    "the command of `{}` contains {}; the lock has only its digest, but the compiled-in config has the value",
                    source.path,
                    shown_line(&kind.describe(), 120)
                );
                let place = process.places.get(index).or(process.places.first());
                let pointer = format!("{}{}", source.pointer, place.map_or("", String::as_str));
                let warning = Diagnostic::warning(Code::LiteralSecret, message)
                    .at(pointer)
                    .help("Write `${NAME}`, and set the variable where the broker runs.");
                let warning = self.place(warning);
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }
}

impl ProcessEndpoint {
    /// Literal secrets in the words of the command: the value of an option, a variable or a header with a
    /// secret-looking name, and the password of a URL. They are masked in all output of the source, like such
    /// values of `env`.
    pub fn literal_secret_arguments(&self) -> Vec<&str> {
        let words = Words::from_command(&self.command);
        let hidden = words.hidden(&[], false);
        let of_word = words.texts.iter().zip(&hidden);
        of_word
            .flat_map(|(word, hidden)| {
                let secrets = hidden.iter().filter_map(|one| one.secret.as_ref());
                secrets.filter_map(|secret| Some(&word[secret.value.clone()?]))
            })
            .collect()
    }
}

/// The hidden parts of a URL.
pub(crate) fn hidden_in_url(url: &str) -> Vec<Hidden> {
    disjoint(urls::secrets(url))
}

/// The index of the word and the kind of each literal secret in the command.
fn secrets_of(process: &ProcessEndpoint) -> Vec<(usize, SecretKind)> {
    let hidden = Words::from_command(&process.command).hidden(&[], false);
    let of_word = hidden.into_iter().enumerate();
    of_word
        .flat_map(|(index, hidden)| {
            let kinds = hidden.into_iter().filter_map(|one| one.secret?.kind);
            kinds.map(move |kind| (index, kind))
        })
        .collect()
}

/// The form of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A word that is passed to a program.
    Word,
    /// A word that is a shell script.
    Script,
    /// A word in a shell script, with its quotes.
    ShellWord,
}

struct Search<'a> {
    known: &'a [&'a str],
    hides_paths: bool,
}

impl Search<'_> {
    /// The hidden parts of a word after this option.
    fn word(&self, option: Option<&str>, word: &str, form: Form) -> Vec<Hidden> {
        if form != Form::Script
            && let Some(secret) = self.secret(option, word, form)
        {
            return vec![Hidden {
                range: 0..word.len(),
                secret: Some(secret),
            }];
        }
        let mut found = urls::secrets(word);
        let may_be_script = form == Form::Word && word.contains([' ', '\t', '\n']);
        if form == Form::Script || may_be_script {
            found.extend(self.script(word));
        }
        if self.hides_paths && form != Form::Script {
            let paths = paths::absolute(word, form == Form::ShellWord).into_iter();
            found.extend(paths.map(|range| Hidden {
                range,
                secret: None,
            }));
        }
        disjoint(found)
    }

    /// The hidden parts of the words of a script.
    fn script(&self, text: &str) -> Vec<Hidden> {
        let known = self.known.iter().flat_map(|secret| {
            let places = text.match_indices(secret);
            places.map(|(at, _)| Hidden {
                range: at..at + secret.len(),
                secret: Some(Secret::default()),
            })
        });
        let mut found: Vec<_> = known.collect();
        let mut option = None;
        for range in shell_words::split(text) {
            let word = &text[range.clone()];
            let hidden = self.word(option, word, Form::ShellWord).into_iter();
            found.extend(hidden.map(|one| one.moved(range.start)));
            option = option_name(word, true);
        }
        found
    }

    /// The secret of a word that is hidden as a whole.
    fn secret(&self, option: Option<&str>, word: &str, form: Form) -> Option<Secret> {
        let bare = shell_words::unquoted(word, form == Form::ShellWord);
        let shell = form == Form::ShellWord;
        let text = &word[bare.clone()];
        let found = |name: &str, value: Range<usize>| {
            let inner = shell_words::unquoted(&text[value.clone()], shell);
            let value = value.start + inner.start..value.start + inner.end;
            let literal = &text[value.clone()];
            if is_setting(name, literal) {
                return Secret::default();
            }
            let place = bare.start + value.start..bare.start + value.end;
            Secret {
                kind: Some(SecretKind::Named(name.to_owned())),
                value: is_complete(literal).then(|| place.clone()),
                place,
            }
        };
        if let Some(option) = option.filter(|option| is_secret_name(option))
            && !is_option(text)
            && is_literal(text, shell)
        {
            return Some(found(option, 0..text.len()));
        }
        if let Some((name, value)) = named_secret(option, text, shell) {
            return Some(found(name, value));
        }
        if let Some(name) = secret_default(text) {
            return Some(Secret {
                kind: Some(SecretKind::Default(name)),
                place: 0..word.len(),
                value: None,
            });
        }
        let known = self.known.iter().any(|secret| word.contains(secret));
        known.then(Secret::default)
    }
}

impl Hidden {
    /// The part in a text that has the word at `start`.
    fn moved(mut self, start: usize) -> Self {
        let secret = self.secret.as_mut();
        let of_secret = secret.map(|secret| (&mut secret.place, secret.value.as_mut()));
        let (place, value) = of_secret.unzip();
        let ranges = std::iter::once(&mut self.range).chain(place);
        for range in ranges.chain(value.flatten()) {
            range.start += start;
            range.end += start;
        }
        self
    }
}

/// The name and the value in `NAME=VALUE`, also behind an option and `=`, and in `NAME: VALUE`.
fn named_secret<'w>(
    option: Option<&str>,
    text: &'w str,
    shell: bool,
) -> Option<(&'w str, Range<usize>)> {
    let mut start = 0;
    while let Some((name, value)) = text[start..].split_once('=') {
        // `name==1.2` is a requirement of Python.
        if !is_name(name) || value.starts_with('=') {
            break;
        }
        if is_secret_name(name) && is_literal(value, shell) {
            return Some((name, text.len() - value.len()..text.len()));
        }
        start = text.len() - value.len();
    }
    let (name, value) = text[start..].split_once(':')?;
    // `token-server:1.2` may be an image.
    let is_header = value.starts_with(' ')
        || SECRET_HEADERS.contains(&name.to_ascii_lowercase().as_str())
        || option.is_some_and(|option| option == "-H" || option.contains("header"))
        || text[..start].contains("header");
    let value = value.trim();
    (is_header && is_name(name) && is_secret_name(name) && is_literal(value, shell))
        .then(|| (name, text.len() - value.len()..text.len()))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// The option that a word is, if the next word may be its value.
fn option_name(word: &str, shell: bool) -> Option<&str> {
    let word = &word[shell_words::unquoted(word, shell)];
    (word.len() > 1 && word.starts_with('-') && !word.contains('=')).then_some(word)
}

/// Whether a word after an option is another option and not its value.
fn is_option(word: &str) -> bool {
    let mut chars = word.chars().skip(1);
    word.starts_with('-')
        && match (chars.next(), chars.next()) {
            (Some('-'), Some(c)) => c.is_ascii_alphabetic(),
            (Some(c), None) => c.is_ascii_alphabetic(),
            _ => false,
        }
}

/// Whether a value has text besides variables. In a shell, `$NAME` and `$(…)` are not text either.
fn is_literal(value: &str, shell: bool) -> bool {
    let value = &value[shell_words::unquoted(value, shell)];
    if shell && value.starts_with('$') && !value.starts_with("${") {
        return false;
    }
    let Ok(template) = Template::parse(value) else {
        return true;
    };
    template.parts().iter().any(|part| match part {
        Part::Literal(text) => {
            let scheme = text.trim().to_ascii_lowercase();
            !["", "bearer", "basic", "token", ":"].contains(&scheme.as_str())
        }
        Part::Variable { default, .. } => default.as_ref().is_some_and(|text| !text.is_empty()),
    })
}

/// Whether the whole value is a literal, so that it can be searched for.
fn is_complete(value: &str) -> bool {
    Template::parse(value).is_ok_and(|template| template.variables().next().is_none())
}

/// Whether the value is a setting and not a secret: a boolean, a number, the file of a token.
fn is_setting(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let of_file = ["file", "path", "dir"]
        .iter()
        .any(|end| name.ends_with(end));
    let count = name.contains("tokens") && value.bytes().all(|b| b.is_ascii_digit());
    of_file || count || matches!(value, "true" | "false")
}

/// The variable with a secret-looking name that has a literal default.
fn secret_default(text: &str) -> Option<String> {
    let template = Template::parse(text).ok()?;
    template.parts().iter().find_map(|part| match part {
        Part::Variable {
            name,
            default: Some(default),
        } if !default.is_empty() && is_secret_name(name) => Some(name.clone()),
        _ => None,
    })
}

/// The offset of the first such character that is not in a `${…}`.
pub fn find_outside(text: &str, is_end: impl Fn(char) -> bool) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if let Some((_, length)) = variable(&text[at..]) {
            at += length;
            continue;
        }
        if is_end(c) {
            return Some(at);
        }
        at += c.len_utf8();
    }
    None
}

/// The parts in order; overlapping ones become one. The secret of the first is kept.
fn disjoint(mut found: Vec<Hidden>) -> Vec<Hidden> {
    found.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end)));
    let mut out: Vec<Hidden> = Vec::new();
    for one in found {
        match out.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                last.range.end = last.range.end.max(one.range.end);
                if last.secret.is_none() {
                    last.secret = one.secret;
                }
            }
            _ => out.push(one),
        }
    }
    out
}

#[cfg(test)]
mod tests;
