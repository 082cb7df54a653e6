//! Text functions of the `text_*` tools: words, letter cases and filler text.

const FILLER: [&str; 6] = [
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua.",
    "Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat.",
    "Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur.",
    "Excepteur sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit anim id est laborum.",
    "Curabitur pretium tincidunt lacus, nulla gravida orci a odio, et tempus feugiat.",
    "Vestibulum ante ipsum primis in faucibus orci luctus et ultrices posuere cubilia curae.",
];

/// Sentences in each paragraph of filler text.
const SENTENCES: usize = 5;

/// Filler text; paragraph `n` does not depend on the count.
pub(super) fn lorem(paragraphs: usize) -> String {
    let paragraph = |number: usize| {
        let sentences = (0..SENTENCES).map(|at| FILLER[(number + at) % FILLER.len()]);
        sentences.collect::<Vec<_>>().join(" ")
    };
    let paragraphs: Vec<_> = (0..paragraphs).map(paragraph).collect();
    paragraphs.join("\n\n")
}

/// Each word begins with a capital; text between words is unchanged.
pub(super) fn title(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        match (letter.is_alphanumeric(), inside) {
            (true, false) => result.extend(letter.to_uppercase()),
            (true, true) => result.extend(letter.to_lowercase()),
            (false, _) => result.push(letter),
        }
        // An apostrophe belongs to its word: `don't` becomes `Don't`.
        inside = letter.is_alphanumeric() || (inside && matches!(letter, '\'' | '\u{2019}'));
    }
    result
}

/// The words in lower case with a joiner between them.
pub(super) fn joined(text: &str, joiner: &str) -> String {
    words(text).join(joiner)
}

/// A word ends at any character that is not a letter or digit, and before a capital within a word.
fn words(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, letter) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let hump = letter.is_uppercase()
            && (before.is_some_and(|letter| letter.is_lowercase() || letter.is_numeric())
                || (before.is_some_and(|letter| letter.is_uppercase())
                    && after.is_some_and(|letter| letter.is_lowercase())));
        if hump && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(letter.to_lowercase());
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_separators_and_capitals() {
        for (text, expected) in [
            ("HelloWorld", "hello world"),
            ("parseHTTPHeader v2Beta", "parse http header v2 beta"),
            ("  a--b__c ", "a b c"),
            ("Größe ÄndernÜber", "größe ändern über"),
            ("ABC", "abc"),
            ("", ""),
        ] {
            assert_eq!(joined(text, " "), expected, "{text}");
        }
    }

    #[test]
    fn title_case_keeps_spaces_and_apostrophes() {
        assert_eq!(title("don't  PANIC, école!"), "Don't  Panic, École!");
    }

    #[test]
    fn lorem_text_grows_by_whole_paragraphs() {
        let two = lorem(2);
        assert!(lorem(3).starts_with(&two));
        assert_eq!(lorem(200).split("\n\n").count(), 200);
        assert!(lorem(200).len() > 80_000);
    }
}
