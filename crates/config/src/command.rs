//! `command` and `args`: a program that is executed directly, or a shell script.
//!
//! A string without shell syntax is split as a shell would split it, so that no shell runs between the
//! broker and the server; the value of a variable never adds a word or becomes syntax.

use std::collections::BTreeSet;

use super::fields;
use super::findings::{Cursor, Findings};
use super::shell::{self, Word};
use super::spanned::Data;
use super::template::{Part, Template, variable};
use super::{CommandLine, Script};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::text::shown_line;

/// The result of splitting a command string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// Words, to be executed directly.
    Words(Vec<Template>),
    /// The string needs a shell.
    Shell,
    /// The byte offset of a quote that is not closed.
    Unclosed(usize),
}

/// Reads `command` and `args`. With `args`, a string is the program itself.
pub(super) fn read(
    findings: &mut Findings<'_>,
    command: &Cursor<'_>,
    args: Option<&Cursor<'_>>,
) -> Option<CommandLine> {
    let line = command_line(findings, command, args)?;
    with_script(findings, command, line)
}

fn command_line(
    findings: &mut Findings<'_>,
    command: &Cursor<'_>,
    args: Option<&Cursor<'_>>,
) -> Option<CommandLine> {
    let args_given = args.is_some();
    let args = args.map(|args| {
        fields::strings(findings, args, |findings, item, text| {
            fields::template_of(findings, item, text)
        })
    });
    match &command.value.data {
        Data::Array(items) => {
            let count = items.len();
            let mut words = fields::strings(findings, command, |findings, item, text| {
                fields::template_of(findings, item, text)
            });
            if words.len() < count {
                return None;
            }
            if words.first().is_none_or(|program| program.raw().is_empty()) {
                return empty(findings, command);
            }
            let program = words.remove(0);
            words.extend(args.unwrap_or_default());
            Some(CommandLine::Direct {
                program,
                args: words,
                script: None,
            })
        }
        Data::String(text) if text.trim().is_empty() => empty(findings, command),
        Data::String(text) if args_given => Some(CommandLine::Direct {
            program: fields::template_of(findings, command, text)?,
            args: args.unwrap_or_default(),
            script: None,
        }),
        Data::String(text) => {
            fields::template_of(findings, command, text)?;
            line(findings, command, text)
        }
        _ => {
            fields::wrong_type(findings, command, "a string or a list of strings");
            None
        }
    }
}

/// The JSON pointer of each word below the source: one for each item of a list, one for a whole string.
pub(super) fn places(line: &CommandLine, command: &Cursor<'_>, has_args: bool) -> Vec<String> {
    let CommandLine::Direct { args, .. } = line else {
        return vec!["/command".to_owned()];
    };
    let words = 1 + args.len();
    let of_command = match &command.value.data {
        Data::Array(items) => items.len(),
        _ if has_args => 1,
        _ => words,
    };
    let is_list = matches!(command.value.data, Data::Array(_));
    (0..words)
        .map(|at| match at.checked_sub(of_command) {
            Some(at) => format!("/args/{at}"),
            None if is_list => format!("/command/{at}"),
            None => "/command".to_owned(),
        })
        .collect()
}

fn empty(findings: &mut Findings<'_>, command: &Cursor<'_>) -> Option<CommandLine> {
    let diagnostic = Diagnostic::error(Code::ConfigSourceKind, "`command` does not name a program");
    findings.add(command, diagnostic.help("write the program to run"));
    None
}

/// A command string whose variables were already checked.
fn line(findings: &mut Findings<'_>, command: &Cursor<'_>, text: &str) -> Option<CommandLine> {
    match split(text) {
        Split::Words(mut words) => {
            if words.first().is_none_or(|program| program.raw().is_empty()) {
                return empty(findings, command);
            }
            let program = words.remove(0);
            Some(CommandLine::Direct {
                program,
                args: words,
                script: None,
            })
        }
        Split::Unclosed(at) => {
            unclosed(findings, command, at);
            None
        }
        Split::Shell => match shell::rewrite(text) {
            Ok(rewritten) => {
                warn_of_foreign(findings, command, &rewritten.foreign);
                Some(CommandLine::Shell {
                    script: rewritten.script,
                    variables: rewritten.variables,
                    written: rewritten.written,
                })
            }
            Err(errors) => {
                refuse(findings, command, errors);
                None
            }
        },
    }
}

