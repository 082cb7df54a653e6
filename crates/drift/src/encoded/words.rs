//! A text as words, so that phrases are found regardless of punctuation and styled letters.

use super::fold::folded;
use broker_model::text::is_invisible;

/// One word.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    /// Lower case, look-alikes as Latin, without apostrophes and invisible characters; `@url` for a web address
    /// and `@mail` for an email address.
    pub text: String,
    /// Byte offset.
    pub at: usize,
    pub to: usize,
    /// Whether a sentence or a paragraph ended before it.
    pub begins: bool,
}

/// In order.
pub fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut begins = true;
    let mut newlines = 0;
    let mut rest = text.char_indices().peekable();
    while let Some(&(at, c)) = rest.peek() {
        if !c.is_alphanumeric() {
            rest.next();
            newlines = if c == '\n' { newlines + 1 } else { newlines };
            // A point within a name does not end a sentence.
            let blank = rest.peek().is_none_or(|(_, c)| !c.is_alphanumeric());
            begins |= matches!(c, '.' | '!' | '?' | ';' | ':') && blank || newlines > 1;
            continue;
        }
        let mut word = Word {
            text: String::new(),
            at,
            to: at,
            begins,
        };
        while let Some(&(at, c)) = rest.peek() {
            if c.is_alphanumeric() {
                word.text.push(folded(c));
            } else if !matches!(c, '\'' | '’') && !is_invisible(c) {
                break;
            }
            word.to = at + c.len_utf8();
            rest.next();
        }
        if let Some((name, length)) = address(&text[word.at..], word.to - word.at) {
            name.clone_into(&mut word.text);
            word.to = word.at + length;
            while rest.next_if(|(at, _)| *at < word.to).is_some() {}
        }
        words.push(word);
        (begins, newlines) = (false, 0);
    }
    words
}

/// Maximum length of an email address before and after its `@`.
const MAX_ADDRESS_PART: usize = 64;

/// The length of a web address that begins with a word of this length, if there is one.
fn address(text: &str, first: usize) -> Option<(&'static str, usize)> {
    if text[first..].starts_with("://") {
        let scheme = ["http", "https", "ftp", "ws", "wss"];
        let ends =
            |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | ')' | ',');
        return scheme
            .contains(&text[..first].to_ascii_lowercase().as_str())
            .then_some(("@url", text.find(ends).unwrap_or(text.len())));
    }
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+');
    let run = |bytes: &[u8]| {
        bytes
            .iter()
            .take(MAX_ADDRESS_PART)
            .take_while(|b| plain(b))
            .count()
    };
    let bytes = text.as_bytes();
    let local = run(bytes);
    let domain = bytes.get(local..)?.strip_prefix(b"@")?;
    let length = run(domain);
    let is_mail =
        length > 2 && domain[0].is_ascii_alphanumeric() && domain[..length].contains(&b'.');
    is_mail.then_some(("@mail", local + 1 + length))
}

#[cfg(test)]
mod tests {
    use super::words;

    fn texts(text: &str) -> Vec<String> {
        words(text)
            .into_iter()
            .map(|word| {
                if word.begins {
                    format!("^{}", word.text)
                } else {
                    word.text
                }
            })
            .collect()
    }

    #[test]
    fn words_are_split_after_folding() {
        assert_eq!(texts("**Іgn\u{200b}ore** don't"), ["^ignore", "dont"]);
        assert_eq!(texts("get_file x.y"), ["^get", "file", "x", "y"]);
        assert_eq!(
            texts("One. Two\nthree\n\nfour"),
            ["^one", "^two", "three", "^four"]
        );
        assert_eq!(
            texts("to https://a.example/x?y=1, or me.x@b.example now"),
            ["^to", "@url", "or", "@mail", "now"]
        );
    }

    #[test]
    fn address_needs_a_dot_within_its_domain() {
        assert_eq!(texts("ask a@bcd now"), ["^ask", "a", "bcd", "now"]);
        assert_eq!(texts("ask a@b. now"), ["^ask", "a", "b", "^now"]);
        assert_eq!(texts("ask a@.bc now"), ["^ask", "a", "bc", "now"]);
        assert_eq!(texts("ask a@b.c now"), ["^ask", "@mail", "now"]);
    }
}
