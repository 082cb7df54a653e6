//! The variables that may reach the standard input of a command: through a pipe, or as the input of
//! the enclosing group, loop or substitution. In doubt a variable is included.

use super::words::{Command, Names, RESERVED, Word};

/// Words that open a compound command; all commands in it read its input.
const OPENERS: [&str; 7] = ["{", "if", "while", "until", "for", "case", "select"];
/// Words that close a compound command; its output is the output of all commands in it.
const CLOSERS: [&str; 4] = ["}", "fi", "done", "esac"];

/// The data flow of a script, as far as it was read. There is always one level.
#[derive(Debug)]
pub(super) struct Flow(Vec<Level>);

/// The script, or a part of it in round brackets.
#[derive(Debug, Default)]
struct Level {
    /// Variables in the pipeline so far.
    pipeline: Names,
    /// Variables in the whole level so far.
    all: Names,
    /// Variables that every command of the level may read.
    fed: Names,
    /// Variables that the last command may read.
    input: Names,
    /// Whether the next command reads the output of the last one.
    piped: bool,
    /// Whether a closing bracket may belong to a pattern.
    has_case: bool,
}

impl Flow {
    /// A script whose standard input may hold these variables.
    pub(super) fn new(fed: Names) -> Self {
        Self(vec![Level {
            fed,
            ..Level::default()
        }])
    }

    /// At `|`.
    pub(super) fn pipe(&mut self) {
        self.top().piped = true;
    }

    /// At `;`, `&`, `&&` or `||`.
    pub(super) fn end(&mut self) {
        let level = self.top();
        level.pipeline.clear();
        level.input.clear();
        level.piped = false;
    }

    /// At a newline: a pipeline continues after `|`.
    pub(super) fn newline(&mut self) {
        if !self.top().piped {
            self.end();
        }
    }

    /// At `(`. `reads_output`: whether it reads the output of the command before it, as `>(` does.
    pub(super) fn open(&mut self, reads_output: bool) {
        let level = self.top();
        let mut fed = level.fed.clone();
        if level.piped || reads_output {
            fed.extend(level.pipeline.iter().cloned());
        }
        fed.extend(level.input.iter().cloned());
        level.piped = false;
        self.0.push(Level {
            fed,
            ..Level::default()
        });
    }

    /// At `)`.
    pub(super) fn close(&mut self) {
        if self.0.len() < 2 {
            return;
        }
        let Some(inner) = self.0.pop() else { return };
        let level = self.top();
        level.pipeline.extend(inner.all.iter().cloned());
        level.all.extend(inner.all);
        if inner.has_case {
            level.fed.extend(inner.fed);
        }
    }

    /// Whether a bracket closes here that was not opened.
    pub(super) fn is_outermost(&self) -> bool {
        self.0.len() < 2
    }

    /// At a command with these words: the variables that may be in its standard input.
    pub(super) fn command(&mut self, words: &[Word], command: &Command) -> Names {
        let given = &command.given;
        let level = self.top();
        let mut input = level.fed.clone();
        if level.piped {
            input.extend(level.pipeline.iter().cloned());
        }
        level.piped = false;
        // Words such as `!` and `then` may precede the word that opens.
        let first = words.iter().take_while(|word| {
            let text = word.text();
            word.is_plain() && (RESERVED.contains(&text) || OPENERS.contains(&text))
        });
        for word in first {
            if OPENERS.contains(&word.text()) {
                level.fed.extend(input.iter().cloned());
            }
            level.has_case |= word.text() == "case";
        }
        let first = words.first().map(Word::text);
        if first.is_some_and(|word| CLOSERS.contains(&word)) {
            level.pipeline.extend(level.all.iter().cloned());
        }
        let names = words.iter().flat_map(Word::names).map(str::to_owned);
        let names: Names = names.chain(given.iter().cloned()).collect();
        level.pipeline.extend(names.iter().cloned());
        level.all.extend(names);
        input.extend(given.iter().cloned());
        level.input.clone_from(&input);
        // A substitution in its words has the input that the command would have without the file.
        if command.reads_file {
            given.clone()
        } else {
            input
        }
    }

    fn top(&mut self) -> &mut Level {
        if self.0.is_empty() {
            self.0.push(Level::default());
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}
