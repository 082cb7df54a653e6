//! Reads a pattern of ECMA-262 and writes it in the syntax of the regular expressions of this program.
//!
//! A pattern is read as with the flag `u`, else as without it (Annex B of ECMA-262). Constructs that mean the same in
//! both syntaxes stay as they are, so most patterns keep their text. The result is also a valid pattern with the flag
//! `u`. Text is matched by code point in both readings.

mod class;

use self::class::{ClassParser, push_code_point};

/// Maximum nesting of groups.
const MAX_GROUPS_DEPTH: usize = 200;
/// The characters that `.` matches: all except line terminators.
const DOT: &str = r"[^\n\r\u{2028}\u{2029}]";
/// Characters with a meaning outside classes.
const SYNTAX: &str = r"^$\.*+?()[]{}|/";

/// A pattern in the syntax of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EcmaPattern {
    pub(super) text: String,
    /// Whether it is only valid without the flag `u`.
    pub(super) is_legacy: bool,
}

/// Reads a pattern; `None` if it is not valid with or without the flag `u`.
pub(super) fn read(pattern: &str) -> Option<EcmaPattern> {
    [false, true].into_iter().find_map(|is_legacy| {
        let text = Reader::new(pattern, is_legacy).read()?;
        Some(EcmaPattern { text, is_legacy })
    })
}

/// Whether a pattern is valid with the flag `u`.
pub(super) fn is_unicode_pattern(pattern: &str) -> bool {
    read(pattern).is_some_and(|read| !read.is_legacy)
}

struct Reader<'p> {
    pattern: &'p str,
    at: usize,
    is_legacy: bool,
    groups: usize,
    has_names: bool,
    out: String,
}

impl<'p> Reader<'p> {
    fn new(pattern: &'p str, is_legacy: bool) -> Self {
        let (groups, has_names) = count_groups(pattern);
        Self {
            pattern,
            at: 0,
            is_legacy,
            groups,
            has_names,
            out: String::with_capacity(pattern.len() + 16),
        }
    }

    fn read(mut self) -> Option<String> {
        self.alternatives(0, false)?;
        (self.at == self.pattern.len()).then_some(self.out)
    }

    fn rest(&self) -> &'p str {
        &self.pattern[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        let eaten = self.rest().starts_with(text);
        if eaten {
            self.at += text.len();
        }
        eaten
    }

    /// Reads up to the end of the pattern, or to the `)` of the group.
    fn alternatives(&mut self, depth: usize, dot_all: bool) -> Option<()> {
        if depth > MAX_GROUPS_DEPTH {
            return None;
        }
        while let Some(char) = self.peek() {
            match char {
                ')' => return (depth > 0).then_some(()),
                '|' | '^' | '$' => {
                    self.at += 1;
                    self.out.push(char);
                    if char != '|' {
                        self.no_quantifier()?;
                    }
                }
                '(' => {
                    if self.group(depth, dot_all)? {
                        self.quantifier()?;
                    } else {
                        self.no_quantifier()?;
                    }
                }
                '[' => {
                    let (text, end) = ClassParser::new(self.rest(), self.is_legacy).read()?;
                    self.at += end;
                    self.out.push_str(&text);
                    self.quantifier()?;
                }
                '.' => {
                    self.at += 1;
                    self.out.push_str(if dot_all { "." } else { DOT });
                    self.quantifier()?;
                }
                '\\' => {
                    self.at += 1;
                    if self.escape()? {
                        self.quantifier()?;
                    } else {
                        self.no_quantifier()?;
                    }
                }
                '*' | '+' | '?' => return None,
                '{' | '}' | ']' => {
                    if !self.is_legacy || self.counts().is_some() {
                        return None;
                    }
                    self.at += 1;
                    self.out.push('\\');
                    self.out.push(char);
                    self.quantifier()?;
                }
                _ => {
                    self.at += char.len_utf8();
                    self.out.push(char);
                    self.quantifier()?;
                }
            }
        }
        (depth == 0).then_some(())
    }

