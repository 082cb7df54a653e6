//! Rewrites `${NAME}` in a shell script to private variables of the child, by where it stands, so
//! that a value is one word and never syntax. A place that cannot be told for certain is refused.

use std::collections::BTreeMap;

use super::command::variable;
use super::template::{Part, Template};

mod here;

/// What the private variables' names begin with.
const PRIVATE: &str = "MCP_BROKER_ARG_";

/// Why a script cannot be run with its variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ShellError {
    /// A quote, a backtick or a `$(` at this byte has no end.
    #[error("what is opened at byte {0} is not closed")]
    Unclosed(usize),
    /// A variable where its value could become syntax.
    #[error("`${{{name}}}` in a shell command stands {place}")]
    Place {
        /// The variable.
        name: String,
        /// Where.
        place: &'static str,
    },
}

/// The rewritten script, and what each private variable holds.
pub(super) fn rewrite(text: &str) -> Result<(String, BTreeMap<String, Template>), Vec<ShellError>> {
    let mut rewriter = Rewriter {
        text,
        at: 0,
        out: String::with_capacity(text.len() + 64),
        variables: BTreeMap::new(),
        private: BTreeMap::new(),
        errors: Vec::new(),
        open: Vec::new(),
        here: Vec::new(),
        after_escape: None,
        unsure: false,
    };
    rewriter.run();
    if let Some((_, at)) = rewriter.open.last() {
        rewriter.errors.push(ShellError::Unclosed(*at));
    }
    if rewriter.unsure {
        // What looks open may only look so; the shell will tell.
        let errors = &mut rewriter.errors;
        errors.retain(|error| matches!(error, ShellError::Place { .. }));
    }
    if rewriter.errors.is_empty() {
        Ok((rewriter.out, rewriter.variables))
    } else {
        Err(rewriter.errors)
    }
}

/// What the script is inside of, from the outermost in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Double,
    /// `$(`, with the round brackets that are open in it.
    Substitution(usize),
}

struct Rewriter<'a> {
    text: &'a str,
    at: usize,
    out: String,
    variables: BTreeMap<String, Template>,
    /// The private name of each `${…}` as written.
    private: BTreeMap<String, String>,
    errors: Vec<ShellError>,
    open: Vec<(Inside, usize)>,
    /// Delimiters of here-documents whose bodies begin at the next newline.
    here: Vec<(String, bool)>,
    /// Where the last escape ended, and whether a word may begin there.
    after_escape: Option<(usize, bool)>,
    /// Something went before that shells read differently; quotes may not be what they seem.
    unsure: bool,
}

impl Rewriter<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            let double = matches!(self.open.last(), Some((Inside::Double, _)));
            if variable(self.rest()).is_some() {
                let (before, after) = if double { ("", "") } else { ("\"", "\"") };
                self.put_variable(before, after);
                continue;
            }
            match c {
                '\\' => self.escape(),
                '`' => self.verbatim_to('`', "in backticks"),
                '$' => self.dollar(double),
                '"' if double => {
                    self.open.pop();
                    self.copy(1);
                }
                _ if double => self.copy_char(),
                '"' => {
                    self.open.push((Inside::Double, self.at));
                    self.copy(1);
                }
                '\'' => self.single_quoted(),
                '#' if self.at_word_start() => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.copy(end);
                }
                '<' if self.rest().starts_with("<<<") => self.copy(3),
                '<' if self.rest().starts_with("<<") => self.here_operator(),
                '\n' => {
                    self.copy(1);
                    self.here_bodies();
                }
                '(' | ')' => self.bracket(c),
                'c' if self.is_case() => {
                    // The lone `)` of a pattern would end the substitution too early.
                    self.unsure = true;
                    self.copy(4);
                }
                _ => self.copy_char(),
            }
        }
    }

    /// An escaped blank is part of a word. An escaped newline is nothing at all.
    fn escape(&mut self) {
        let word_start = self.rest().starts_with("\\\n") && self.at_word_start();
        self.copy(1);
        self.copy_char();
        self.after_escape = Some((self.at, word_start));
    }

    fn dollar(&mut self, double: bool) {
        if self.rest().starts_with("$(") {
            // Arithmetic, or a substitution that begins with a subshell: shells differ.
            self.unsure |= self.rest().starts_with("$((");
            self.open.push((Inside::Substitution(0), self.at));
            return self.copy(2);
        }
        if !double && (self.rest().starts_with("$'") || self.rest().starts_with("$\"")) {
            self.unsure = true;
        }
        self.copy(1);
    }

    fn bracket(&mut self, c: char) {
        if let Some((Inside::Substitution(depth), _)) = self.open.last_mut() {
            match (c, *depth) {
                ('(', _) => *depth += 1,
                (_, 0) => {
                    self.open.pop();
                }
                _ => *depth -= 1,
            }
        }
        self.copy(1);
    }

    fn single_quoted(&mut self) {
        let start = self.at;
        self.copy(1);
        while let Some(c) = self.rest().chars().next() {
            if variable(self.rest()).is_some() {
                self.put_variable("'\"", "\"'");
                continue;
            }
            self.copy_char();
            if c == '\'' {
                return;
            }
        }
        self.errors.push(ShellError::Unclosed(start));
    }

    /// Copies up to and including `close`; no variable may stand in between.
    fn verbatim_to(&mut self, close: char, place: &'static str) {
        let start = self.at;
        self.copy(1);
        while let Some(c) = self.rest().chars().next() {
            if let Some((part, length)) = variable(self.rest()) {
                self.misplaced(&part, place);
                self.copy(length);
                continue;
            }
            self.copy_char();
            if c == '\\' {
                self.copy_char();
            } else if c == close {
                return;
            }
        }
        self.errors.push(ShellError::Unclosed(start));
    }

    fn put_variable(&mut self, before: &str, after: &str) {
        let Some((part, length)) = variable(self.rest()) else {
            return;
        };
        if self.unsure {
            self.misplaced(&part, "after syntax that shells read differently");
        }
        self.at += length;
        let template = Template::from_parts(vec![part]);
        let written = template.raw().to_owned();
        let next = self.private.len() + 1;
        let private = self
            .private
            .entry(written)
            .or_insert_with(|| format!("{PRIVATE}{next}"))
            .clone();
        self.variables.entry(private.clone()).or_insert(template);
        self.out.push_str(&format!("{before}${{{private}}}{after}"));
    }

    fn misplaced(&mut self, part: &Part, place: &'static str) {
        if let Part::Variable { name, .. } = part {
            self.errors.push(ShellError::Place {
                name: name.clone(),
                place,
            });
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn copy(&mut self, length: usize) {
        let end = self.at + length;
        self.out.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    fn copy_char(&mut self) {
        if let Some(c) = self.rest().chars().next() {
            self.copy(c.len_utf8());
        }
    }

    fn at_word_start(&self) -> bool {
        if let Some((at, word_start)) = self.after_escape
            && at == self.at
        {
            return word_start;
        }
        // Other blanks than these are letters to a shell.
        self.text[..self.at]
            .chars()
            .next_back()
            .is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')'))
    }

    fn is_case(&self) -> bool {
        self.open
            .iter()
            .any(|(inside, _)| matches!(inside, Inside::Substitution(_)))
            && self.at_word_start()
            && self
                .rest()
                .strip_prefix("case")
                .is_some_and(|rest| rest.starts_with(char::is_whitespace))
    }
}
