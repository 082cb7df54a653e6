//! The words of a simple command after quote removal.

use std::collections::BTreeSet;

use crate::template::{Part, Template, is_variable_name, variable};

/// Names of variables of the config.
pub(super) type Names = BTreeSet<String>;

/// Names of files that are the standard input.
const INPUTS: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
/// Shell words that may precede a command.
pub(super) const RESERVED: [&str; 12] = [
    "!", "{", "}", "if", "then", "elif", "else", "while", "until", "do", "time", "coproc",
];
/// Maximum nesting of substitutions that is examined.
const MAX_NESTING: usize = 64;

/// One word.
#[derive(Debug)]
pub(crate) struct Word {
    /// Its start in the text.
    pub(super) start: usize,
    /// Its end.
    pub(super) end: usize,
    /// Its text without quotes.
    pub(super) template: Template,
    /// Whether the shell inserts text that is unknown here.
    pub(super) dynamic: bool,
    /// The variables in its substitutions, `$(…)`.
    pub(super) inner: Vec<String>,
}

/// One command, up to the operator that ends it.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Its words without redirections.
    pub(super) words: Vec<Word>,
    /// The starts of its words and redirections.
    pub(super) starts: Vec<usize>,
    /// The variables in its here-strings and in process substitutions, `<(…)`.
    pub(super) given: Names,
    /// Whether its standard input is redirected from a file.
    pub(super) reads_file: bool,
    /// Its end.
    pub(super) end: usize,
}

impl Word {
    /// A word that no shell reads.
    pub(crate) fn whole(template: &Template) -> Self {
        Self {
            start: 0,
            end: template.raw().len(),
            template: template.clone(),
            dynamic: false,
            inner: Vec::new(),
        }
    }

    pub(super) fn text(&self) -> &str {
        self.template.raw()
    }

    pub(super) fn has_variable(&self) -> bool {
        self.template.variables().next().is_some()
    }

    /// Whether it contains a value, directly or through a substitution.
    pub(super) fn carries(&self) -> bool {
        self.has_variable() || !self.inner.is_empty()
    }

    /// The variables whose values it contains.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let inner = self.inner.iter().map(String::as_str);
        self.template.variables().chain(inner)
    }

    /// Whether it is a file that is the standard input.
    pub(super) fn is_input(&self) -> bool {
        self.text() == "-" || INPUTS.contains(&self.text())
    }

    /// Whether it comes before a command: an assignment, or a word of the shell.
    pub(super) fn is_before_command(&self) -> bool {
        is_assignment(self.text()) || (self.is_plain() && RESERVED.contains(&self.text()))
    }

    /// Whether every byte of it is known.
    pub(super) fn is_plain(&self) -> bool {
        !self.dynamic && !self.has_variable()
    }
}

pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(name, _)| is_variable_name(name.trim_end_matches('+')))
}

/// Reads the command that begins at `at`.
pub(super) fn read_command(text: &str, at: usize) -> Command {
    let mut scanner = Scanner::new(text, at);
    let mut command = Command::default();
    loop {
        scanner.skip_blanks();
        let rest = scanner.rest();
        let Some(c) = rest.chars().next() else { break };
        match c {
            '\n' | ';' | '|' | '(' | ')' | '#' => break,
            '&' if !rest.starts_with("&>") => break,
            '<' | '>' | '&' => {
                command.starts.push(scanner.at);
                let here_string = rest.starts_with("<<<");
                let is_input = rest.starts_with("<(");
                let is_file = c == '<'
                    && !rest[1..].starts_with(['<', '>', '&', '('])
                    && !text[..scanner.at].ends_with(|c: char| c.is_ascii_digit());
                scanner.skip_while(|c| matches!(c, '<' | '>' | '&' | '|' | '-'));
                if scanner.rest().starts_with('(') {
                    let start = scanner.at;
                    scanner.skip_group(0);
                    if is_input {
                        command.given.extend(variables_in(&text[start..scanner.at]));
                    }
                    continue;
                }
                scanner.skip_blanks();
                command.starts.push(scanner.at);
                let target = scanner.word();
                command.reads_file |=
                    is_file && target.is_plain() && !target.text().is_empty() && !target.is_input();
                if here_string {
                    command.given.extend(target.names().map(str::to_owned));
                }
            }
            _ => {
                let word = scanner.word();
                command.starts.push(word.start);
                let is_descriptor = scanner.rest().starts_with(['<', '>'])
                    && word.text().bytes().all(|byte| byte.is_ascii_digit());
                if !is_descriptor {
                    command.words.push(word);
                }
            }
        }
    }
    command.end = scanner.at;
    command
}

/// Returns the variables of the round brackets that open at `at`.
pub(super) fn group(text: &str, at: usize) -> Names {
    let mut scanner = Scanner::new(text, at);
    scanner.skip_group(0);
    variables_in(&text[at..scanner.at]).into_iter().collect()
}

