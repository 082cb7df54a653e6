//! Tools that call themselves deprecated. They rank last.

use crate::document::Document;
use crate::sentence::first_sentence;
use crate::tokens::tokens;

/// The word by which a tool calls itself so.
pub(crate) const DEPRECATED: &str = "deprecated";
/// Words in front of it, in a sentence about the tool.
const VERBS: [&str; 4] = ["is", "now", "been", "was"];

/// Whether a tool calls itself deprecated in its name, its title or its first sentence. A tool that lists what is deprecated does not.
pub(crate) fn is_deprecated(document: &Document<'_>) -> bool {
    let description = document.description.unwrap_or_default();
    let (sentence, [marks, _]) = first_sentence(description);
    let title = document.title.unwrap_or_default();
    is_at_an_end(document.name)
        || is_at_an_end(title)
        || is_bracketed(title)
        || is_at_an_end(marks)
        || starts_with_it(sentence)
        || is_bracketed(sentence)
        || is_said(sentence)
}

/// Returns the words of a text, without the joined forms of names.
fn words(text: &str) -> Vec<String> {
    let names = text.split(|c: char| !c.is_alphanumeric());
    let words = names.flat_map(|name| {
        let words = tokens(name);
        // The joined form is the first one.
        let joined = usize::from(words.len() > 1);
        words.into_iter().skip(joined).map(|token| token.word)
    });
    words.collect()
}

/// Whether it is the first or the last word of a name.
fn is_at_an_end(text: &str) -> bool {
    let words = words(text);
    [words.first(), words.last()].contains(&Some(&DEPRECATED.to_owned()))
}

fn starts_with_it(text: &str) -> bool {
    // `Deprecated APIs are listed` is about others.
    let mut parts = text.splitn(2, |c: char| !c.is_alphanumeric());
    let is_first = parts
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(DEPRECATED));
    let is_upper = text.starts_with(|c: char| c.is_uppercase())
        && text.chars().nth(1).is_some_and(|c| c.is_uppercase());
    is_first
        && (is_upper
            || text[DEPRECATED.len()..].starts_with([':', '.', ']', ')', '*', ',', '!', ';']))
}

fn is_bracketed(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["(deprecated", "[deprecated"]
        .iter()
        .any(|mark| text.contains(mark))
}

fn is_said(sentence: &str) -> bool {
    let words = words(sentence);
    let pairs = words.windows(2);
    pairs
        .clone()
        .any(|pair| pair[1] == DEPRECATED && VERBS.contains(&pair[0].as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_that_calls_itself_deprecated_is_recognised() {
        let of_description = |description| Document {
            name: "get_user",
            description: Some(description),
            ..Document::default()
        };
        for text in [
            "Deprecated: use fetch_user.",
            "DEPRECATED. Gets a user.",
            "DEPRECATED Gets a user by its id.",
            "**Deprecated**: use fetch_user instead.",
            "[DEPRECATED] Gets a user.",
            "Gets a user (deprecated).",
            "This tool is deprecated, use fetch_user.",
            "It has been deprecated since version 2.",
            "# Deprecated\nGets a user by its id.",
        ] {
            assert!(is_deprecated(&of_description(text)), "{text}");
        }
        for text in [
            "Gets a user. It is deprecated elsewhere.",
            "Lists deprecated APIs of the project.",
            "Deprecated APIs are listed with their replacement.",
            "Marks an endpoint as deprecated",
        ] {
            assert!(!is_deprecated(&of_description(text)), "{text}");
        }
        let named = |name| Document {
            name,
            ..Document::default()
        };
        assert!(is_deprecated(&named("get_user_deprecated")));
        assert!(is_deprecated(&named("deprecatedGetUser")));
        assert!(!is_deprecated(&named("list_deprecated_apis")));
        let titled = Document {
            name: "get_user",
            title: Some("Get user (deprecated)"),
            ..Document::default()
        };
        assert!(is_deprecated(&titled));
    }
}
