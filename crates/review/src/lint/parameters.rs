//! Parameters that ask for the conversation or for secrets.

use serde_json::Value;

use super::TextFinding;
use super::texts::{Role, Text};
use broker_model::sensitive_words::{SensitiveKind, find_kind, words};

/// Words that turn a word for a secret into a position in a list, a count, or a choice.
const HARMLESS: [&str; 34] = [
    "hide",
    "page",
    "next",
    "continuation",
    "pagination",
    "start",
    "starting",
    "previous",
    "prev",
    "max",
    "min",
    "num",
    "number",
    "count",
    "limit",
    "total",
    "client",
    "request",
    "idempotency",
    "sync",
    "budget",
    "id",
    "ids",
    "name",
    "names",
    "type",
    "types",
    "arn",
    "identifier",
    "version",
    "resume",
    "selector",
    "strategy",
    "encryption",
];

/// Names that always mean the conversation.
const SAID: [&str; 17] = [
    "conversation",
    "conversation context",
    "conversation history",
    "conversation summary",
    "chat history",
    "chat context",
    "message history",
    "transcript",
    "sidenote",
    "side note",
    "user context",
    "user prompt",
    "user message",
    "original prompt",
    "previous messages",
    "system prompt",
    "system message",
];
/// Names that mean it without a description.
const PERHAPS: [&str; 5] = ["context", "note", "notes", "history", "reasoning"];
/// Words that describe it.
const SPEECH: [&str; 18] = [
    "conversation",
    "chat",
    "user",
    "users",
    "task",
    "prompt",
    "previous",
    "llm",
    "model",
    "agent",
    "assistant",
    "session",
    "full",
    "entire",
    "file",
    "contents",
    "thinking",
    "everything",
];

/// Whether a parameter asks for more than its call needs.
pub(super) fn check(text: &Text<'_>) -> Option<TextFinding> {
    if text.role != Role::Parameter || text.member.is_some_and(is_choice) {
        return None;
    }
    let words = words(text.text);
    let name = words.join(" ");
    let what = if SAID.contains(&name.as_str())
        || PERHAPS.contains(&name.as_str()) && may_mean_speech(text.member)
    {
        "the conversation"
    } else if asks_for_secrets(&words) {
        "credentials"
    } else {
        return None;
    };
    Some(TextFinding {
        rule: "parameter-asks",
        at: 0,
        to: text.text.len(),
        message: format!("the parameter {} asks for {what}", super::quoted(text.text)),
    })
}

/// A parameter with a fixed set of values accepts no free text.
fn is_choice(schema: &Value) -> bool {
    schema.get("enum").is_some()
        || schema.get("const").is_some()
        || ["boolean", "integer", "number"]
            .iter()
            .any(|name| schema.get("type").is_some_and(|kind| kind == name))
}

fn may_mean_speech(schema: Option<&Value>) -> bool {
    let description = schema
        .and_then(|schema| schema.get("description"))
        .and_then(Value::as_str);
    description.is_none_or(|text| {
        words(text)
            .iter()
            .any(|word| SPEECH.contains(&word.as_str()))
    })
}

fn asks_for_secrets(words: &[String]) -> bool {
    // The kind of a credential is not a credential.
    let is = |word: &String| {
        find_kind(word) == Some(SensitiveKind::Credentials)
            && !matches!(word.as_str(), "auth" | "authorization")
    };
    let key = words.windows(2).any(|pair| {
        matches!(pair[0].as_str(), "api" | "private" | "secret" | "ssh") && pair[1] == "key"
    });
    (key || words.iter().any(is)) && !words.iter().any(|word| HARMLESS.contains(&word.as_str()))
}
