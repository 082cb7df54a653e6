//! Finds the word of a command that is a script for another program: a known shell, also behind a
//! program that runs another one, or an interpreter whose scripts are not understood.

use super::computing;
use super::foreign::foreign;
use super::programs::{Given, RUNNERS, SHELLS, VariableUse, base, is_cluster, program, shell};
use super::words::Word;
use crate::template::Part;

/// Builtins that run their arguments as a script, as a message names them.
const EVALUATORS: [(&str, &str); 3] = [
    ("eval", "in `eval`"),
    ("trap", "in `trap`"),
    ("alias", "in `alias`"),
];
/// Examines the words of one command. `fed`: whether a variable may be in its standard input.
pub(super) fn find(words: &[Word], fed: bool) -> VariableUse {
    if !fed && !words.iter().any(Word::carries) {
        return VariableUse::Data;
    }
    let start = words
        .iter()
        .take_while(|word| word.is_before_command())
        .count();
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
        let operands = words.get(rest..).unwrap_or_default();
        if let Some(place) = computing::place(name, operands) {
            return VariableUse::Refused { place, from: rest };
        }
        if matches!(name, "." | "source") {
            let reads = words.get(rest).is_none_or(Word::is_input);
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
            return check_find(words, rest, fed);
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

/// Checks the words of `find`, whose `-exec` runs another program.
fn check_find(words: &[Word], first: usize, fed: bool) -> VariableUse {
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
