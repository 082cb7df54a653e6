//! Strings with `${NAME}` and `${NAME:-default}`: parsed once, expanded when a process needs them.
//!
//! Values are not parsed again, so `${…}` in a value is kept as text.

use std::fmt;

/// A string with variables. `Debug` and `Display` print it unexpanded.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template {
    raw: String,
    parts: Vec<Part>,
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Literal text.
    Literal(String),
    /// A variable.
    Variable {
        /// Its name: a letter or `_`, then letters, digits and `_`.
        name: String,
        /// The value if the variable is unset or empty.
        default: Option<String>,
    },
}

/// A `${` that is not `${NAME}` or `${NAME:-default}`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A missing `}`.
    #[error("`${{` at byte {0} is not closed")]
    Unclosed(usize),
    /// An invalid variable name.
    #[error("`${{` at byte {0} is not followed by a variable name")]
    Name(usize),
    /// A variable inside a default.
    #[error("`${{` at byte {0} nests another")]
    Nested(usize),
}

/// The prefix of the broker's own variables, such as the one with the callers' secret.
const OWN_PREFIX: &str = "MCP_BROKER_";
/// The variable with the callers' secret in set-ups of a simple MCP adapter. The broker reads it as well.
pub const ADAPTER_SECRET_VARIABLE: &str = "ZYRA_API_KEY";

/// Whether a variable belongs to the broker itself. No source may read its value, whatever pattern or
/// `${…}` names it.
pub fn is_own_variable(name: &str) -> bool {
    name.starts_with(OWN_PREFIX) || name == ADAPTER_SECRET_VARIABLE
}

/// A variable that is unset and has no default.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingVariable(pub String);

impl Template {
    /// Parses `raw`. `$` without `{` is text; `$${` is an error, since its meaning differs between programs.
    pub fn parse(raw: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = raw;
        let offset = |rest: &str| raw.len() - rest.len();
        while let Some(at) = rest.find("${") {
            let start = offset(rest) + at;
            if at > 0 {
                parts.push(Part::Literal(rest[..at].to_owned()));
            }
            if rest[..at].ends_with('$') {
                return Err(TemplateError::Name(start - 1));
            }
            let inner = &rest[at + 2..];
            let end = inner.find('}').ok_or(TemplateError::Unclosed(start))?;
            let (name, default) = match inner[..end].split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (&inner[..end], None),
            };
            if inner[..end].contains("${") {
                return Err(TemplateError::Nested(start));
            }
            if !is_variable_name(name) {
                return Err(TemplateError::Name(start));
            }
            parts.push(Part::Variable {
                name: name.to_owned(),
                default,
            });
            rest = &inner[end + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self {
            raw: raw.to_owned(),
            parts,
        })
    }

    /// A template of exactly this text, without variables.
    pub fn literal(text: &str) -> Self {
        Self {
            raw: text.to_owned(),
            parts: vec![Part::Literal(text.to_owned())],
        }
    }

    /// A template of these parts. `raw` is their text; parsing it may give other parts.
    pub(super) fn from_parts(pieces: Vec<Part>) -> Self {
        let mut raw = String::new();
        let mut parts: Vec<Part> = Vec::new();
        for piece in pieces {
            match (&piece, parts.last_mut()) {
                (Part::Literal(text), Some(Part::Literal(before))) => {
                    raw.push_str(text);
                    before.push_str(text);
                    continue;
                }
                (Part::Literal(text), _) => raw.push_str(text),
                (Part::Variable { name, default }, _) => {
                    raw.push_str("${");
                    raw.push_str(name);
                    if let Some(default) = default {
                        raw.push_str(":-");
                        raw.push_str(default);
                    }
                    raw.push('}');
                }
            }
            parts.push(piece);
        }
        Self { raw, parts }
    }

    /// As written.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The names of its variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// The text with each variable's value from `lookup`; an error names all missing variables.
    /// A default replaces an unset or empty variable, as in a shell.
    pub fn expand(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, Vec<MissingVariable>> {
        let mut out = String::new();
        let mut missing = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Variable { name, default } => match (lookup(name), default) {
                    (Some(value), _) if !value.is_empty() => out.push_str(&value),
                    (_, Some(default)) => out.push_str(default),
                    (Some(_), None) => {}
                    (None, None) => missing.push(MissingVariable(name.clone())),
                },
            }
        }
        if missing.is_empty() {
            Ok(out)
        } else {
            Err(missing)
        }
    }
}

/// Returns the variable at the start of `text`, and its length.
pub(crate) fn variable(text: &str) -> Option<(Part, usize)> {
    if !text.starts_with("${") {
        return None;
    }
    let length = text.find('}')? + 1;
    let template = Template::parse(&text[..length]).ok()?;
    Some((template.parts().first()?.clone(), length))
}

/// Reads a text with `$${` for `${`. An error is the byte offset of a `${`.
pub(super) fn unescape(text: &str) -> Result<String, usize> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        // The dollar sign before it belongs to this text: the one of an earlier `$${` was passed.
        let Some(before) = text[at..start].strip_suffix('$') else {
            return Err(start);
        };
        out.push_str(before);
        out.push_str("${");
        at = start + 2;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// Whether `name` is a letter or `_`, then letters, digits and `_`.
pub fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.raw, f)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}
