//! Places where bash computes: a text there is arithmetic or the name of a variable, and a subscript in it can run a
//! command. And the variables that a shell itself obeys.

use super::words::{Word, is_assignment};
use crate::template::is_variable_name;

/// The place of a variable in `(( … ))`.
pub(super) const ARITHMETIC: &str = "in `((…))`, where bash computes";
/// The place of a variable in `[[ … ]]`.
pub(super) const CONDITION: &str = "in `[[ ]]`, where bash computes";
/// Builtins that set variables.
const DECLARATIONS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];
/// Variables that the shell itself obeys, or the loader of every program, with the place of a variable in their value.
const OBEYED: [(&str, &str); 5] = [
    (
        "PATH",
        "in the value of `PATH`, which decides what programs run",
    ),
    (
        "IFS",
        "in the value of `IFS`, which decides where words end",
    ),
    (
        "ENV",
        "in the value of `ENV`, the file that a shell runs first",
    ),
    (
        "BASH_ENV",
        "in the value of `BASH_ENV`, the file that bash runs first",
    ),
    (
        "LD_",
        "in the value of an `LD_` variable, which decides what code programs load",
    ),
];

/// Returns the place of a value among the operands of a builtin that computes with it or takes it as a name.
pub(super) fn place(name: &str, operands: &[Word]) -> Option<&'static str> {
    if !operands.iter().any(Word::carries) {
        return None;
    }
    let has_option = |letter: char| {
        let options = operands.iter().map(Word::text);
        let mut options = options.take_while(|text| text.starts_with('-') && *text != "--");
        options.any(|text| text.contains(letter))
    };
    match name {
        "let" => Some("in `let`, where bash computes"),
        "unset" => Some("in `unset`, where bash computes"),
        "read" | "mapfile" | "readarray" | "getopts" => {
            Some("in `read` or another builtin that takes names of variables")
        }
        "printf" if has_option('v') => Some("in `printf -v`, where bash computes"),
        "test" | "[" if operands.iter().any(|word| word.text() == "-v") => {
            Some("in `test -v`, where bash computes")
        }
        _ if !DECLARATIONS.contains(&name) => None,
        _ if has_option('i') => Some("in a declaration with `-i`, where bash computes"),
        _ => operands
            .iter()
            .any(|word| word.carries() && !is_assignment(word.text()))
            .then_some("in the name that a declaration sets"),
    }
}

/// Whether a declaration makes bash compute later values of its variables.
pub(super) fn is_integer(words: &[Word]) -> bool {
    let mut words = words.iter().skip_while(|word| word.is_before_command());
    words
        .next()
        .is_some_and(|word| DECLARATIONS.contains(&word.text()))
        && words.any(|word| word.text().starts_with('-') && word.text().contains('i'))
}

/// Returns the word that sets a variable which a shell obeys, or a subscript, to a value, and the place of the value.
pub(super) fn assignment(words: &[Word]) -> Option<(&Word, &'static str)> {
    let mut sets = true;
    for (at, word) in words.iter().enumerate() {
        let text = word.text();
        let is_loop = matches!(text, "for" | "select");
        if is_loop && let Some(place) = words.get(at + 1).and_then(|name| obeyed(name.text())) {
            return words
                .iter()
                .find(|word| word.carries())
                .map(|word| (word, place));
        }
        sets |= is_setter(text);
        if sets && word.carries() {
            let set = text
                .split_once('=')
                .map(|(name, _)| name.trim_end_matches('+'));
            if let Some(place) = set.and_then(obeyed) {
                return Some((word, place));
            }
            if set.is_some_and(is_subscript) {
                return Some((word, "in the subscript of an array, where bash computes"));
            }
        }
        sets &= word.is_before_command()
            || is_setter(text)
            || text.starts_with('-')
            || text.contains('=');
    }
    None
}

/// Whether a program sets the variables that its words assign.
fn is_setter(name: &str) -> bool {
    name == "env" || DECLARATIONS.contains(&name)
}

/// Returns the place of a value of this variable, if a shell or the loader obeys it.
pub(super) fn obeyed(name: &str) -> Option<&'static str> {
    let is_it = |known: &str| name == known || (known == "LD_" && name.starts_with(known));
    let found = OBEYED.iter().find(|(known, _)| is_it(known));
    found.map(|(_, place)| *place)
}

/// Whether a text is an element of an array that a value chooses: `NAME[${X}]`.
fn is_subscript(text: &str) -> bool {
    text.split_once('[')
        .is_some_and(|(name, rest)| is_variable_name(name) && rest.contains("${"))
}