    /// Reads a group. Returns whether a quantifier may follow.
    fn group(&mut self, depth: usize, dot_all: bool) -> Option<bool> {
        let start = self.at;
        let (mut repeats, mut dot_all) = (true, dot_all);
        self.at += 1;
        if self.eat("?") {
            if ["=", "!"].into_iter().any(|kind| self.eat(kind)) {
                repeats = self.is_legacy;
            } else if ["<=", "<!"].into_iter().any(|kind| self.eat(kind)) {
                repeats = false;
            } else if self.eat("<") {
                let end = self.rest().find('>')?;
                is_name(&self.rest()[..end]).then_some(())?;
                self.at += end + 1;
            } else {
                let end = self.rest().find(':')?;
                let (on, off) = self.rest()[..end]
                    .split_once('-')
                    .unwrap_or((&self.rest()[..end], ""));
                let all = format!("{on}{off}");
                let known = all.chars().all(|flag| "ims".contains(flag));
                let twice = "ims".chars().any(|flag| all.matches(flag).count() > 1);
                if !known || twice || self.rest()[..end] == *"-" {
                    return None;
                }
                dot_all = (dot_all || on.contains('s')) && !off.contains('s');
                self.at += end + 1;
            }
        }
        self.out.push_str(&self.pattern[start..self.at]);
        self.alternatives(depth + 1, dot_all)?;
        self.eat(")").then_some(())?;
        self.out.push(')');
        Some(repeats)
    }

    /// Reads an escape after its backslash. Returns whether a quantifier may follow.
    fn escape(&mut self) -> Option<bool> {
        let char = self.peek()?;
        match char {
            'b' | 'B' => {
                self.at += 1;
                self.out.push('\\');
                self.out.push(char);
                return Some(false);
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.at += 1;
                self.out.push('\\');
                self.out.push(char);
            }
            'k' if self.has_names || !self.is_legacy => {
                self.at += 1;
                self.eat("<").then_some(())?;
                let end = self.rest().find('>')?;
                let name = &self.rest()[..end];
                let declared = format!("(?<{name}>");
                (is_name(name) && self.pattern.contains(&declared)).then_some(())?;
                self.at += end + 1;
                self.out.push_str(&format!("\\k<{name}>"));
            }
            '1'..='9' => {
                let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
                let number = self.rest()[..digits].parse::<usize>().ok();
                match number.filter(|number| *number <= self.groups) {
                    Some(number) => {
                        self.at += digits;
                        let is_apart = !self.rest().starts_with(|next: char| next.is_ascii_digit());
                        self.out.push_str(&match is_apart {
                            true => format!("\\{number}"),
                            false => format!("(?:\\{number})"),
                        });
                    }
                    None => self.code_point()?,
                }
            }
            'p' | 'P' if !self.is_legacy => {
                let (name, end) = class::property(self.rest())?;
                self.at += end;
                self.out.push_str(&name);
            }
            _ if SYNTAX.contains(char) => {
                self.at += 1;
                self.out.push('\\');
                self.out.push(char);
            }
            _ => self.code_point()?,
        }
        Some(true)
    }

    fn code_point(&mut self) -> Option<()> {
        let (code, end) = class::code_point_escape(self.rest(), self.is_legacy)?;
        push_code_point(&mut self.out, code)?;
        self.at += end;
        Some(())
    }

    /// The length of a `{n}`, `{n,}` or `{n,m}` here; `None` if there is none.
    fn counts(&self) -> Option<usize> {
        let body = self.rest().strip_prefix('{')?;
        let end = body.find('}')?;
        let (min, max) = body[..end].split_once(',').unwrap_or((&body[..end], "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (is_number(min) && (max.is_empty() || is_number(max))).then_some(end + 2)
    }

    fn quantifier(&mut self) -> Option<()> {
        let length = match self.peek() {
            Some('*' | '+' | '?') => 1,
            Some('{') => match self.counts() {
                Some(length) => length,
                None => return self.is_legacy.then_some(()),
            },
            _ => return Some(()),
        };
        self.out.push_str(&self.rest()[..length]);
        self.at += length;
        if self.eat("?") {
            self.out.push('?');
        }
        // A second quantifier has no atom. Here it would make the first one possessive.
        self.no_quantifier()
    }

    fn no_quantifier(&self) -> Option<()> {
        match self.peek() {
            Some('*' | '+' | '?') => None,
            Some('{') if self.counts().is_some() => None,
            _ => Some(()),
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next();
    first.is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|char| char.is_alphanumeric() || char == '_')
}

/// The number of capturing groups, and whether one has a name.
fn count_groups(pattern: &str) -> (usize, bool) {
    let (mut count, mut has_names, mut in_class, mut escaped) = (0, false, false, false);
    for (at, byte) in pattern.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b']' => in_class = false,
            _ if in_class => {}
            b'[' => in_class = true,
            b'(' => {
                let rest = &pattern[at + 1..];
                let is_named =
                    rest.starts_with("?<") && !rest.starts_with("?<=") && !rest.starts_with("?<!");
                has_names |= is_named;
                count += usize::from(is_named || !rest.starts_with('?'));
            }
            _ => {}
        }
    }
    (count, has_names)
}

#[cfg(all(test, feature = "validate"))]
mod tests;
