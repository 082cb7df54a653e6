//! Programs whose scripts cannot be rewritten: interpreters, remote shells, and programs that run another
//! one elsewhere. Their arguments are only examined.

use super::programs::{Given, Runner, SHELLS, VariableUse, program, runner, shell};
use super::words::Word;

/// Interpreters, with the letters of the options whose word is a script, and the options' long names.
const INTERPRETERS: [(&str, &str, &[&str]); 21] = [
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
    ("runuser", "c", &["command"]),
    ("script", "c", &["command"]),
];

/// Interpreters whose first operand is a script, unless an option gives one.
const EDITORS: [Runner; 5] = [
    runner("awk", "Fvfei", AWK_LONG, 0),
    runner("gawk", "Fvfei", AWK_LONG, 0),
    runner("mawk", "FvfW", AWK_LONG, 0),
    runner("nawk", "Fvf", AWK_LONG, 0),
    runner("sed", "efl", &["expression", "file", "line-length"], 0),
];
const AWK_LONG: &[&str] = &["field-separator", "assign", "file", "source", "include"];
/// Programs that pass their words to a shell.
const JOINERS: [&str; 2] = ["parallel", "watch"];
/// Programs that run another one with their standard input, besides the runners.
const LAUNCHERS: [&str; 11] = [
    "sudo",
    "doas",
    "docker",
    "podman",
    "kubectl",
    "nsenter",
    "chroot",
    "unshare",
    "flatpak",
    "systemd-run",
    "ssh",
];
const SSH: Runner = runner("ssh", "BbcDEeFIiJLlmOopQRSWw", &[], 1);

/// Whether a program that may not keep the environment, or a program that it runs, gets a script with a variable.
/// `start` is the index of the command's first word, since options may be unknown; `first` is the index of the presumed
/// program.
pub(super) fn foreign(words: &[Word], start: usize, first: usize, given: Given) -> VariableUse {
    for (at, word) in words.iter().enumerate().skip(start) {
        let (name, rest) = (program(word), &words[at + 1..]);
        // Any word may be the name of a shell; the input counts only for the program.
        let launched = at == first || LAUNCHERS.contains(&program(&words[first]));
        let mut given = given;
        given.fed &= launched;
        let runs = if SHELLS.contains(&name) {
            match shell(words, at + 1, given) {
                VariableUse::Data => false,
                VariableUse::Script(script) => words[script].carries(),
                _ => true,
            }
        } else if name == SSH.name {
            let command = words.get(SSH.next(words, at + 1)..).unwrap_or_default();
            command.iter().any(Word::carries)
                || (given.fed && (command.is_empty() || given.as_words))
        } else if JOINERS.contains(&name) {
            rest.iter().any(Word::carries)
        } else if let Some(editor) = EDITORS.iter().find(|editor| editor.name == name) {
            edits(editor, words, at + 1)
        } else {
            runs_script(name, rest, given)
        };
        if runs {
            return VariableUse::Foreign(name.to_owned());
        }
    }
    VariableUse::Data
}

/// Whether the script of such an interpreter contains a variable.
fn edits(editor: &Runner, words: &[Word], first: usize) -> bool {
    let operand = editor.next(words, first);
    let options = &words[first..operand.min(words.len())];
    let gives = |text: &str| {
        ["-e", "-f", "--expression", "--source", "--file"]
            .iter()
            .any(|option| text.starts_with(option))
    };
    let mut scripts = options
        .iter()
        .enumerate()
        .filter(|(_, word)| gives(word.text()));
    if options.iter().any(|word| gives(word.text())) {
        scripts.any(|(at, word)| {
            let in_next = word.text() == "-e" || !word.text().contains('=');
            let next = options.get(at + 1).filter(|_| in_next);
            let is_file = word.text().starts_with("-f") || word.text().starts_with("--file");
            !is_file && (word.carries() || next.is_some_and(Word::carries))
        })
    } else {
        words.get(operand).is_some_and(Word::carries)
    }
}

/// Whether an interpreter of this name gets a script with a variable.
fn runs_script(name: &str, words: &[Word], given: Given) -> bool {
    let versionless = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((name, letters, long)) = INTERPRETERS
        .iter()
        .find(|(interpreter, ..)| *interpreter == versionless)
    else {
        return false;
    };
    let put_in = given.fed && given.into_words;
    if *name == "deno" {
        let evaluates = words.first().is_some_and(|word| word.text() == "eval");
        return evaluates && (put_in || words.iter().any(Word::carries));
    }
    let mut has_script = false;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text();
        if word.is_input() {
            return given.fed && !given.as_words && !has_script;
        }
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
        if is_script {
            has_script = true;
            let next = rest.as_slice().first();
            let next_carries = match next {
                Some(next) => next.carries() || put_in,
                None => given.fed && given.as_words,
            };
            if word.carries() || next_carries {
                return true;
            }
            // A second script may follow the first.
            if !option.contains('=') {
                rest.next();
            }
        }
        // The options after a module's name belong to the module.
        if *name == "python" && option.ends_with('m') {
            return false;
        }
    }
    given.fed && !given.as_words && !has_script
}
