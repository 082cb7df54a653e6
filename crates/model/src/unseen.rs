//! Finds characters that a reader does not see and that neither an emoji nor a script needs. The lint and
//! the drift classifier use this list.

use crate::text::is_invisible;

/// The effect of an unseen character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unseen {
    /// Has no width: hides text, or makes it differ from its look.
    Hidden,
    /// Changes the display order of the surrounding text.
    Bidirectional,
    /// A copy of an ASCII character that is not drawn.
    Tag,
    /// Controls a terminal.
    Control,
}

/// One unseen character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnseenCharacter {
    /// Its byte offset.
    pub at: usize,
    /// The character.
    pub c: char,
    /// Its effect.
    pub kind: Unseen,
}

/// The flags that consist of tag characters: England, Scotland and Wales.
const TAG_FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

/// Every unseen character, in order, except line ends and those that emoji and scripts need.
pub fn unseen_characters(text: &str) -> Vec<UnseenCharacter> {
    // Nearly every text is ASCII.
    if text
        .bytes()
        .all(|b| matches!(b, b'\t' | b'\n' | b' '..=b'~'))
    {
        return Vec::new();
    }
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(&(at, c)) = chars.get(index) {
        if let Some(length) = flag(&chars[index..]) {
            index += length;
            continue;
        }
        if is_invisible(c) && !is_needed(&chars, index) {
            found.push(UnseenCharacter {
                at,
                c,
                kind: kind(c),
            });
        }
        index += 1;
    }
    found
}

/// The text that tag characters and selectors encode, if any; hidden messages are written this way.
pub fn spelled(spots: &[UnseenCharacter]) -> Option<String> {
    let bytes: Vec<u8> = spots
        .iter()
        .filter_map(|spot| match spot.c {
            c @ '\u{e0020}'..='\u{e007e}' => Some((u32::from(c) - 0xe_0000) as u8),
            c @ '\u{fe00}'..='\u{fe0f}' => Some((u32::from(c) - 0xfe00) as u8),
            c @ '\u{e0100}'..='\u{e01ef}' => Some((u32::from(c) - 0xe_0100 + 16) as u8),
            _ => None,
        })
        .collect();
    let text = String::from_utf8(bytes).ok()?;
    let readable = text.chars().all(|c| !c.is_control()) && text.trim().len() >= 2;
    readable.then_some(text)
}

fn kind(c: char) -> Unseen {
    match c {
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Unseen::Bidirectional
        }
        '\u{e0000}'..='\u{e007f}' => Unseen::Tag,
        c if c.is_control() => Unseen::Control,
        _ => Unseen::Hidden,
    }
}

/// The number of characters of a flag of tag characters that begins here.
fn flag(rest: &[(usize, char)]) -> Option<usize> {
    if rest.first()?.1 != '\u{1f3f4}' {
        return None;
    }
    TAG_FLAGS.iter().find_map(|name| {
        let tags = name
            .bytes()
            .map(|b| char::from_u32(0xe_0000 + u32::from(b)).unwrap_or_default())
            .chain(['\u{e007f}']);
        let here = rest[1..].iter().map(|(_, c)| *c).take(name.len() + 1);
        tags.eq(here).then_some(name.len() + 2)
    })
}

/// Whether the text would look different, or be misspelled, without this character.
fn is_needed(chars: &[(usize, char)], index: usize) -> bool {
    let at = |index: Option<usize>| index.and_then(|index| chars.get(index)).map(|(_, c)| *c);
    let before = at(index.checked_sub(1)).unwrap_or(' ');
    let after = at(index.checked_add(1)).unwrap_or(' ');
    let either = |holds: fn(char) -> bool| holds(before) || holds(after);
    match chars[index].1 {
        '\r' => after == '\n' || index + 1 == chars.len(),
        '\u{fe0e}' | '\u{fe0f}' => is_pictographic(before) || is_keycap(before),
        // A selector of a variant of one ideograph or symbol.
        '\u{fe00}'..='\u{fe0d}' => is_ideograph(before) || is_symbol(before),
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        '\u{180b}'..='\u{180f}' => is_mongolian(before),
        '\u{200d}' if is_pictographic(after) => {
            let base = if matches!(before, '\u{fe0e}' | '\u{fe0f}') {
                at(index.checked_sub(2)).unwrap_or(' ')
            } else {
                before
            };
            is_pictographic(base)
        }
        // Between visible characters, or at an edge of the word.
        '\u{200c}' | '\u{200d}' => either(joins) && !is_invisible(before) && !is_invisible(after),
        '\u{200b}' => is_unspaced(before) && is_unspaced(after),
        '\u{61c}' | '\u{200e}' | '\u{200f}' => is_near_right_to_left(chars, index),
        _ => false,
    }
}

fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

fn is_symbol(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{2070}'..='\u{2bff}' | '\u{3000}'..='\u{303f}')
}

/// Emoji, and symbols that a selector turns into one.
fn is_pictographic(c: char) -> bool {
    matches!(
        c,
        '\u{a9}' | '\u{ae}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    ) || is_symbol(c)
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1800}'..='\u{180a}' | '\u{1820}'..='\u{18af}')
}

/// Whether the character is from a script where a joiner changes the form of letters.
fn joins(c: char) -> bool {
    let arabic = matches!(c, '\u{600}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    let indic = matches!(c, '\u{900}'..='\u{dff}' | '\u{f00}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17ff}');
    arabic || indic || is_mongolian(c)
}

/// Scripts without spaces between words, where a zero-width space allows a line break.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17ff}')
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Whether a right-to-left letter is near: then a mark only corrects punctuation.
fn is_near_right_to_left(chars: &[(usize, char)], index: usize) -> bool {
    const REACH: usize = 12;
    let from = index.saturating_sub(REACH);
    let to = chars.len().min(index + REACH);
    let crowd = chars[from..to]
        .iter()
        .filter(|(_, c)| is_invisible(*c))
        .count();
    crowd <= 3 && chars[from..to].iter().any(|(_, c)| is_right_to_left(*c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Unseen> {
        unseen_characters(text)
            .iter()
            .map(|spot| spot.kind)
            .collect()
    }

    #[test]
    fn invisible_characters_of_scripts_and_emoji_are_accepted() {
        for text in [
            "plain, with a tab\t and a line\r\nend\r\n",
            "⚠️ 1️⃣ #️⃣ ©️ ™️ ▶️ ☎︎ ⏱️",
            "👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 ❤️‍🔥 👩🏽‍🚀 🇩🇪",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} England",
            "می‌خواهم و API‌ها",
            "क्‍ष र्‍य ക്‍ श्री‌मान्",
            "ශ්‍රී ලංකාව",
            "ยินดี\u{200b}ต้อนรับ",
            "שלום (world)\u{200f}, עולם",
            "مرحبا\u{200f}! العربية",
            "葛\u{e0100}城市",
            "ᠮᠣᠩᠭᠣᠯ\u{180b}",
            "naïve Привет 日本語 ½ “quoted” — dash… \u{a0}",
        ] {
            assert_eq!(kinds(text), [], "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_without_a_need_are_found() {
        use Unseen::{Bidirectional, Control, Hidden, Tag};
        for (text, expected) in [
            ("zero\u{200b}width", vec![Hidden]),
            ("join\u{200d}er", vec![Hidden]),
            ("\u{feff}start", vec![Hidden]),
            ("soft\u{ad}hyphen", vec![Hidden]),
            ("word\u{2060}joiner\u{2063}", vec![Hidden, Hidden]),
            ("a\u{fe0f}b", vec![Hidden]),
            // Of a row of selectors behind one emoji only the first is one's own.
            ("😀\u{fe0f}\u{fe01}\u{e0148}\u{e0155}", vec![Hidden; 3]),
            ("👩\u{200d} 💻", vec![Hidden]),
            ("a\u{200d}💻", vec![Hidden]),
            ("می\u{200c}\u{200c}خواهم", vec![Hidden, Hidden]),
            ("latin\u{200f}only", vec![Bidirectional]),
            ("user\u{202e}gnp.exe", vec![Bidirectional]),
            ("שלום\u{202e}abc\u{202c}", vec![Bidirectional; 2]),
            ("a\u{2066}b\u{2069}", vec![Bidirectional; 2]),
            ("x\u{e0041}\u{e0042}", vec![Tag, Tag]),
            ("🏴\u{e0041}\u{e007f}", vec![Tag, Tag]),
            ("\u{1b}[31mred", vec![Control]),
            ("a\rb", vec![Control]),
            ("bell\u{7}\u{9b}", vec![Control, Control]),
        ] {
            assert_eq!(kinds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn invisible_letters_are_decoded() {
        let hidden: String = "ignore"
            .bytes()
            .filter_map(|b| char::from_u32(0xe_0000 + u32::from(b)))
            .collect();
        assert_eq!(
            spelled(&unseen_characters(&format!("add{hidden}"))).as_deref(),
            Some("ignore")
        );
        let selectors: String = "hello"
            .bytes()
            .filter_map(|b| char::from_u32(0xe_0100 + u32::from(b) - 16))
            .collect();
        assert_eq!(
            spelled(&unseen_characters(&format!("😀{selectors}"))).as_deref(),
            Some("hello")
        );
        assert_eq!(spelled(&unseen_characters("a\u{200b}")), None);
    }
}
