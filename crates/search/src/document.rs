//! The searched text of a tool: its fields, and the weights of its terms.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sentence::first_sentence;
use crate::tokens::{Token, tokens};

/// The maximum length of the searched texts of parameters, in bytes.
const MAX_PARAMETER_BYTES: usize = 3000;
/// The maximum length of the searched part of a description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 16_000;
/// The maximum depth of reading parameter schemas.
const MAX_SCHEMA_DEPTH: usize = 8;
/// The share of the length of a field in its normalisation: `b` of BM25F.
const LENGTH_SHARE: f64 = 0.75;

/// The searchable texts of a tool.
#[derive(Clone, Debug, Default)]
pub struct Document<'a> {
    /// The server's name of the tool.
    pub name: &'a str,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its description.
    pub description: Option<&'a str>,
    /// The schema of its arguments.
    pub schema: Option<&'a Value>,
    /// The names of the nodes above it and of its server.
    pub place: Vec<&'a str>,
    /// Phrases of the operator: the summary and the hints.
    pub phrases: Vec<&'a str>,
    /// The hints alone, for embedding.
    pub hints: Vec<&'a str>,
}

/// A field of a document.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in explanations.
    pub name: &'static str,
    /// The weight of one occurrence of a term.
    pub weight: f64,
    /// The mean number of terms over the recorded tools in `tests/corpus-broker`: a constant, so that the score of
    /// a tool does not depend on the other tools of a catalog.
    pub mean_length: f64,
}

/// The fields, in the order of [`FieldLengths`].
pub const FIELDS: [Field; 7] = [
    Field {
        name: "name",
        weight: 3.0,
        mean_length: 4.0,
    },
    Field {
        name: "title",
        weight: 2.0,
        mean_length: 1.9,
    },
    Field {
        name: "first sentence",
        weight: 2.0,
        mean_length: 7.3,
    },
    Field {
        name: "description",
        weight: 1.0,
        mean_length: 42.2,
    },
    Field {
        name: "parameter names",
        weight: 0.5,
        mean_length: 14.0,
    },
    Field {
        name: "parameter texts",
        weight: 0.3,
        mean_length: 48.2,
    },
    Field {
        name: "place and phrases",
        weight: 2.0,
        mean_length: 5.5,
    },
];

/// The number of terms in each field.
pub type FieldLengths = [usize; FIELDS.len()];

impl Document<'_> {
    /// Returns the terms of each field.
    fn fields(&self) -> [Vec<Token>; FIELDS.len()] {
        let description = bounded(self.description.unwrap_or_default(), MAX_DESCRIPTION_BYTES);
        let (sentence, rest) = first_sentence(description);
        let (mut names, mut texts) = (Vec::new(), String::new());
        if let Some(schema) = self.schema {
            read_parameters(schema, MAX_SCHEMA_DEPTH, &mut names, &mut texts);
        }
        let place = self.place.iter().chain(&self.phrases).chain(&self.hints);
        let place: Vec<&str> = place.copied().collect();
        [
            // Names may consist of stop words: `who_am_i`.
            tokens(self.name),
            content(self.title.unwrap_or_default()),
            content(sentence),
            content(&rest.join("\n")),
            content(&names.join("\n")),
            content(bounded(&texts, MAX_PARAMETER_BYTES)),
            content(&place.join("\n")),
        ]
    }

    /// Returns the number of terms in each field.
    pub fn lengths(&self) -> FieldLengths {
        self.fields().map(|field| field.len())
    }

    /// Returns the weight of each term: the sum over the fields, each divided by its relative length.
    pub(crate) fn weights(&self) -> BTreeMap<String, f64> {
        let mut weights = BTreeMap::new();
        for (field, tokens) in FIELDS.iter().zip(self.fields()) {
            let relative = tokens.len() as f64 / field.mean_length;
            let normalised = field.weight / (1.0 - LENGTH_SHARE + LENGTH_SHARE * relative);
            for token in tokens {
                *weights.entry(token.term).or_default() += normalised;
            }
        }
        weights
    }

    /// Returns the text that is embedded: server, name and first sentence, at most 300 characters.
    pub fn embedded_text(&self) -> String {
        let description = bounded(self.description.unwrap_or_default(), MAX_DESCRIPTION_BYTES);
        let (sentence, _) = first_sentence(description);
        let words: Vec<_> = tokens(self.name)
            .into_iter()
            .map(|token| token.word)
            .collect();
        let text = format!("{}: {}. {sentence}", self.place.join(" "), words.join(" "));
        text.chars().take(300).collect()
    }

    /// Returns the text of all hints for a separate embedding; `None` without hints.
    pub fn embedded_hints(&self) -> Option<String> {
        (!self.hints.is_empty()).then(|| self.hints.join(". "))
    }
}

fn content(text: &str) -> Vec<Token> {
    let mut tokens = tokens(text);
    tokens.retain(|token| !token.is_stop_word);
    tokens
}

/// Returns the beginning of a text, in whole characters.
fn bounded(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Collects the names, the descriptions and the listed values of parameters.
fn read_parameters(schema: &Value, depth: usize, names: &mut Vec<String>, texts: &mut String) {
    let Some(members) = schema.as_object().filter(|_| depth > 0) else {
        return;
    };
    let properties = members.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        names.push(name.clone());
        push_text(property.get("description"), texts);
        for value in property
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            push_text(Some(value), texts);
        }
        read_parameters(property, depth - 1, names, texts);
    }
    if let Some(items) = members.get("items") {
        read_parameters(items, depth - 1, names, texts);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for part in members
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            read_parameters(part, depth - 1, names, texts);
        }
    }
}

fn push_text(text: Option<&Value>, texts: &mut String) {
    if let Some(text) = text.and_then(Value::as_str)
        && texts.len() < MAX_PARAMETER_BYTES
    {
        texts.push_str(bounded(text, MAX_PARAMETER_BYTES));
        texts.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_is_searched_and_the_name_counts_most() {
        let schema = json!({"properties": {"recipient": {"description": "Whom to write", "enum": ["draft"],
            "items": {"properties": {"attachment": {}}}}}});
        let document = Document {
            name: "send_mail",
            title: Some("Postman"),
            description: Some("Delivers a letter. Afterwards it archives."),
            schema: Some(&schema),
            place: vec!["office"],
            phrases: vec!["get in touch"],
            hints: vec!["contact a person"],
        };
        let weights = document.weights();
        for term in [
            "send", "sendmail", "postman", "deliv", "archiv", "recipi", "draft", "attach", "offic",
            "touch", "contact",
        ] {
            assert!(weights.contains_key(term), "{term}: {weights:?}");
        }
        assert!(weights["send"] > weights["archiv"] && weights["archiv"] > weights["draft"]);
        assert_eq!(
            document.embedded_text(),
            "office: sendmail send mail. Delivers a letter."
        );
    }

    #[test]
    fn longer_fields_weigh_less_for_each_word() {
        let weight = |description| {
            let document = Document {
                name: "x",
                description: Some(description),
                ..Document::default()
            };
            document.weights()["letter"]
        };
        assert!(
            weight("Sends a letter")
                > weight("Sends a letter with very many additional words about nothing")
        );
    }
}
