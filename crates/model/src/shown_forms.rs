//! The forms in which a report shows a text, and where a word of it ends.

use crate::text::{one_line, visible_json};

/// A text as it is, as JSON writes it, and as a terminal shows it; each once.
pub(crate) fn shown_forms(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let json = &json[1..json.len() - 1];
    let mut forms = vec![
        value.to_owned(),
        json.to_owned(),
        visible_json(json),
        one_line(value),
    ];
    forms.sort();
    forms.dedup();
    forms
}

/// Whether a character continues a word, so that a name before or after it is only a part of another one.
pub(crate) fn continues_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~')
}
