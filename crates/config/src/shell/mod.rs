//! Rewrites `${NAME}` in a shell script to private variables of the child, quoted according to the
//! context, so that a value is one word and never syntax. A context that is not certain is refused. The
//! script argument of a known shell is rewritten in the same way.

use std::collections::{BTreeMap, BTreeSet};

use super::template::{Part, Template, variable};

mod computing;
mod flow;
mod foreign;
mod here;
mod programs;
mod script;
#[cfg(test)]
mod tests;
mod words;

use flow::Flow;
use programs::VariableUse;
use words::Names;
pub(super) use words::Word;

/// The place of a variable that a pipe or a here-string passes to a shell.
const AS_INPUT: &str = "in text that a shell reads as its script";
/// The place of a variable in a nested script that cannot be rewritten.
const WITHIN: &str = "in a script within a script, where its value could become syntax";

/// The prefix of the private variables.
const PRIVATE: &str = "MCP_BROKER_ARG_";

/// The reason why a script cannot be rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ShellError {
    /// The byte offset of an unclosed quote, backtick or `$(`.
    #[error("the quote or bracket at byte {0} is not closed")]
    Unclosed(usize),
    /// A variable whose value could become syntax.
    #[error("a shell command has `${{{name}}}` {place}")]
    Place {
        /// The name of the variable.
        name: String,
        /// Its place, as a message names it.
        place: &'static str,
    },
    /// A variable of a script with a name that the shell itself obeys.
    #[error("a shell command has `${{{0}}}`, and a shell obeys a variable of this name")]
    Obeyed(String),
}

/// A rewritten script.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    /// The script that the shell runs.
    pub(super) script: String,
    /// The value of each private variable.
    pub(super) variables: BTreeMap<String, Template>,
    /// The script that digests cover: with the variables of the config, and with scripts for other shells
    /// as written.
    pub(super) written: String,
    /// Interpreters of scripts that cannot be rewritten and that contain a variable.
    pub(super) foreign: BTreeSet<String>,
}

/// Rewrites a script.
pub(super) fn rewrite(text: &str) -> Result<Rewritten, Vec<ShellError>> {
    let mut plain = Rewriter::new(text, false, Private::default(), Names::new());
    plain.run();
    plain.finish()?;
    let mut written = plain.out;
    for (name, template) in plain.private.variables.iter().rev() {
        written = written.replace(&format!("${{{name}}}"), template.raw());
    }
    let mut whole = Rewriter::new(text, true, Private::default(), Names::new());
    whole.run();
    whole.finish()?;
    Ok(Rewritten {
        script: whole.out,
        variables: whole.private.variables,
        written,
        foreign: whole.foreign,
    })
}

/// The rewritten script among the words of a directly executed program, and its index. Without an index
/// only `foreign` counts.
pub(super) fn rewrite_words(words: &[Word]) -> Result<(Option<usize>, Rewritten), Vec<ShellError>> {
    let mut rewritten = Rewritten::default();
    match script::find(words, false) {
        // No variable is known to reach its standard input.
        VariableUse::Data | VariableUse::Input => Ok((None, rewritten)),
        VariableUse::Foreign(program) => {
            rewritten.foreign.insert(program);
            Ok((None, rewritten))
        }
        VariableUse::Refused { place, from } => Err(misplaced(&names(&words[from..]), place)),
        VariableUse::Script(at) => Ok((Some(at), rewrite(words[at].text())?)),
    }
}

/// The variables in these words.
fn names(words: &[Word]) -> Names {
    let names = words.iter().flat_map(Word::names);
    names.map(str::to_owned).collect()
}

/// An error for each of these variables.
fn misplaced(names: &Names, place: &'static str) -> Vec<ShellError> {
    let names = names.iter().cloned();
    names
        .map(|name| ShellError::Place { name, place })
        .collect()
}

/// The private variables of a script and of its nested scripts.
#[derive(Debug, Default)]
struct Private {
    variables: BTreeMap<String, Template>,
    /// The private name of each `${…}`.
    names: BTreeMap<String, String>,
}

/// The enclosing constructs, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Double,
    /// `$(`, with the number of open round brackets in it.
    Substitution(usize),
}

struct Rewriter<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// Whether scripts for other shells are rewritten as well.
    nested: bool,
    private: Private,
    /// The offsets of the words of commands that were already examined.
    words: BTreeSet<usize>,
    /// Words that are scripts for another shell, by offset, with the variables that may be in that shell's
    /// standard input.
    scripts: BTreeMap<usize, (Word, Names)>,
    flow: Flow,
    foreign: BTreeSet<String>,
    errors: Vec<ShellError>,
    open: Vec<(Inside, usize)>,
    /// Delimiters of here-documents whose bodies begin at the next newline.
    here: Vec<(String, bool)>,
    /// The end of the last escape, and whether a word may begin there.
    after_escape: Option<(usize, bool)>,
    /// Earlier syntax that shells read differently; quotes may not be what they seem.
    unsure: bool,
}

impl<'a> Rewriter<'a> {
    fn new(text: &'a str, nested: bool, private: Private, fed: Names) -> Self {
        Rewriter {
            text,
            at: 0,
            out: String::with_capacity(text.len() + 64),
            nested,
            private,
            words: BTreeSet::new(),
            scripts: BTreeMap::new(),
            flow: Flow::new(fed),
            foreign: BTreeSet::new(),
            errors: Vec::new(),
            open: Vec::new(),
            here: Vec::new(),
            after_escape: None,
            unsure: false,
        }
    }

