//! Finds the word of a command that is a script for another program: a known shell, also behind a
//! program that runs another one, or an interpreter whose scripts are not understood.

use super::foreign::foreign;
use super::words::Word;
use crate::template::{Part, is_variable_name};

/// Shells whose scripts are rewritten.
pub(super) const SHELLS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "hush",
];
/// Long options of shells that take a value.
const SHELL_VALUES: [&str; 3] = ["rcfile", "init-file", "emulate"];
/// Names of files that are the standard input.
const INPUTS: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
/// Shell words that may precede a command.
pub(super) const RESERVED: [&str; 12] = [
    "!", "{", "}", "if", "then", "elif", "else", "while", "until", "do", "time", "coproc",
];
/// Builtins that run their arguments as a script, as a message names them.
const EVALUATORS: [(&str, &str); 3] = [
    ("eval", "in `eval`"),
    ("trap", "in `trap`"),
    ("alias", "in `alias`"),
];
/// A program that runs the rest of its words as another program, in the same environment.
pub(super) struct Runner {
    pub(super) name: &'static str,
    /// Letters of options that take a value.
    values: &'static str,
    /// Long options that take their value as the next word.
    long: &'static [&'static str],
    /// Number of words before the program.
    operands: usize,
}

const RUNNERS: [Runner; 14] = [
    runner("env", "uCa", &["unset", "chdir", "argv0"], 0),
    runner("exec", "a", &[], 0),
    runner("nice", "n", &["adjustment"], 0),
    runner("timeout", "ks", &["kill-after", "signal"], 1),
    runner("nohup", "", &[], 0),
    runner("setsid", "", &[], 0),
    runner("command", "", &[], 0),
    runner("builtin", "", &[], 0),
    runner("time", "fo", &["format", "output"], 0),
    runner("stdbuf", "ioe", &["input", "output", "error"], 0),
    runner("ionice", "cnp", &["class", "classdata"], 0),
    runner(
        "xargs",
        "EIJLPRSadns",
        &[
            "arg-file",
            "delimiter",
            "max-args",
            "max-chars",
            "max-procs",
            "process-slot-var",
        ],
        0,
    ),
    runner("tini", "epvw", &[], 0),
    runner("dumb-init", "r", &["rewrite"], 0),
];
pub(super) const fn runner(
    name: &'static str,
    values: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Runner {
    Runner {
        name,
        values,
        long,
        operands,
    }
}

/// The use that a command makes of its variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum VariableUse {
    /// They are data, as far as is known.
    Data,
    /// The word at this index is a script for a shell with the same environment.
    Script(usize),
    /// A value would become code, and the place cannot be rewritten.
    Refused {
        /// The place, as a message names it.
        place: &'static str,
        /// The index of the first word that may hold such a variable.
        from: usize,
    },
    /// A value in its standard input would become code.
    Input,
    /// A program of this name runs a script that cannot be rewritten.
    Foreign(String),
}

/// The input of a command besides its words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    /// A variable may be in its standard input.
    pub(super) fed: bool,
    /// `xargs` makes words from it.
    pub(super) as_words: bool,
    /// `xargs` inserts it into words.
    pub(super) into_words: bool,
    /// An option clears the environment.
    emptied: bool,
}

/// Examines the words of one command. `fed`: whether a variable may be in its standard input.
pub(super) fn find(words: &[Word], fed: bool) -> VariableUse {
    if !fed && !words.iter().any(Word::carries) {
        return VariableUse::Data;
    }
    let is_before = |word: &&Word| {
        is_assignment(word.text()) || (word.is_plain() && RESERVED.contains(&word.text()))
    };
    let start = words.iter().take_while(is_before).count();
    let mut at = start;
    let mut given = Given {
        fed,
        ..Given::default()
    };
    while let Some(word) = words.get(at) {
        let (name, rest) = (program(word), at + 1);
        let evaluator = EVALUATORS.iter().find(|(evaluator, _)| *evaluator == name);
        if let Some((_, place)) = evaluator {
            let operands = words.get(rest..).unwrap_or_default();
            return if operands.iter().any(Word::carries) {
                VariableUse::Refused { place, from: rest }
            } else if fed && operands.iter().any(|word| word.dynamic) {
                VariableUse::Foreign(name.to_owned())
            } else {
                VariableUse::Data
            };
        }
        if matches!(name, "." | "source") {
            let reads = words.get(rest).is_none_or(is_input);
            return if fed && reads {
                VariableUse::Input
            } else {
                VariableUse::Data
            };
        }
        if SHELLS.contains(&name) {
            return match shell(words, rest, given) {
                VariableUse::Script(at) if given.emptied && words[at].carries() => {
                    VariableUse::Refused {
                        place: "in a script whose environment an option clears",
                        from: at,
                    }
                }
                found => found,
            };
        }
        if !word.is_plain() {
            return match unknown(words, at, given) {
                VariableUse::Data => foreign(words, start, at, given),
                found => found,
            };
        }
        if matches!(name, "find" | "gfind") {
            return of_find(words, rest, fed);
        }
        at = if matches!(name, "busybox" | "toybox") {
            rest
        } else if let Some(runner) = RUNNERS.iter().find(|runner| runner.name == name) {
            let next = runner.next(words, rest);
            // The argument of `-S` replaces the program.
            let options = &words[rest..words.len().min(next + 1)];
            if name == "env" && splits(options) {
                let place = "behind `env -S`";
                return VariableUse::Refused { place, from: rest };
            }
            let options = &words[rest..next.min(words.len())];
            given.emptied |= options.iter().any(|word| empties(name, word.text()));
            if name == "xargs" {
                given.as_words = true;
                given.into_words |= options.iter().any(|word| replaces(word.text()));
            }
            next
        } else {
            return foreign(words, start, at, given);
        };
    }
    VariableUse::Data
}