/// Rewrites the script argument of a known shell. Other places where a value could become code are
/// refused or reported as a warning.
fn with_script(
    findings: &mut Findings<'_>,
    command: &Cursor<'_>,
    mut line: CommandLine,
) -> Option<CommandLine> {
    let CommandLine::Direct {
        program,
        args,
        script,
    } = &mut line
    else {
        return Some(line);
    };
    let words: Vec<Word> = std::iter::once(&*program)
        .chain(args.iter())
        .map(Word::whole)
        .collect();
    match shell::rewrite_words(&words) {
        Ok((word, rewritten)) => {
            warn_of_foreign(findings, command, &rewritten.foreign);
            // The program itself is word 0.
            *script = word.and_then(|word| word.checked_sub(1)).map(|at| Script {
                at,
                text: rewritten.script,
                variables: rewritten.variables,
            });
            Some(line)
        }
        Err(errors) => {
            refuse(findings, command, errors);
            None
        }
    }
}

fn refuse(findings: &mut Findings<'_>, command: &Cursor<'_>, errors: Vec<shell::ShellError>) {
    for error in errors {
        match error {
            shell::ShellError::Unclosed(at) => unclosed(findings, command, at),
            shell::ShellError::Place { .. } => {
                let place = Diagnostic::error(Code::ShellPlace, error.to_string());
                findings.add(command, place);
            }
            shell::ShellError::Obeyed(ref name) => {
                let place = Diagnostic::error(Code::ShellPlace, error.to_string());
                let help = format!(
                    "write `${name}` for the value that the shell has; to set another one, use `env`"
                );
                findings.add(command, place.help(help));
            }
        }
    }
}

fn warn_of_foreign(findings: &mut Findings<'_>, command: &Cursor<'_>, programs: &BTreeSet<String>) {
    for program in programs {
        let message = format!(
            "a script for `{}` contains a `${{…}}`; the broker cannot rewrite such scripts, so the value can become code",
            shown_line(program, 80)
        );
        findings.add(command, Diagnostic::warning(Code::ShellPlace, message));
    }
}

fn unclosed(findings: &mut Findings<'_>, command: &Cursor<'_>, at: usize) {
    let message = format!("the quote or bracket at byte {at} of `command` is not closed");
    let diagnostic = Diagnostic::error(Code::ConfigSourceKind, message);
    findings.add(
        command,
        diagnostic.help("close the quote, or write `command` as a list"),
    );
}

/// Splits `text`, whose variables were already checked, unless it needs a shell.
pub(super) fn split(text: &str) -> Split {
    if begins_with_assignment(text) {
        return Split::Shell;
    }
    let mut words = Vec::new();
    let mut word: Option<Vec<Part>> = None;
    let mut quote: Option<(char, usize)> = None;
    // An open quote is an error only at the end; shell syntax before it takes precedence.
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some((part, length)) = variable(rest) {
            word.get_or_insert_default().push(part);
            at += length;
            continue;
        }
        let next = rest[c.len_utf8()..].chars().next();
        at += c.len_utf8();
        match (quote, c) {
            (Some((open, _)), _) if c == open => quote = None,
            (Some(('\'', _)), _) => push(&mut word, c),
            (None, '"' | '\'') => {
                quote = Some((c, at - 1));
                word.get_or_insert_default();
            }
            (_, '\\') => match next {
                // An escaped dollar sign needs a shell: in a word it would look like a variable.
                Some('$' | '`' | '\n') => return Split::Shell,
                Some(escaped) if quote.is_none() || matches!(escaped, '"' | '\\') => {
                    push(&mut word, escaped);
                    at += escaped.len_utf8();
                }
                _ => push(&mut word, '\\'),
            },
            (_, '$' | '`') => return Split::Shell,
            (Some(_), _) => push(&mut word, c),
            (
                None,
                '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '~' | '#' | '\n' | '\r',
            ) => return Split::Shell,
            (None, ' ' | '\t') => words.extend(word.take().map(Template::from_parts)),
            (None, _) => push(&mut word, c),
        }
    }
    if let Some((_, at)) = quote {
        return Split::Unclosed(at);
    }
    words.extend(word.map(Template::from_parts));
    Split::Words(words)
}

fn push(word: &mut Option<Vec<Part>>, c: char) {
    let parts = word.get_or_insert_default();
    match parts.last_mut() {
        Some(Part::Literal(text)) => text.push(c),
        _ => parts.push(Part::Literal(c.to_string())),
    }
}

/// Whether the text has `NAME=…` before the program: only a shell supports it.
fn begins_with_assignment(text: &str) -> bool {
    text.trim_start_matches([' ', '\t'])
        .split_once('=')
        .is_some_and(|(name, _)| super::template::is_variable_name(name))
}
