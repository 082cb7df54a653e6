//! Programs that run other programs or scripts: shells, and runners such as `env` and `xargs`.

use super::words::{Word, is_assignment};
use crate::template::Part;

/// Shells whose scripts are rewritten.
pub(super) const SHELLS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "hush",
];
/// Long options of shells that take a value.
const SHELL_VALUES: [&str; 3] = ["rcfile", "init-file", "emulate"];
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

/// The programs that run another one.
pub(super) const RUNNERS: [Runner; 14] = [
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
    pub(super) emptied: bool,
}

impl Runner {
    /// Returns the index of the program that it runs.
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
        let reads = reads || operand.is_none_or(Word::is_input);
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

/// Whether a text is short options.
pub(super) fn is_cluster(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

/// Returns the program that a word names, without its folder.
pub(super) fn program(word: &Word) -> &str {
    base(word.text())
}

/// Returns the last segment of a path.
pub(super) fn base(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or_default()
}
