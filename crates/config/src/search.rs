//! The section `search`, and the hints of a tool: phrases for finding it.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value, json};

use super::ToolOverride;
use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::spanned::Data;
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::digest::Digest;
use broker_model::text::{is_invisible, shown_line};

const LEVEL: Level = Level::Search;
/// Maximum number of hints of a tool.
pub const MAX_HINTS: usize = 5;
/// Maximum length of a hint, in characters.
const MAX_HINT_CHARS: usize = 120;

/// Maximum length of the name of a model, in bytes.
const MAX_MODEL_BYTES: usize = 1024;
/// The variable with the key for the endpoint of the embedder `OPENAI`.
pub const OPENAI_KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// The section `search`: the data that a search uses besides words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the vectors of words are compiled in.
    pub table: bool,
    /// The number of hits in search mode, unless a caller names another.
    pub top_k: usize,
    /// The source of the vectors of tools and queries.
    pub embedder: Embedder,
    /// The local model: a folder, or a name in the cache of Hugging Face.
    pub hf_model: Option<String>,
    /// The local model for queries that are not English.
    pub hf_multilingual_model: Option<String>,
    /// The model of the endpoint.
    pub openai_model: String,
    /// Whether texts may be sent to an endpoint.
    pub external: bool,
    /// Maximum time for the vector of a query; words answer afterwards.
    pub timeout: Duration,
}

/// The source of the vectors of tools and queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Embedder {
    /// No model: words, and the table unless `search.table` is `false`.
    #[default]
    Bm25,
    /// A local model in the files that Hugging Face uses.
    Hf,
    /// An endpoint with the embeddings API of OpenAI.
    OpenAi,
}

impl Embedder {
    /// The embedder with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "BM25" => Self::Bm25,
            "HF" => Self::Hf,
            "OPENAI" => Self::OpenAi,
            _ => return None,
        })
    }

    /// The name in configs and variables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bm25 => "BM25",
            Self::Hf => "HF",
            Self::OpenAi => "OPENAI",
        }
    }
}

/// A phrase for finding a tool in a search.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchHint {
    /// The phrase.
    pub text: String,
    /// Whether a model wrote it and no person has accepted it. It is not compiled.
    pub generated: bool,
    /// The digest of the tool when the hint was written; for another digest the hint is left out.
    pub made_for: Option<String>,
}

impl SearchHint {
    /// Makes the hint that a person wrote.
    fn from_person(text: String) -> Self {
        Self {
            text,
            generated: false,
            made_for: None,
        }
    }

    /// Whether it was written for a tool with this digest, or for any.
    pub fn is_for(&self, digest: &Digest) -> bool {
        let made_for = self.made_for.as_deref();
        made_for.is_none_or(|made_for| made_for == digest.as_str())
    }

    /// The hint as the digest of a config has it: accepted hints only.
    pub(super) fn covered(&self) -> Option<Value> {
        match (&self.made_for, self.generated) {
            (_, true) => None,
            (None, false) => Some(json!(self.text)),
            (Some(made_for), false) => Some(json!({"text": self.text, "for": made_for})),
        }
    }
}

impl ToolOverride {
    /// The hints of a tool with this digest that are compiled, sorted: those that a person wrote or accepted.
    pub fn compiled_hints(&self, digest: &Digest) -> Vec<String> {
        let hints = self.search_hints.iter();
        hints
            .filter(|hint| !hint.generated && hint.is_for(digest))
            .map(|hint| hint.text.clone())
            .collect()
    }
}

impl Default for Search {
    fn default() -> Self {
        Self {
            table: keys::key(LEVEL, "table").value(),
            top_k: keys::key(LEVEL, "top_k").value(),
            embedder: Embedder::default(),
            hf_model: None,
            hf_multilingual_model: None,
            openai_model: keys::key(LEVEL, "openai_model").value(),
            external: keys::key(LEVEL, "external").value(),
            timeout: keys::key(LEVEL, "timeout").time(),
        }
    }
}

/// Returns the values of `search.top_k`.
pub fn top_k_range() -> RangeInclusive<u64> {
    keys::key(LEVEL, "top_k").numbers()
}

