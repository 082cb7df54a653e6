//! Classes (`[…]`) and escapes of single characters.

/// Reads one class.
pub(super) struct ClassParser<'p> {
    text: &'p str,
    at: usize,
    is_legacy: bool,
    /// Whether the class means the same in the syntax of this program, so that its text can stay.
    is_plain: bool,
    ranges: Vec<(u32, u32)>,
    properties: String,
}

/// An item of a class.
enum Item {
    Char(u32),
    /// `\d` or another set of characters.
    Set(Vec<(u32, u32)>),
    /// `\p{…}`. Its text is copied.
    Property(String),
}

const MAX_CODE_POINT: u32 = 0x10_FFFF;
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;
/// The bytes of two escapes, `\uXXXX\uXXXX`, without the first `\u`.
const PAIR_BYTES: usize = 10;
const DIGITS: [(u32, u32); 1] = [(0x30, 0x39)];
const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
const SPACE: [(u32, u32); 10] = [
    (0x9, 0xD),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];

impl<'p> ClassParser<'p> {
    /// A parser of the class at the start of `text`.
    pub(super) fn new(text: &'p str, is_legacy: bool) -> Self {
        Self {
            text,
            at: 0,
            is_legacy,
            is_plain: true,
            ranges: Vec::new(),
            properties: String::new(),
        }
    }

    /// The class in the syntax of this program, and its length in the pattern.
    pub(super) fn read(mut self) -> Option<(String, usize)> {
        self.at = 1;
        let is_negated = self.text[1..].starts_with('^');
        self.at += usize::from(is_negated);
        self.is_plain = !self.text[self.at..].starts_with(']');
        let first = self.at;
        loop {
            let is_first = self.at == first;
            let next = self.text[self.at..].chars().next()?;
            if next == ']' {
                self.at += 1;
                break;
            }
            let item = self.item()?;
            let mut after = self.text[self.at..].chars();
            let is_range = after.next() == Some('-') && !matches!(after.next(), None | Some(']'));
            // A hyphen is plain at the start and at the end.
            let is_end = self.text[self.at..].starts_with(']');
            self.is_plain &= next != '-' || is_first || is_end;
            if !is_range {
                self.add(item);
                continue;
            }
            self.at += 1;
            let to = self.item()?;
            match (item, to) {
                (Item::Char(from), Item::Char(to)) if from <= to => self.ranges.push((from, to)),
                (Item::Char(_), Item::Char(_)) => return None,
                // Without `u`, a hyphen beside a set is a character.
                (from, to) if self.is_legacy => {
                    self.is_plain = false;
                    self.add(from);
                    self.ranges.push((0x2D, 0x2D));
                    self.add(to);
                }
                _ => return None,
            }
        }
        // `--` is an operator here.
        if self.is_plain && !self.text[..self.at].contains("--") {
            return Some((self.text[..self.at].to_owned(), self.at));
        }
        let end = self.at;
        Some((self.written(is_negated)?, end))
    }

    fn add(&mut self, item: Item) {
        match item {
            Item::Char(code) => self.ranges.push((code, code)),
            Item::Set(set) => self.ranges.extend(set),
            Item::Property(text) => self.properties.push_str(&text),
        }
    }

    fn item(&mut self) -> Option<Item> {
        let rest = &self.text[self.at..];
        let char = rest.chars().next()?;
        if char != '\\' {
            self.is_plain &= !"[&~^".contains(char);
            self.at += char.len_utf8();
            return Some(Item::Char(char.into()));
        }
        self.at += 1;
        let rest = &rest[1..];
        let escaped = rest.chars().next()?;
        let set = match escaped {
            'd' => DIGITS.to_vec(),
            'D' => others(&DIGITS),
            'w' => WORD.to_vec(),
            'W' => others(&WORD),
            's' => SPACE.to_vec(),
            'S' => others(&SPACE),
            'p' | 'P' if !self.is_legacy => {
                let (text, end) = property(rest)?;
                self.at += end;
                return Some(Item::Property(text));
            }
            _ if r"^$\.*+?()[]{}|/-".contains(escaped) => {
                self.at += 1;
                return Some(Item::Char(escaped.into()));
            }
            'b' => {
                self.at += 1;
                self.is_plain = false;
                return Some(Item::Char(0x8));
            }
            _ => {
                let (code, end) = code_point_escape(rest, self.is_legacy)?;
                // A pair of halves, a half, and escapes of other letters are written in another form.
                let is_common = "tnvfrxu".contains(escaped) && end != 1 + PAIR_BYTES;
                let is_letter = end == 1 && !"tnvfr".contains(escaped);
                self.is_plain &= is_common && !is_letter && !SURROGATES.contains(&code);
                self.at += end;
                return Some(Item::Char(code));
            }
        };
        self.at += 1;
        Some(Item::Set(set))
    }

