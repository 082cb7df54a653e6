//! Finds the word of a command that is a script for another program: a known shell, also behind a
//! program that runs another one, or an interpreter whose scripts are not understood.

use super::words::Word;
use crate::config::template::is_variable_name;

/// Shells whose scripts are rewritten.
const SHELLS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "hush",
];
/// Long options of shells that take a word.
const SHELL_VALUES: [&str; 3] = ["rcfile", "init-file", "emulate"];
/// Words of the shell that may stand before a command.
const RESERVED: [&str; 12] = [
    "!", "{", "}", "if", "then", "elif", "else", "while", "until", "do", "time", "coproc",
];
/// Builtins that run their arguments as a script, as a message names them.
const EVALUATORS: [(&str, &str); 3] = [
    ("eval", "in `eval`"),
    ("trap", "in `trap`"),
    ("alias", "in `alias`"),
];
/// Interpreters, with the letters of the options whose word is a script, and the options' long names.
const INTERPRETERS: [(&str, &str, &[&str]); 19] = [
    ("python", "c", &[]),
    ("pypy", "c", &[]),
    ("node", "ep", &["eval", "print"]),
    ("nodejs", "ep", &["eval", "print"]),
    ("bun", "ep", &["eval", "print"]),
    ("deno", "", &[]),
    ("perl", "eE", &[]),
    ("ruby", "e", &[]),
    ("php", "r", &["run"]),
    ("lua", "e", &[]),
    ("Rscript", "e", &[]),
    ("osascript", "e", &[]),
    ("fish", "c", &["command"]),
    ("csh", "c", &[]),
    ("tcsh", "c", &[]),
    ("pwsh", "c", &[]),
    ("su", "c", &["command"]),
    ("npx", "c", &["call"]),
    ("npm", "c", &["call"]),
];

/// A program that runs the rest of its words as another program, in the same environment.
struct Runner {
    name: &'static str,
    /// Letters of options that take a word.
    values: &'static str,
    /// Long options that take a word of their own.
    long: &'static [&'static str],
    /// Words before the program.
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
        "EILPadns",
        &["max-args", "max-procs", "replace"],
        0,
    ),
    runner("tini", "epvw", &[], 0),
    runner("dumb-init", "r", &["rewrite"], 0),
];
const SSH: Runner = runner("ssh", "BbcDEeFIiJLlmOopQRSWw", &[], 1);

