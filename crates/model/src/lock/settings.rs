//! The config fields of a source that a lock of version 2 repeats in plain text, so that a reviewer sees a
//! change of them. `config_digest` decides whether a lock is stale.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Backend;
use crate::digest::Digest;
use crate::text::shown_line;
use crate::trust::TrustLevel;

/// Maximum length of a word in a message, in characters.
const MAX_SHOWN_CHARS: usize = 120;
/// Number of hexadecimal digits of a digest that a message shows.
const SHOWN_DIGITS: usize = 12;

/// The plain-text fields of a source in a lock of version 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSettings {
    /// The trust level, if it is not the default of the transport.
    pub trust: Option<TrustLevel>,
    /// The command line, or the URL.
    pub endpoint: EndpointSettings,
    /// The patterns of the filter, sorted: their order has no meaning.
    pub tool_filter: Vec<String>,
    /// Leaf names by upstream name.
    pub path_aliases: BTreeMap<String, String>,
}

/// The plain-text fields that say how the server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointSettings {
    /// The command of a process.
    Process(Command),
    /// A server over HTTP.
    Http(HttpSettings),
}

/// The plain-text fields of a server over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// The URL with variables unexpanded, and without the values of its query that have a secret-looking name.
    pub url: Word,
    /// The names of its headers in lower case, sorted.
    pub header_names: Vec<String>,
}

/// The words of a command, with variables unexpanded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Command {
    /// The program and its arguments.
    Direct(Vec<Word>),
    /// The words of a shell command, with operators and line ends as words.
    Shell(ShellCommand),
}

/// A command that a shell runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShellCommand {
    /// Its words with their quotes.
    pub shell: Vec<Word>,
}

/// A word as written, the digest of one that is not shown, or a list of such parts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Word {
    /// One part.
    One(Part),
    /// Several parts, in order.
    Parts(Vec<Part>),
}

/// A text, or the digest of a text that is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Part {
    /// As in the config.
    Text(String),
    /// A literal secret, the user part of a URL, or an absolute path.
    Hidden(HiddenText),
}

/// A text that is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HiddenText {
    /// The digest of the text, with variables unexpanded.
    digest: Digest,
}

impl SourceSettings {
    /// The trust level in force.
    pub fn trust_level(&self) -> TrustLevel {
        let backend = match self.endpoint {
            EndpointSettings::Process(_) => Backend::Stdio,
            EndpointSettings::Http(_) => Backend::Http,
        };
        self.trust.unwrap_or(TrustLevel::default_of(backend))
    }
}

impl EndpointSettings {
    /// Whether both reach the same server: the same words of the command, or the same URL with the same header names.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Process(one), Self::Process(other)) => one.is_same(other),
            (Self::Http(one), Self::Http(other)) => {
                one.url.is_same_text(&other.url) && one.header_names == other.header_names
            }
            (Self::Process(_), Self::Http(_)) | (Self::Http(_), Self::Process(_)) => false,
        }
    }
}

/// One line for people.
impl fmt::Display for EndpointSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(command) => {
                let words: Vec<_> = command.words().iter().map(Word::to_string).collect();
                f.write_str(&shown_line(&words.join(" "), MAX_SHOWN_CHARS))
            }
            Self::Http(http) => write!(f, "{}", http.url),
        }
    }
}

impl Command {
    /// The words.
    pub fn words(&self) -> &[Word] {
        match self {
            Self::Direct(words) | Self::Shell(ShellCommand { shell: words }) => words,
        }
    }

    /// Whether both are the same words, run in the same way.
    fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (self.words(), other.words());
        let mut pairs = one.iter().zip(two);
        self.is_shell() == other.is_shell()
            && one.len() == two.len()
            && pairs.all(|(one, two)| one.is_same_text(two))
    }

    /// Whether a shell runs it.
    pub fn is_shell(&self) -> bool {
        matches!(self, Self::Shell(_))
    }
}

impl Word {
    /// Returns a text with digests in place of some parts, in order.
    pub fn hiding(text: &str, hidden: impl IntoIterator<Item = Range<usize>>) -> Self {
        let mut parts = Vec::new();
        let mut at = 0;
        let text_until = |at: usize, end: usize, parts: &mut Vec<Part>| {
            if at < end {
                parts.push(Part::Text(text[at..end].to_owned()));
            }
        };
        for range in hidden {
            text_until(at, range.start, &mut parts);
            parts.push(Part::Hidden(HiddenText {
                digest: digest_of(&text[range.clone()]),
            }));
            at = range.end;
        }
        text_until(at, text.len(), &mut parts);
        match parts.len() {
            0 => Self::One(Part::Text(String::new())),
            1 => Self::One(parts.remove(0)),
            _ => Self::Parts(parts),
        }
    }

    /// Whether both are the same text of a config. A text is equal to its digest: locks of older versions show
    /// absolute paths in the config's folder.
    pub fn is_same_text(&self, other: &Self) -> bool {
        let digest = |word: &Self| match word {
            Self::One(Part::Text(text)) => Some(digest_of(text)),
            Self::One(Part::Hidden(hidden)) => Some(hidden.digest.clone()),
            Self::Parts(_) => None,
        };
        self == other || digest(self).is_some_and(|one| digest(other) == Some(one))
    }

    /// Whether it has the only form for its content.
    pub(super) fn is_normal(&self) -> bool {
        let Self::Parts(parts) = self else {
            return true;
        };
        let is_text = |part: &Part| matches!(part, Part::Text(_));
        parts.len() > 1
            && !parts.contains(&Part::Text(String::new()))
            && !parts.windows(2).any(|two| two.iter().all(is_text))
    }
}

/// The digest in place of a text of the config.
fn digest_of(text: &str) -> Digest {
    Digest::from_member("config_text", &json!(text))
}

/// One line for people; a hidden text is the begin of its digest.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Parts(parts) => parts,
        };
        let mut shown = String::new();
        for part in parts {
            match part {
                Part::Text(text) => shown.push_str(text),
                Part::Hidden(HiddenText { digest }) => {
                    let formula = crate::digest::HASH_MODEL.len() + 1;
                    let digest = &digest.as_str()[..formula + SHOWN_DIGITS];
                    shown.push_str(&format!("[{digest}…]"));
                }
            }
        }
        f.write_str(&shown_line(&shown, MAX_SHOWN_CHARS))
    }
}
