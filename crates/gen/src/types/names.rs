//! Names of modules, types and fields, with only ASCII letters, digits and `_`.
//!
//! Text of a server becomes an identifier only after cleaning; names that are then equal get a digest, so
//! that the order does not matter.

use broker_model::digest::Digest;
use serde_json::Value;

/// Maximum length of a name from words of a schema.
const MAX_NAME: usize = 80;

/// The module for one segment of a path: other characters become `_`, keywords get a trailing `_`, a
/// leading digit a leading one.
pub(super) fn module(segment: &str) -> String {
    let mut name: String = segment
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if name.is_empty() || !typify::accept_as_ident(&name) {
        name.push('_');
    }
    name
}

/// `text` in `UpperCamelCase`; empty if it has no letter and no digit.
pub(super) fn pascal(text: &str) -> String {
    let mut out = String::new();
    for word in words(text) {
        let mut chars = word.chars();
        out.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(&chars.as_str().to_ascii_lowercase());
    }
    out
}

/// `text` in `snake_case`; empty if it has no letter and no digit.
pub(super) fn snake(text: &str) -> String {
    words(text).join("_").to_ascii_lowercase()
}

/// The key that must differ between two names, in any case convention.
pub(super) fn folded(text: &str) -> String {
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a name can be used unchanged: cleaning removes only ASCII punctuation.
pub(super) fn is_plain(text: &str) -> bool {
    text.is_ascii() && text.len() <= MAX_NAME && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A type's name below its parent's, kept short.
pub(super) fn below(parent: &str, word: &str) -> String {
    let name = format!("{parent}{}", pascal(word));
    if name.len() <= MAX_NAME {
        name
    } else {
        let cut: String = name.chars().take(MAX_NAME - 8).collect();
        with_digest(&cut, "name", &name)
    }
}

/// A type's name with six hex digits of the digest of `text`.
pub(super) fn with_digest(name: &str, domain: &str, text: &str) -> String {
    // An `X` after a capital would be read as part of the word.
    pascal(&format!("{name}X{}", digest(domain, text)))
}

/// Six hex digits of the digest of a text.
pub(super) fn digest(domain: &str, text: &str) -> String {
    let digest = Digest::new(&format!("mcp-broker:{domain}:1"), &Value::from(text));
    let hex = digest.as_str().rsplit(':').next().unwrap_or_default();
    hex.chars().take(6).collect()
}

fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let begins =
            !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && !before.is_ascii_uppercase());
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c);
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_module_has_the_name_of_its_segment() {
        for (segment, name) in [
            ("get_file", "get_file"),
            ("listTables", "listTables"),
            ("type", "type_"),
            ("self", "self_"),
            ("gen", "gen_"),
            ("3d", "_3d"),
            ("a-b.c", "a_b_c"),
            ("_", "__"),
            ("-", "__"),
            ("...", "___"),
        ] {
            assert_eq!(module(segment), name, "{segment}");
        }
    }

    #[test]
    fn type_names_are_converted_to_rust_cases() {
        assert_eq!(pascal("order_by-HTTPName2x"), "OrderByHttpname2x");
        assert_eq!(snake("orderBy$x"), "order_by_x");
        assert_eq!(folded("order_By"), folded("OrderBY"));
        assert_eq!(pascal("名"), "");
        assert_eq!(digest("path", "/a").len(), 6);
    }
}