/// `find`, whose `-exec` runs another program.
fn of_find(words: &[Word], first: usize, fed: bool) -> VariableUse {
    let mut found = VariableUse::Data;
    let mut at = first;
    let mut names_carry = false;
    while let Some(word) = words.get(at) {
        at += 1;
        names_carry |= word.carries();
        if !matches!(word.text(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let rest = words.get(at..).unwrap_or_default();
        let is_end = |word: &Word| matches!(word.text(), ";" | "+");
        let command = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
        if let VariableUse::Script(script) = find(command, true)
            && names_carry
            && command[script].text().contains("{}")
        {
            let place = "in a name that `find` puts into a script";
            return VariableUse::Refused { place, from: first };
        }
        match find(command, fed) {
            VariableUse::Data => {}
            VariableUse::Script(script) if found == VariableUse::Data => {
                found = VariableUse::Script(at + script)
            }
            VariableUse::Script(script) => {
                let place = "in the second script of one `find`";
                let from = at + script;
                return VariableUse::Refused { place, from };
            }
            VariableUse::Refused { place, from } => {
                let from = at + from;
                return VariableUse::Refused { place, from };
            }
            VariableUse::Input => return VariableUse::Input,
            program @ VariableUse::Foreign(_) => {
                if found == VariableUse::Data {
                    found = program;
                }
            }
        }
        at += command.len();
    }
    found
}

/// A program that a variable of the shell or of the config names. Only `-c` shows that it gets a script.
fn unknown(words: &[Word], at: usize, given: Given) -> VariableUse {
    let word = &words[at];
    let found = shell(words, at + 1, given);
    if names_shell(word) {
        return match found {
            VariableUse::Script(script) if words[script].carries() => VariableUse::Refused {
                place: "in a script for an unknown shell",
                from: script,
            },
            VariableUse::Script(_) => VariableUse::Data,
            found => found,
        };
    }
    let name = if word.dynamic {
        format!("${}", word.text())
    } else {
        word.text().to_owned()
    };
    match found {
        VariableUse::Script(script) if words[script].carries() => VariableUse::Foreign(name),
        VariableUse::Refused { .. } => VariableUse::Foreign(name),
        _ => VariableUse::Data,
    }
}

/// Whether an unknown word is a common name of a shell: `$SHELL`, `${SHELL:-/bin/sh}`.
fn names_shell(word: &Word) -> bool {
    let is_name = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("shell") || SHELLS.contains(&name.as_str())
    };
    match word.template.parts().last() {
        Some(Part::Literal(text)) => word.dynamic && is_name(base(text)),
        Some(Part::Variable { name, default }) => {
            let default = default.as_deref().map(base);
            is_name(name) || default.is_some_and(|default| SHELLS.contains(&default))
        }
        None => false,
    }
}

impl Runner {
    /// The index of the program that it runs.
    pub(super) fn next(&self, words: &[Word], mut at: usize) -> usize {
        while let Some(word) = words.get(at) {
            let text = word.text();
            if text == "--" {
                at += 1;
                break;
            }
            let Some(letters) = text.strip_prefix('-') else {
                break;
            };
            let takes_next = match letters.strip_prefix('-') {
                Some(long) => self.long.contains(&long),
                None => letters
                    .find(|letter| self.values.contains(letter))
                    .is_some_and(|index| index + 1 == letters.len()),
            };
            at += 1 + usize::from(takes_next);
        }
        at += self.operands;
        let rest = words.get(at..).unwrap_or_default();
        let assignments = rest.iter().take_while(|word| is_assignment(word.text()));
        at + if self.name == "env" {
            assignments.count()
        } else {
            0
        }
    }
}

/// A shell's options, and the script behind `-c` or in its standard input.
pub(super) fn shell(words: &[Word], mut at: usize, given: Given) -> VariableUse {
    let first = at;
    let (mut has_script, mut reads) = (false, false);
    let carries = words
        .get(first..)
        .unwrap_or_default()
        .iter()
        .any(Word::carries);
    while let Some(word) = words.get(at) {
        let text = word.text();
        if matches!(text, "-" | "--") {
            at += 1;
            break;
        }
        let is_option = text.len() > 1 && text.starts_with(['-', '+']);
        let may_be_option = if is_option {
            !word.is_plain()
        } else {
            let rest = &words[at + 1..];
            !has_script && may_be_option(word) && rest.iter().any(has_letter_c)
        };
        if may_be_option && carries {
            let place = "in the options of a shell";
            return VariableUse::Refused { place, from: first };
        }
        if !is_option {
            break;
        }
        at += 1;
        if let Some(long) = text.strip_prefix("--") {
            at += usize::from(SHELL_VALUES.contains(&long));
        } else {
            has_script |= text.starts_with('-') && text.contains('c');
            reads |= text.starts_with('-') && text.contains('s');
            at += text.matches(['o', 'O']).count();
        }
    }
    let operand = words.get(at);
    if !has_script {
        let reads = reads || operand.is_none_or(is_input);
        return if given.fed && !given.as_words && reads {
            VariableUse::Input
        } else {
            VariableUse::Data
        };
    }
    match operand {
        None if given.fed && given.as_words => VariableUse::Input,
        Some(_) if given.fed && given.into_words => VariableUse::Input,
        Some(script) if script.carries() && script.dynamic => VariableUse::Refused {
            place: "in a script that the shell puts together",
            from: at,
        },
        Some(script) if script.carries() => VariableUse::Script(at),
        Some(script) if given.fed && script.dynamic => {
            VariableUse::Foreign(program(&words[first - 1]).to_owned())
        }
        Some(_) if given.fed => VariableUse::Script(at),
        _ => VariableUse::Data,
    }
}

/// Whether an unknown word may be an option: it is not a path.
fn may_be_option(word: &Word) -> bool {
    let is_path = |part: &Part| matches!(part, Part::Literal(text) if text.contains(['/', '.']));
    !word.is_plain() && !word.template.parts().iter().any(is_path)
}

fn has_letter_c(word: &Word) -> bool {
    is_cluster(word.text()) && word.text().contains('c')
}

/// Whether an operand is the standard input.
pub(super) fn is_input(word: &Word) -> bool {
    word.text() == "-" || INPUTS.contains(&word.text())
}

/// Whether `env` splits a word that has a variable or names a shell.
fn splits(words: &[Word]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let text = word.text();
        let split = if let Some(text) = text.strip_prefix("--split-string=") {
            Some((text, word))
        } else if text == "--split-string" || (is_cluster(text) && text.ends_with('S')) {
            words.get(at + 1).map(|next| (next.text(), next))
        } else if is_cluster(text) {
            text.split_once('S').map(|(_, text)| (text, word))
        } else {
            None
        };
        split.is_some_and(|(text, word)| {
            let names_shell = || {
                text.split_whitespace()
                    .any(|part| SHELLS.contains(&base(part.trim_matches(['\'', '"']))))
            };
            word.carries() || word.dynamic || names_shell()
        })
    })
}

fn is_cluster(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

/// Whether an option of `xargs` makes it insert its input into words.
fn replaces(option: &str) -> bool {
    option.starts_with("--replace") || (is_cluster(option) && option.contains(['I', 'J', 'i']))
}

/// Whether an option of `env` or `exec` clears the environment.
fn empties(runner: &str, option: &str) -> bool {
    match runner {
        "env" => {
            option == "-"
                || option == "--ignore-environment"
                || (is_cluster(option) && option.contains('i'))
        }
        "exec" => is_cluster(option) && option.contains('c'),
        _ => false,
    }
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(name, _)| is_variable_name(name.trim_end_matches('+')))
}

/// The program that a word names, without its folder.
pub(super) fn program(word: &Word) -> &str {
    base(word.text())
}

fn base(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or_default()
}
