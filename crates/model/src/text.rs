//! Makes text of others safe to show in terminals, in locks, and in one line.

/// `1 tool`, `2 tools`.
pub fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// Whether a character is invisible and changes the text that a reader sees: controls except newline and
/// tab, zero-width and bidirectional marks, tag characters, variation selectors, fillers.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// `text` with every control and invisible character written as `\u{…}`, so that it can be shown in
/// a terminal or a log. Newlines are kept; tabs become spaces.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push(' '),
            c if is_invisible(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// [`shown`] in one line of at most `max` characters, with `…` if it was cut.
pub fn shown_line(text: &str, max: usize) -> String {
    let flat = shown(text.trim()).replace('\n', " ");
    if flat.chars().count() <= max {
        return flat;
    }
    let mut cut: String = flat.chars().take(max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// JSON text with every control and invisible character as `\uXXXX`. They can only occur inside strings,
/// so the text still reads as the same value.
pub fn visible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if !is_invisible(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

/// A word as a shell argument, safe to show: quoted if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if word.chars().all(plain) && !word.is_empty() {
        word.to_owned()
    } else {
        format!("'{}'", shown_line(&word.replace('\'', "'\\''"), 400))
    }
}

/// Returns a text with every invisible character and every line end as an escape, and spaces for tabs.
pub fn one_line(text: &str) -> String {
    if !text
        .chars()
        .any(|c| is_invisible(c) || matches!(c, '\n' | '\t'))
    {
        return text.to_owned();
    }
    shown(text).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_escapes_invisible_characters() {
        assert_eq!(
            shown("a\u{1b}[31mb\u{202e}c\td\ne\u{e0041}"),
            "a\\u{1b}[31mb\\u{202e}c d\ne\\u{e0041}"
        );
        assert_eq!(shown_line(" one\ntwo three ", 8), "one two…");
        assert_eq!(shown_line("naïve", 5), "naïve");
    }

    #[test]
    fn shell_word_is_quoted_where_needed() {
        assert_eq!(shell_word("a/b-c.json"), "a/b-c.json");
        assert_eq!(
            shell_word("https://a@b:1/c%20+d=,"),
            "https://a@b:1/c%20+d=,"
        );
        assert_eq!(shell_word("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("a\u{202e}"), "'a\\u{202e}'");
    }
}