    /// The errors that were found.
    fn finish(&mut self) -> Result<(), Vec<ShellError>> {
        if let Some((_, at)) = self.open.last() {
            self.errors.push(ShellError::Unclosed(*at));
        }
        if self.unsure {
            // The script may only look unclosed here, so this error is dropped: the shell will report a real one.
            self.errors
                .retain(|error| !matches!(error, ShellError::Unclosed(_)));
        }
        match std::mem::take(&mut self.errors) {
            errors if errors.is_empty() => Ok(()),
            errors => Err(errors),
        }
    }

    fn run(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            let double = matches!(self.open.last(), Some((Inside::Double, _)));
            if self.nested && !double {
                self.look_at_command(c);
                if let Some((script, fed)) = self.scripts.remove(&self.at) {
                    self.nested_script(&script, fed);
                    continue;
                }
            }
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
                    self.flow.newline();
                    self.here_bodies();
                }
                '(' | ')' => self.bracket(c),
                '|' | '&' | ';' => self.operator(c),
                'c' if self.is_case() => {
                    // The lone `)` of a pattern would close the substitution too early.
                    self.unsure = true;
                    self.copy(4);
                }
                _ => self.copy_char(),
            }
        }
    }

    /// Examines the words of a command at its first word.
    fn look_at_command(&mut self, c: char) {
        let is_end = matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '#');
        if is_end || self.words.contains(&self.at) || !self.at_word_start() {
            return;
        }
        let mut command = words::read_command(self.text, self.at);
        self.words.extend(std::mem::take(&mut command.starts));
        let mut words = std::mem::take(&mut command.words);
        let first = words.iter().find(|word| !word.is_before_command());
        if let Some(first) = first.filter(|word| word.text() == "[[") {
            let names = words::condition(self.text, first.start);
            self.errors.extend(misplaced(&names, computing::CONDITION));
        }
        if let Some((word, place)) = computing::assignment(&words) {
            let names = names(std::slice::from_ref(word));
            self.errors.extend(misplaced(&names, place));
        }
        let is_pattern = self.flow.is_outermost() && self.text[command.end..].starts_with(')');
        let fed = self.flow.command(&words, &command);
        let is_integer = computing::is_integer(&words);
        match script::find(&words, !fed.is_empty() && !is_pattern) {
            VariableUse::Data => {}
            VariableUse::Script(at) => {
                let script = words.swap_remove(at);
                self.scripts.insert(script.start, (script, fed));
            }
            VariableUse::Foreign(program) => {
                self.foreign.insert(program);
            }
            VariableUse::Refused { place, from } => {
                self.errors.extend(misplaced(&names(&words[from..]), place));
            }
            VariableUse::Input => self.errors.extend(misplaced(&fed, AS_INPUT)),
        }
        self.unsure |= is_integer;
    }

    /// Rewrites the script of another shell and writes it as one word. That shell has the private variables
    /// in its environment; the variables of `fed` may be in its standard input.
    fn nested_script(&mut self, word: &Word, fed: Names) {
        let private = std::mem::take(&mut self.private);
        let mut inner = Rewriter::new(word.text(), true, private, fed);
        inner.run();
        if let Err(errors) = inner.finish() {
            let (input, others): (Vec<_>, Vec<_>) =
                errors.into_iter().partition(|error| match error {
                    ShellError::Place { place, .. } => *place == AS_INPUT,
                    ShellError::Obeyed(_) => true,
                    ShellError::Unclosed(_) => false,
                });
            self.errors.extend(input);
            if !others.is_empty() {
                let names = names(std::slice::from_ref(word));
                self.errors.extend(misplaced(&names, WITHIN));
            }
        }
        self.out
            .push_str(&format!("'{}'", inner.out.replace('\'', r"'\''")));
        self.private = inner.private;
        self.foreign.append(&mut inner.foreign);
        self.at = word.end;
    }

    /// `|`, `&` or `;`, with the rest of the operator.
    fn operator(&mut self, c: char) {
        let redirects = self.text[..self.at].ends_with(['<', '>']);
        let next = self.rest()[1..].chars().next();
        let length = match (c, next) {
            ('|', _) | ('&', Some('>')) if redirects || c == '&' => 1,
            ('&', _) if redirects => 1,
            ('|', Some('|')) | ('&', Some('&')) => {
                self.flow.end();
                2
            }
            ('|', _) => {
                self.flow.pipe();
                // `|&` pipes standard error as well.
                1 + usize::from(next == Some('&'))
            }
            _ => {
                self.flow.end();
                1
            }
        };
        self.copy(length);
    }

    /// An escaped blank is part of a word; an escaped newline is removed.
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
            self.flow.open(false);
            return self.copy(2);
        }
        self.unsure |= self.rest().starts_with("$[");
        if !double && (self.rest().starts_with("$'") || self.rest().starts_with("$\"")) {
            self.unsure = true;
        }
        self.copy(1);
    }

    fn bracket(&mut self, c: char) {
        if c == '(' {
            if self.nested && self.rest().starts_with("((") {
                let names = words::group(self.text, self.at);
                self.errors.extend(misplaced(&names, computing::ARITHMETIC));
            }
            self.flow.open(self.text[..self.at].ends_with('>'));
        } else {
            self.flow.close();
        }
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

    /// Copies up to and including `close`; a variable in between is refused.
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
        if let Part::Variable { name, .. } = &part
            && computing::obeyed(name).is_some()
        {
            self.errors.push(ShellError::Obeyed(name.clone()));
        }
        self.at += length;
        let template = Template::from_parts(vec![part]);
        let written = template.raw().to_owned();
        let Private { variables, names } = &mut self.private;
        let next = names.len() + 1;
        let private = names
            .entry(written)
            .or_insert_with(|| format!("{PRIVATE}{next}"))
            .clone();
        variables.entry(private.clone()).or_insert(template);
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
        // A shell treats other blanks than these as letters.
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
