//! Tests of the config: one for each kind of problem, and properties of the hand-written parsers.

use super::{CommandLine, Config, Parsed, Source};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;

mod accepted;
mod access;
mod clients;
mod commands;
mod compiled;
mod http;
mod identities;
mod key_page;
mod key_table;
mod lock;
mod lock_access;
mod lock_left_out;
mod lock_word_list;
mod narrowing;
mod problems;
mod search;
mod servers;
mod settings;
mod trust;
mod values;
mod vscode;

/// A config that must parse.
pub(crate) fn parse(text: &str) -> Parsed {
    Config::parse("c.json", text.as_bytes()).unwrap_or_else(|found| {
        panic!("{text}\n{}", shown(&found));
    })
}

/// A config that must be refused.
fn refused(text: &str) -> Vec<Diagnostic> {
    match Config::parse("c.json", text.as_bytes()) {
        Err(found) => found,
        Ok(_) => panic!("accepted: {text}"),
    }
}

/// Its only problem.
pub(crate) fn only(text: &str) -> Diagnostic {
    let mut found = refused(text);
    assert_eq!(found.len(), 1, "{}", shown(&found));
    found.remove(0)
}

/// A config with one node `/a` whose source has these members besides its command.
fn with_source(members: &str) -> String {
    format!(r#"{{"tree":[{{"path":"/a","type":"node","source":{{"command":["x"],{members}}}}}]}}"#)
}

/// The source of a config with one whose command is this JSON.
pub(crate) fn source_with_command(command: &str) -> Source {
    let text = format!(r#"{{"tree":[{{"path":"/a","source":{{"command":{command}}}}}]}}"#);
    parse(&text).config.sources().next().unwrap().clone()
}

/// Code and pointer of each.
fn places(found: &[Diagnostic]) -> Vec<(Code, &str)> {
    found
        .iter()
        .map(|d| (d.code, d.pointer.as_deref().unwrap_or("-")))
        .collect()
}

fn shown(found: &[Diagnostic]) -> String {
    found.iter().map(|d| format!("{d}\n")).collect()
}

fn words(command: &CommandLine) -> Vec<&str> {
    match command {
        CommandLine::Direct { program, args, .. } => std::iter::once(program.raw())
            .chain(args.iter().map(|arg| arg.raw()))
            .collect(),
        CommandLine::Shell { .. } => panic!("run by a shell: {command:?}"),
    }
}