const fn runner(
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

/// The way in which a command uses its variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// They are data to it, as far as is known.
    Data,
    /// The word at this index is a script for a shell that has the same environment.
    Script(usize),
    /// A value would become code, and the place, as a message names it, cannot be rewritten.
    Refused(&'static str),
    /// A program of this name runs a script that is not understood.
    Foreign(String),
}

/// Looks at the words of one command. `here_string`: whether a variable is its standard input.
pub(super) fn find(words: &[Word], here_string: bool) -> Found {
    if !here_string && !words.iter().any(Word::has_variable) {
        return Found::Data;
    }
    let is_before = |word: &&Word| {
        is_assignment(word.text()) || (word.is_plain() && RESERVED.contains(&word.text()))
    };
    let mut at = words.iter().take_while(is_before).count();
    let mut emptied = false;
    while let Some(word) = words.get(at) {
        let (name, rest) = (program(word), at + 1);
        let evaluator = EVALUATORS.iter().find(|(evaluator, _)| *evaluator == name);
        if let Some((_, place)) = evaluator {
            let runs = words[rest..].iter().any(Word::has_variable);
            return if runs {
                Found::Refused(place)
            } else {
                Found::Data
            };
        }
        if SHELLS.contains(&name) {
            return match shell(words, rest, here_string) {
                Found::Script(_) if emptied => {
                    Found::Refused("in a script whose environment an option empties")
                }
                found => found,
            };
        }
        at = if matches!(name, "busybox" | "toybox") {
            rest
        } else if let Some(runner) = RUNNERS.iter().find(|runner| runner.name == name) {
            let next = runner.next(words, rest);
            // The argument of `-S` takes the place of the program.
            let options = &words[rest..words.len().min(next + 1)];
            if name == "env" && splits(options) {
                return Found::Refused("behind `env -S`");
            }
            emptied |= words[rest..next.min(words.len())]
                .iter()
                .any(|word| empties(name, word.text()));
            next
        } else {
            return foreign(words, at);
        };
    }
    Found::Data
}

impl Runner {
    /// The index of the program that it runs.
    fn next(&self, words: &[Word], mut at: usize) -> usize {
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

/// A shell's options, and the script behind `-c`.
fn shell(words: &[Word], mut at: usize, here_string: bool) -> Found {
    let mut has_script = false;
    while let Some(word) = words.get(at) {
        let text = word.text();
        if matches!(text, "-" | "--") {
            at += 1;
            break;
        }
        if text.len() == 1 || !text.starts_with(['-', '+']) {
            break;
        }
        if !word.is_plain() {
            return Found::Refused("in the options of a shell");
        }
        at += 1;
        if let Some(long) = text.strip_prefix("--") {
            at += usize::from(SHELL_VALUES.contains(&long));
        } else {
            has_script |= text.starts_with('-') && text.contains('c');
            at += text.matches(['o', 'O']).count();
        }
    }
    match words.get(at) {
        Some(script) if has_script && script.has_variable() => {
            if script.dynamic {
                Found::Refused("in a script that the shell puts together")
            } else {
                Found::Script(at)
            }
        }
        None if here_string && !has_script => Found::Refused("in the here-string of a shell"),
        _ => Found::Data,
    }
}

/// A program that is not known to keep the environment: whether it, or a program behind it, is given a
/// script with a variable.
fn foreign(words: &[Word], first: usize) -> Found {
    for (at, word) in words.iter().enumerate().skip(first) {
        let name = program(word);
        let runs = if SHELLS.contains(&name) {
            !matches!(shell(words, at + 1, false), Found::Data)
        } else if name == SSH.name {
            let command = words.get(SSH.next(words, at + 1)..).unwrap_or_default();
            command.iter().any(Word::has_variable)
        } else {
            runs_script(name, &words[at + 1..])
        };
        if runs {
            return Found::Foreign(name.to_owned());
        }
    }
    Found::Data
}

/// Whether an interpreter of this name is given a script with a variable.
fn runs_script(name: &str, words: &[Word]) -> bool {
    let versionless = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((name, letters, long)) = INTERPRETERS
        .iter()
        .find(|(interpreter, ..)| *interpreter == versionless)
    else {
        return false;
    };
    if *name == "deno" {
        let evaluates = words.first().is_some_and(|word| word.text() == "eval");
        return evaluates && words.iter().any(Word::has_variable);
    }
    for (at, word) in words.iter().enumerate() {
        let text = word.text();
        let next = || words.get(at + 1).is_some_and(Word::has_variable);
        let Some(option) = text.strip_prefix('-') else {
            return false;
        };
        let is_script = match option.strip_prefix('-') {
            Some(option) => {
                let name = option.split('=').next().unwrap_or_default();
                long.contains(&name)
            }
            None => option == "Command" || option.contains(|letter| letters.contains(letter)),
        };
        if is_script && (word.has_variable() || next()) {
            return true;
        }
        // The options after a module's name belong to the module.
        if *name == "python" && option.ends_with('m') {
            return false;
        }
    }
    false
}

/// Whether `env` is to split a word that has a variable or names a shell.
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
            word.has_variable() || word.dynamic || names_shell()
        })
    })
}

fn is_cluster(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

/// Whether an option of `env` or `exec` takes the environment away.
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
fn program(word: &Word) -> &str {
    base(word.text())
}

fn base(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or_default()
}