    fn written(mut self, is_negated: bool) -> Option<String> {
        self.ranges.sort_unstable();
        let mut out = String::from(if is_negated { "[^" } else { "[" });
        if self.ranges.is_empty() && self.properties.is_empty() {
            // No character, or with `^` any character.
            let none = if is_negated { "[" } else { "[^" };
            return Some(format!("{none}\\u{{0}}-\\u{{10ffff}}]"));
        }
        for (from, to) in self.ranges {
            // A text has no half of a pair.
            let (from, to) = match (SURROGATES.contains(&from), SURROGATES.contains(&to)) {
                (true, true) => return None,
                (true, false) => (SURROGATES.end() + 1, to),
                (false, true) => (from, SURROGATES.start() - 1),
                (false, false) => (from, to),
            };
            push_code_point(&mut out, from)?;
            if from < to {
                out.push('-');
                push_code_point(&mut out, to)?;
            }
        }
        out.push_str(&self.properties);
        out.push(']');
        Some(out)
    }
}

/// The code points that are not in a sorted set.
fn others(set: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = Vec::with_capacity(set.len() + 1);
    let mut next = 0;
    for (from, to) in set {
        if next < *from {
            out.push((next, from - 1));
        }
        next = to + 1;
    }
    out.push((next, MAX_CODE_POINT));
    out
}

/// Writes a character as a literal. Returns `None` for half of a surrogate pair: a text in UTF-8 cannot have it.
pub(super) fn push_code_point(out: &mut String, code: u32) -> Option<()> {
    match char::from_u32(code)? {
        char if char.is_ascii_alphanumeric() => out.push(char),
        char => out.push_str(&format!("\\u{{{:x}}}", u32::from(char))),
    }
    Some(())
}

/// The text of a `\p{…}` at the start of `rest`, which begins after the backslash, and its length.
pub(super) fn property(rest: &str) -> Option<(String, usize)> {
    let body = rest.get(1..)?.strip_prefix('{')?;
    let end = body.find('}')?;
    let is_known = |char: char| char.is_ascii_alphanumeric() || "_=".contains(char);
    (end > 0 && body[..end].chars().all(is_known)).then_some(())?;
    Some((format!("\\{}", rest.get(..end + 3)?), end + 3))
}

/// The character of an escape that begins after its backslash, and the length.
pub(super) fn code_point_escape(rest: &str, is_legacy: bool) -> Option<(u32, usize)> {
    let mut chars = rest.chars();
    let kind = chars.next()?;
    let hex = |from: usize, count: usize| {
        let digits = rest.get(from..from + count)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let identity = (u32::from(kind), kind.len_utf8());
    let read = match kind {
        't' => Some((0x9, 1)),
        'n' => Some((0xA, 1)),
        'v' => Some((0xB, 1)),
        'f' => Some((0xC, 1)),
        'r' => Some((0xD, 1)),
        'c' => {
            let letter = chars.next().filter(char::is_ascii_alphabetic);
            match letter {
                Some(letter) => Some((u32::from(letter) % 32, 2)),
                // A backslash and a `c`, which one code point cannot stand for.
                None => return None,
            }
        }
        'x' => hex(1, 2).map(|code| (code, 3)),
        'u' => unicode_escape(rest, is_legacy),
        '0'..='7' => octal(rest, is_legacy),
        _ if is_legacy => Some(identity),
        // With `u` the letters and the rest have no meaning; the caller has taken the syntax characters.
        _ => None,
    };
    read.or(is_legacy.then_some(identity))
}

fn unicode_escape(rest: &str, is_legacy: bool) -> Option<(u32, usize)> {
    let four = |from: usize| {
        let digits = rest.get(from..from + 4)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
    };
    if let Some(body) = rest.strip_prefix("u{").filter(|_| !is_legacy) {
        let end = body.find('}')?;
        let is_hex = body[..end].bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = is_hex.then(|| u32::from_str_radix(&body[..end], 16).ok())??;
        return (code <= MAX_CODE_POINT).then_some((code, end + 3));
    }
    let first = four(1)?;
    if (0xD800..0xDC00).contains(&first)
        && rest.get(5..7) == Some("\\u")
        && let Some(second) = four(7).filter(|code| (0xDC00..0xE000).contains(code))
    {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return Some((code, 11));
    }
    Some((first, 5))
}

fn octal(rest: &str, is_legacy: bool) -> Option<(u32, usize)> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    if !is_legacy {
        let alone = rest.starts_with('0') && !rest.as_bytes().get(1).is_some_and(is_digit);
        return alone.then_some((0, 1));
    }
    let longest = if rest.as_bytes()[0] <= b'3' { 3 } else { 2 };
    let digits = rest.bytes().take(longest);
    let count = digits
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .count();
    let code = u32::from_str_radix(&rest[..count], 8).ok()?;
    Some((code, count))
}
