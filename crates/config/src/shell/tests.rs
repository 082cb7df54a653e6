//! The table of commands with variables: what is accepted, refused and rewritten, and that a value never becomes syntax,
//! as the shell of the machine confirms.

use std::collections::BTreeMap;

use super::rewrite;
use crate::tests::source_with_command;
use crate::{CommandLine, Config, Template};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;

/// The rows: a command, what is done with it, and why.
const TABLE: &str = include_str!("scripts.tsv");

/// Returns the commands of the table with this verdict, each with its reason.
fn rows(verdict: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| {
        let mut cells = line.split('\t');
        let (command, found, reason) = (cells.next()?, cells.next()?, cells.next()?);
        (found == verdict).then_some((command, reason))
    })
}

/// Returns the findings about a config with this command.
fn findings(command: &str) -> Vec<Diagnostic> {
    let text = format!(r#"{{"tree":[{{"path":"/a","source":{{"command":{command}}}}}]}}"#);
    match Config::parse("c.json", text.as_bytes()) {
        Ok(parsed) => parsed.warnings,
        Err(found) => found,
    }
}

/// Returns the reason in a finding: what comes after the name of the variable, or the program of a script.
fn reason(finding: &Diagnostic) -> &str {
    let message = &finding.message;
    let refused = message.strip_prefix("a shell command has `${");
    let refused = refused.and_then(|rest| rest.split_once("}`"));
    let warned = message.strip_prefix("a script for `");
    let warned = warned.and_then(|rest| rest.split_once('`'));
    match (refused, warned) {
        (Some((_, place)), _) => place.trim_start_matches([' ', ',']),
        (_, Some((program, _))) => program,
        _ => panic!("{finding}"),
    }
}

#[test]
fn every_row_of_the_table_has_a_known_verdict() {
    let verdicts = ["rewritten", "data", "accepted", "warned", "refused"];
    let known: usize = verdicts.map(|verdict| rows(verdict).count()).iter().sum();
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(known, lines.count());
}

#[test]
fn shell_variable_is_quoted_for_its_place() {
    for (command, want) in rows("rewritten") {
        let command: String = serde_json::from_str(command).unwrap();
        let want: String = serde_json::from_str(want).unwrap();
        let rewritten = rewrite(&command).unwrap_or_else(|errors| panic!("{command}: {errors:?}"));
        let script = rewritten.script.replace("MCP_BROKER_ARG_", "P");
        assert_eq!(script, want, "{command}");
    }
}

#[test]
fn shell_value_that_can_become_code_is_refused_with_its_place() {
    for (command, want) in rows("refused") {
        let found = findings(command);
        assert!(!found.is_empty(), "accepted: {command}");
        for finding in &found {
            assert_eq!(finding.code, Code::ShellPlace, "{command}");
            assert!(!finding.remedy().is_empty(), "{command}");
        }
        assert_eq!(reason(&found[0]), want, "{command}");
    }
}

#[test]
fn shell_value_in_a_script_of_another_language_gives_a_warning() {
    for (command, want) in rows("warned") {
        let found = findings(command);
        let codes: Vec<_> = found.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [Code::ShellPlace], "{command}");
        assert_eq!(reason(&found[0]), want, "{command}");
    }
}

#[test]
fn shell_value_that_stays_data_gives_no_finding() {
    for (command, _) in rows("accepted").chain(rows("data")) {
        let found = findings(command);
        assert!(found.is_empty(), "{command}: {}", found[0]);
    }
}

#[test]
fn shell_private_variables_hold_the_written_text() {
    let source = source_with_command(r#""a | b ${X:-d} ${Y} ${X:-d}""#);
    let CommandLine::Shell { variables, .. } = &source.process().unwrap().command else {
        panic!("{:?}", source.process().unwrap().command);
    };
    let held: Vec<_> = variables
        .iter()
        .map(|(name, held)| (name.as_str(), held.raw()))
        .collect();
    assert_eq!(
        held,
        [
            ("MCP_BROKER_ARG_1", "${X:-d}"),
            ("MCP_BROKER_ARG_2", "${Y}")
        ]
    );
}

/// Runs a command line of a config as a source would be started, with a value for `${X}`.
fn run(command: &str, value: &str) -> String {
    let source = source_with_command(command);
    let expand = |template: &Template| template.expand(&|_| Some(value.to_owned())).unwrap();
    let (program, args, variables) = match &source.process().unwrap().command {
        CommandLine::Shell {
            script, variables, ..
        } => {
            let args = vec!["-c".to_owned(), script.clone()];
            ("/bin/sh".to_owned(), args, variables.clone())
        }
        CommandLine::Direct {
            program,
            args,
            script,
        } => {
            let mut words: Vec<String> = args.iter().map(expand).collect();
            let mut variables = BTreeMap::new();
            if let Some(script) = script {
                words[script.at].clone_from(&script.text);
                variables.clone_from(&script.variables);
            }
            (expand(program), words, variables)
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "only a shell can check its syntax"
    )]
    let mut process = std::process::Command::new(program);
    process.args(args).stderr(std::process::Stdio::null());
    for (name, template) in &variables {
        process.env(name, expand(template));
    }
    let output = process.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn shell_value_is_data_in_the_script_of_any_known_shell() {
    let values = [
        "$(echo no)",
        "`echo no`",
        "'; echo no; '",
        "\"; echo no; \"",
        "a\nb",
        "; echo no",
        "*",
        "\\",
        "${X}",
    ];
    for (command, _) in rows("data") {
        for value in values {
            assert_eq!(run(command, value), value, "{command}");
        }
    }
    // A script that consists of the value alone runs the program of that name, and does not read the
    // value as code.
    for text in [
        "sh -c '${X}'",
        "sh -c ${X}",
        "true; sh -c ${X}",
        r#"sh -c "${X}""#,
    ] {
        let command = serde_json::to_string(text).unwrap();
        assert_eq!(run(&command, "echo no; echo no"), "", "{text}");
    }
}

#[test]
fn shell_script_digest_covers_the_text_as_written() {
    let covered = |command: &str| {
        let source = source_with_command(command);
        crate::digest::members(&source)[1..3].to_vec()
    };
    let direct = covered(r#"["sh", "-c", "a '${X}' \"${Y}\""]"#);
    assert_eq!(direct[0].1, "sh");
    assert_eq!(direct[1].1, serde_json::json!(["-c", "a '${X}' \"${Y}\""]));
    let shell = covered(r#""true; sh -c \"a ${X}\" ${Y}""#);
    assert_eq!(
        shell[0].1,
        serde_json::json!({"shell": "true; sh -c \"a ${X}\" \"${Y}\""})
    );
}