/// Reads the section.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Search {
    let mut out = Search::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "table" => {
                if let Some(table) = fields::boolean(findings, &value) {
                    out.table = table;
                }
            }
            key @ "top_k" => {
                if let Some(hits) = keys::integer(findings, &value, LEVEL, key) {
                    out.top_k = hits;
                }
            }
            key @ "embedder" => {
                let embedder = keys::choice(findings, &value, LEVEL, key, Embedder::from_name);
                out.embedder = embedder.unwrap_or_default();
            }
            "hf_model" => out.hf_model = model(findings, &value),
            "hf_multilingual_model" => out.hf_multilingual_model = model(findings, &value),
            "openai_model" => out.openai_model = model(findings, &value).unwrap_or_default(),
            "external" => {
                if let Some(external) = fields::boolean(findings, &value) {
                    out.external = external;
                }
            }
            key @ "timeout" => {
                if let Some(timeout) = keys::seconds(findings, &value, LEVEL, key) {
                    out.timeout = timeout;
                }
            }
            unknown => keys::unknown(findings, &value, unknown, Level::Search),
        }
    }
    if out.embedder == Embedder::OpenAi && !out.external {
        let message = "`\"embedder\": \"OPENAI\"` sends texts to an endpoint, which `\"external\": false` forbids";
        let diagnostic = Diagnostic::error(Code::ConfigRange, message);
        findings.add(
            cursor,
            diagnostic
                .help("choose the embedder `HF`, whose model runs on this machine, or `BM25`"),
        );
    }
    if out.hf_multilingual_model.is_some() && out.hf_model.is_none() {
        let message = "`hf_multilingual_model` is the second model: `hf_model` is missing";
        findings.add(cursor, Diagnostic::error(Code::ConfigShape, message));
    }
    out
}

/// The name of a model, or its folder.
fn model(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<String> {
    let text = fields::string(findings, cursor)?;
    let name = fields::unescaped(findings, cursor, text, "the name of a model")?;
    if name.is_empty() || name.len() > MAX_MODEL_BYTES || name.chars().any(is_invisible) {
        let message = format!(
            "the name of a model has 1 to {MAX_MODEL_BYTES} bytes and no control or invisible characters"
        );
        fields::out_of_range(findings, cursor, message);
        return None;
    }
    Some(name)
}

/// Reads the hints of a tool, sorted: their order has no meaning.
pub(super) fn hints(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<SearchHint> {
    let mut out: Vec<SearchHint> = Vec::new();
    let expected = "a list of strings and objects with `text`";
    let items = fields::list(findings, cursor, expected).unwrap_or_default();
    if items.len() > MAX_HINTS {
        let message = format!("a tool has at most {MAX_HINTS} hints, got {}", items.len());
        let diagnostic = Diagnostic::error(Code::ConfigRange, message);
        findings.add(
            cursor,
            diagnostic.help("keep the phrases that users say most often"),
        );
        return out;
    }
    for (index, item) in items.iter().enumerate() {
        let item = cursor.item(index, item);
        let hint = match &item.value.data {
            Data::Object(_) => object(findings, &item),
            _ => phrase(findings, &item).map(SearchHint::from_person),
        };
        match hint {
            Some(hint) if out.iter().any(|other| other.text == hint.text) => {
                fields::out_of_range(findings, &item, "the hint is in the list twice".to_owned());
            }
            hint => out.extend(hint),
        }
    }
    out.sort();
    out
}

/// A hint with its origin.
fn object(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<SearchHint> {
    let (mut text, mut generated, mut made_for) = (None, false, None);
    for member in fields::object(findings, cursor, "an object")? {
        let value = cursor.member(member);
        match member.key.as_str() {
            "text" => text = phrase(findings, &value),
            "generated" => generated = fields::boolean(findings, &value).unwrap_or_default(),
            "for" => made_for = fields::string(findings, &value).map(str::to_owned),
            unknown => keys::unknown(findings, &value, unknown, Level::SearchHint),
        }
    }
    if text.is_none() && cursor.get("text").is_none() {
        let message = "a hint that is an object has the member `text`";
        findings.add(cursor, Diagnostic::error(Code::ConfigShape, message));
    }
    Some(SearchHint {
        text: text?,
        generated,
        made_for,
    })
}

/// The text of a hint.
fn phrase(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<String> {
    let text = fields::string(findings, cursor)?;
    let hint = fields::unescaped(findings, cursor, text, "a hint")?;
    match hint_problem(&hint) {
        Some(problem) => {
            fields::out_of_range(findings, cursor, problem);
            None
        }
        None => Some(hint),
    }
}

/// The reason why a text cannot be a hint.
pub fn hint_problem(hint: &str) -> Option<String> {
    let length = hint.chars().count();
    if length > MAX_HINT_CHARS {
        return Some(format!(
            "a hint has at most {MAX_HINT_CHARS} characters, and this one has {length}"
        ));
    }
    if hint
        .chars()
        .any(|c| is_invisible(c) || matches!(c, '\n' | '\t'))
    {
        return Some(format!(
            "a hint is one line without control and invisible characters: `{}`",
            shown_line(hint, MAX_HINT_CHARS)
        ));
    }
    let has_word = hint.chars().any(char::is_alphanumeric);
    (!has_word).then(|| "a hint has at least one letter or digit".to_owned())
}
