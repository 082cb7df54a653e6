//! Words of a text, in the common form of documents and queries.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

use crate::stop_words::is_stop_word;

/// The maximum length of a word, in characters; the rest of a longer one is left out.
const MAX_WORD_CHARS: usize = 64;
/// The maximum number of parts whose joined form is a word as well: names have few, encoded data has many.
const MAX_JOINED_PARTS: usize = 8;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// In lower case, without accents.
    pub(crate) word: String,
    /// The stem of the word. Searches find the word by it.
    pub(crate) term: String,
    pub(crate) is_stop_word: bool,
}

/// The script of a character, as far as words end where it changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Letters,
    Digits,
    /// Chinese, Japanese and Korean. They are written without spaces.
    Cjk,
}

/// Returns the words of a text in their order: the parts of names such as `getUser`, `get_user` and `get-user`, and
/// each such name as one word. Pairs of characters where a text is written without spaces.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let stemmer = Stemmer::create(Algorithm::English);
    let folded = fold(text);
    for name in folded.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '\'' | '’'))
    {
        push_name(name, &stemmer, &mut tokens);
    }
    tokens
}

/// Returns a text without accents, in the form with equal code points for equal characters.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(crate::wordpiece::without_accents(text)),
    }
}

fn push_name(name: &str, stemmer: &Stemmer, tokens: &mut Vec<Token>) {
    // `don't` and `user's` are words with a meaningless ending.
    let name = name.split(['\'', '’']).next().unwrap_or_default();
    let mut parts: Vec<(String, Script)> = Vec::new();
    for piece in name.split(['_', '-']) {
        push_parts(piece, &mut parts);
    }
    let joins = (2..=MAX_JOINED_PARTS).contains(&parts.len())
        && parts.iter().all(|(_, script)| *script != Script::Cjk);
    if joins {
        let joined: String = parts.iter().map(|(part, _)| part.as_str()).collect();
        tokens.push(token(&joined, stemmer));
    }
    for (part, script) in parts {
        match script {
            Script::Cjk => push_pairs(&part, stemmer, tokens),
            _ => tokens.push(token(&part, stemmer)),
        }
    }
}

/// Appends the runs of one script and case in a name.
fn push_parts(piece: &str, parts: &mut Vec<(String, Script)>) {
    let chars: Vec<char> = piece.chars().collect();
    let mut begin = 0;
    for at in 1..=chars.len() {
        let ends = at == chars.len() || is_boundary(&chars, at);
        if ends && at > begin {
            let part = chars[begin..at].iter().flat_map(|c| c.to_lowercase());
            parts.push((part.collect(), script(chars[begin])));
            begin = at;
        }
    }
}

/// Whether a word ends before the character at `at`: `getUser`, `HTTPServer`, `k8s` (kept), `文件read`.
fn is_boundary(chars: &[char], at: usize) -> bool {
    let (before, here) = (chars[at - 1], chars[at]);
    let scripts = (script(before), script(here));
    if scripts.0 == Script::Cjk || scripts.1 == Script::Cjk {
        return scripts.0 != scripts.1;
    }
    if before.is_lowercase() && here.is_uppercase() {
        return true;
    }
    let next_is_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
    before.is_uppercase() && here.is_uppercase() && next_is_lower
}

fn script(c: char) -> Script {
    match c {
        _ if c.is_numeric() => Script::Digits,
        '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' => Script::Cjk,
        '\u{20000}'..='\u{3FFFF}' => Script::Cjk,
        _ => Script::Letters,
    }
}

fn push_pairs(run: &str, stemmer: &Stemmer, tokens: &mut Vec<Token>) {
    let chars: Vec<char> = run.chars().collect();
    if chars.len() == 1 {
        tokens.push(token(run, stemmer));
    }
    for pair in chars.windows(2) {
        tokens.push(token(&pair.iter().collect::<String>(), stemmer));
    }
}

fn token(word: &str, stemmer: &Stemmer) -> Token {
    let word: String = word.chars().take(MAX_WORD_CHARS).collect();
    Token {
        term: stemmer.stem(&word).into_owned(),
        is_stop_word: is_stop_word(&word),
        word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(text).into_iter().map(|token| token.word).collect()
    }

    #[test]
    fn names_are_split_and_kept_as_one_word() {
        assert_eq!(words("getUser"), ["getuser", "get", "user"]);
        assert_eq!(words("get_user-id"), ["getuserid", "get", "user", "id"]);
        assert_eq!(words("HTTPServer"), ["httpserver", "http", "server"]);
        assert_eq!(words("who_am_i"), ["whoami", "who", "am", "i"]);
        assert_eq!(words("k8s the user's"), ["k8s", "the", "user"]);
    }

    #[test]
    fn texts_without_spaces_become_pairs_of_characters() {
        assert_eq!(words("読取り"), ["読取", "取り"]);
        assert_eq!(words("文件read"), ["文件", "read"]);
        assert_eq!(words("文"), ["文"]);
    }

    #[test]
    fn accents_and_case_do_not_matter_and_terms_are_stems() {
        assert_eq!(words("Café"), ["cafe"]);
        let terms: Vec<_> = tokens("created creating")
            .into_iter()
            .map(|it| it.term)
            .collect();
        assert_eq!(terms, ["creat", "creat"]);
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(words(&"a".repeat(400)), ["a".repeat(MAX_WORD_CHARS)]);
    }
}