/// Returns the variables of the `[[ … ]]` that begins at `at`.
pub(super) fn condition(text: &str, at: usize) -> Names {
    let mut scanner = Scanner::new(text, at);
    let mut names = Names::new();
    while !scanner.rest().is_empty() {
        let word = scanner.word();
        names.extend(word.names().map(str::to_owned));
        if &text[word.start..word.end] == "]]" {
            break;
        }
        if word.start == word.end {
            scanner.next();
        }
    }
    names
}

/// Returns the names of all variables in a piece of a script.
fn variables_in(text: &str) -> Vec<String> {
    let found = text.match_indices("${");
    found
        .filter_map(|(at, _)| match variable(&text[at..]) {
            Some((Part::Variable { name, .. }, _)) => Some(name),
            _ => None,
        })
        .collect()
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    parts: Vec<Part>,
    dynamic: bool,
    inner: Vec<String>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, at: usize) -> Self {
        Self {
            text,
            at,
            parts: Vec::new(),
            dynamic: false,
            inner: Vec::new(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_while(&mut self, skipped: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(skipped).len();
    }

    fn skip_blanks(&mut self) {
        loop {
            self.skip_while(|c| matches!(c, ' ' | '\t'));
            if !self.rest().starts_with("\\\n") {
                return;
            }
            self.at += 2;
        }
    }

    fn push(&mut self, c: char) {
        // A `${` that the shell keeps as text would be parsed as a variable of the config.
        if c == '{' && matches!(self.parts.last(), Some(Part::Literal(text)) if text.ends_with('$'))
        {
            self.dynamic = true;
        }
        match self.parts.last_mut() {
            Some(Part::Literal(text)) => text.push(c),
            _ => self.parts.push(Part::Literal(c.to_string())),
        }
    }

    fn variable(&mut self) -> bool {
        let Some((part, length)) = variable(self.rest()) else {
            return false;
        };
        self.at += length;
        self.parts.push(part);
        true
    }

    /// Reads one word, up to an unquoted blank or operator.
    fn word(&mut self) -> Word {
        let start = self.at;
        while let Some(c) = self.rest().chars().next() {
            if self.variable() {
                continue;
            }
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') | None => {}
                        Some(escaped) => self.push(escaped),
                    }
                }
                '\'' => {
                    self.at += 1;
                    self.single();
                }
                '"' => {
                    self.at += 1;
                    self.double();
                }
                '$' | '`' => self.expansion(false),
                _ => {
                    self.at += c.len_utf8();
                    self.push(c);
                }
            }
        }
        Word {
            start,
            end: self.at,
            template: Template::from_parts(std::mem::take(&mut self.parts)),
            dynamic: std::mem::take(&mut self.dynamic),
            inner: std::mem::take(&mut self.inner),
        }
    }

    fn single(&mut self) {
        while !self.rest().is_empty() {
            if self.variable() {
                continue;
            }
            match self.next() {
                Some('\'') | None => return,
                Some(c) => self.push(c),
            }
        }
    }

    fn double(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            if self.variable() {
                continue;
            }
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') | None => {}
                        Some(escaped @ ('$' | '`' | '"' | '\\')) => self.push(escaped),
                        Some(other) => {
                            self.push('\\');
                            self.push(other);
                        }
                    }
                }
                '$' | '`' => self.expansion(true),
                _ => {
                    self.at += c.len_utf8();
                    self.push(c);
                }
            }
        }
    }

    /// Reads an expansion of the shell; a `$` that starts no expansion is a literal character.
    fn expansion(&mut self, in_quotes: bool) {
        let rest = self.rest();
        let next = rest.chars().nth(1);
        if rest.starts_with("$(") {
            self.at += 1;
            let start = self.at;
            self.skip_group(0);
            self.inner
                .append(&mut variables_in(&self.text[start..self.at]));
        } else if rest.starts_with('`') {
            self.at += 1;
            while let Some(c) = self.next() {
                match c {
                    '\\' => {
                        self.next();
                    }
                    '`' => break,
                    _ => {}
                }
            }
        } else {
            self.at += 1;
            let begins = next.is_some_and(|c| {
                c.is_ascii_alphanumeric()
                    || "_{@*#?$!-".contains(c)
                    || (!in_quotes && "'\"".contains(c))
            });
            if !begins {
                return self.push('$');
            }
        }
        self.dynamic = true;
    }

    /// Skips `(…)`, with its quotes and nested brackets.
    fn skip_group(&mut self, nesting: usize) {
        if nesting > MAX_NESTING {
            self.at = self.text.len();
        }
        let mut depth = 0usize;
        while let Some(c) = self.next() {
            match c {
                '(' => depth += 1,
                ')' if depth <= 1 => return,
                ')' => depth -= 1,
                '\\' => {
                    self.next();
                }
                '\'' => {
                    self.skip_while(|c| c != '\'');
                    self.next();
                }
                '"' => self.skip_quoted(nesting),
                _ => {}
            }
        }
    }

    fn skip_quoted(&mut self, nesting: usize) {
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => {
                    self.next();
                }
                '$' if self.rest().starts_with('(') => self.skip_group(nesting + 1),
                _ => {}
            }
        }
    }
}
