//! Hints in the last output of a server that failed to start: a missing runtime, package, variable or
//! terminal. The text was redacted and made printable before.

mod installers;

use broker_mcp::{SourceFailure, StartHints};
use broker_model::SourceCause;

use super::finding::Code;
use super::phrases::{PHRASES, WANTS_TERMINAL};
use super::runtimes;

/// The likely reason of a failed start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StderrHint {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

/// A failed start, with its output.
#[derive(Clone, Copy, Debug)]
pub struct FailedStart<'a> {
    /// The failure.
    pub failure: &'a SourceFailure,
    /// The program's name as it was searched.
    pub program: &'a str,
    /// Variables that were not passed to it and look relevant.
    pub withheld: &'a [String],
    /// Variables of its config that are set and empty.
    pub empty_variables: &'a [String],
    /// Facts about its command and the variables of installers.
    pub hints: &'a StartHints,
    /// The last lines on stderr, redacted and printable.
    pub stderr: &'a [String],
    /// The first lines on stdout that are not messages, redacted and printable.
    pub stdout: &'a [String],
}

/// Finds the hint that explains the most.
pub(crate) fn find(start: FailedStart<'_>) -> Option<StderrHint> {
    missing_program(start)
        .or_else(|| missing_runtime(start))
        .or_else(|| missing_variable(start))
        .or_else(|| installers::find(start))
        .or_else(|| phrase(start))
        .or_else(|| stopped(start))
        .or_else(|| usage(start))
        .or_else(|| prompt(start))
}

/// Recognises a command that is itself a runtime and was not found.
fn missing_program(start: FailedStart<'_>) -> Option<StderrHint> {
    let name = start.program;
    (start.failure.cause == SourceCause::SpawnNotFound && runtimes::find_by_program(name).is_some())
        .then(|| runtime(name))
}

/// Recognises a command that exists and runs a program that was not found.
fn missing_runtime(start: FailedStart<'_>) -> Option<StderrHint> {
    let code = start.failure.exit.and_then(|exit| exit.code);
    if code != Some(127) {
        return None;
    }
    let name = start.stderr.iter().rev().find_map(|line| not_found(line));
    name.map(runtime)
}

fn runtime(name: &str) -> StderrHint {
    let (message, remedy) = match runtimes::find_by_program(name) {
        Some(known) => (
            format!("`{name}` was not found: {} is not installed", known.name),
            format!(
                "{}. If it is installed, put its folder into the `PATH` that the broker is started with.",
                known.remedy
            ),
        ),
        None => (
            format!("`{name}`, which the command runs, was not found"),
            "Install it, or put its folder into the `PATH` that the broker is started with."
                .to_owned(),
        ),
    };
    StderrHint {
        code: Code::RuntimeMissing,
        message,
        remedy,
    }
}

/// Returns the name in `sh: 1: uvx: not found`, `bash: uvx: command not found` and `env: 'node': No such file or
/// directory`.
fn not_found(line: &str) -> Option<&str> {
    let endings = [
        ": command not found",
        ": not found",
        ": No such file or directory",
    ];
    let rest = endings
        .iter()
        .find_map(|ending| line.strip_suffix(ending))?;
    let name = rest.rsplit(": ").next()?;
    let name = name.trim_matches(['\'', '"', '`', '‘', '’']);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '/');
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// Recognises an output that names a missing variable.
fn missing_variable(start: FailedStart<'_>) -> Option<StderrHint> {
    const WORDS: [&str; 8] = [
        "required",
        "missing",
        "not set",
        "must be set",
        "not defined",
        "please set",
        "provide",
        "undefined",
    ];
    let said = start.stderr.iter().rev().chain(start.stdout);
    let name = said
        .filter(|line| {
            let line = line.to_lowercase();
            WORDS.iter().any(|word| line.contains(word))
        })
        .find_map(|line| {
            let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.find(|word| is_variable(word))
        })?;
    let remedy = if start.withheld.iter().any(|withheld| withheld == name) {
        format!(
            "It is set here and is not passed on: add `\"{name}\": \"${{{name}}}\"` to the source's `env`."
        )
    } else {
        format!("Set it, and add `\"{name}\": \"${{{name}}}\"` to the source's `env`.")
    };
    Some(StderrHint {
        code: Code::VariableMissing,
        message: format!("it needs the variable `{name}`"),
        remedy,
    })
}

/// Whether a word is a variable: `GITHUB_TOKEN`, but neither `ERROR` nor `ERR_MODULE_NOT_FOUND`.
fn is_variable(word: &str) -> bool {
    let shape = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    word.len() >= 5
        && word.contains('_')
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && !word.starts_with("ERR_")
        && word.chars().all(shape)
}

fn phrase(start: FailedStart<'_>) -> Option<StderrHint> {
    let lines = start.stderr.iter().chain(start.stdout);
    let said: String = lines
        .chain([&start.failure.message])
        .map(|line| line.to_lowercase() + "\n")
        .collect();
    PHRASES
        .iter()
        .find(|(phrases, ..)| phrases.iter().any(|phrase| said.contains(phrase)))
        .map(|(_, code, message, remedy)| StderrHint {
            code: *code,
            message: (*message).to_owned(),
            remedy: (*remedy).to_owned(),
        })
}

/// Recognises a process that a signal stopped: the system stops a process that reads a terminal from the background.
fn stopped(start: FailedStart<'_>) -> Option<StderrHint> {
    start.failure.process_stopped.then(|| StderrHint {
        code: Code::TerminalWanted,
        message: WANTS_TERMINAL.0.to_owned(),
        remedy: WANTS_TERMINAL.1.to_owned(),
    })
}

/// Recognises a usage message.
fn usage(start: FailedStart<'_>) -> Option<StderrHint> {
    let is_usage = |line: &&String| {
        let line = line.trim_start().to_lowercase();
        line.starts_with("usage:") || line.starts_with("usage of ")
    };
    let mut said = start.stderr.iter().chain(start.stdout);
    let line = said.find(is_usage)?;
    Some(StderrHint {
        code: Code::UsageText,
        message: format!("it prints its usage: {}", line.trim()),
        remedy: "Correct the arguments in `command`; many servers need `stdio`, `--stdio` or a subcommand."
            .to_owned(),
    })
}

/// Recognises a start that timed out after a prompt.
fn prompt(start: FailedStart<'_>) -> Option<StderrHint> {
    if start.failure.cause != SourceCause::StartupTimeout {
        return None;
    }
    let mut last = [start.stdout.last(), start.stderr.last()]
        .into_iter()
        .flatten();
    let asks = |line: &&String| {
        let line = line.trim_end().to_lowercase();
        let endings = [
            "?",
            "(y/n)",
            "[y/n]",
            "(yes/no)",
            "password:",
            "passphrase:",
            "username:",
            "code:",
            "key:",
            "token:",
        ];
        endings.iter().any(|ending| line.ends_with(ending))
    };
    let line = last.find(asks)?;
    Some(StderrHint {
        code: Code::TerminalWanted,
        message: format!("it waits for input: {}", line.trim()),
        remedy: "Answer beforehand, as `npx -y` does, by an argument or a variable.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_process::ExitReport;

    fn found(
        cause: SourceCause,
        code: Option<i32>,
        program: &str,
        said: &str,
    ) -> Option<StderrHint> {
        let mut failure = SourceFailure::new(cause, "no answer");
        failure.exit = code.map(|code| ExitReport {
            code: Some(code),
            signal: None,
        });
        let stderr: Vec<_> = said.lines().map(str::to_owned).collect();
        find(FailedStart {
            failure: &failure,
            program,
            withheld: &["API_TOKEN".to_owned()],
            empty_variables: &[],
            hints: &StartHints::default(),
            stderr: &stderr,
            stdout: &[],
        })
    }

    #[test]
    fn stderr_hint_names_what_is_missing() {
        let exit = SourceCause::ExitBeforeReady;
        for (code, said, expected, part) in [
            (
                127,
                "sh: 1: uvx: not found",
                Code::RuntimeMissing,
                "`uvx` was not found: uv is not installed",
            ),
            (
                127,
                "env: ‘node’: No such file or directory",
                Code::RuntimeMissing,
                "Node.js is not installed",
            ),
            (
                127,
                "bash: line 1: frob: command not found",
                Code::RuntimeMissing,
                "`frob`, which the command runs",
            ),
            (
                1,
                "Error: Cannot find module 'x'\n  code: 'MODULE_NOT_FOUND'",
                Code::PackageMissing,
                "a package",
            ),
            (
                1,
                "ModuleNotFoundError: No module named 'mcp'",
                Code::PackageMissing,
                "a package",
            ),
            (
                1,
                "Error: API_TOKEN is required",
                Code::VariableMissing,
                "`API_TOKEN`",
            ),
            (
                1,
                "npm error code E404",
                Code::PackageMissing,
                "the package registry",
            ),
            (
                1,
                "Error: self-signed certificate in certificate chain",
                Code::CertificateUntrusted,
                "certificate",
            ),
            (
                1,
                "getaddrinfo ENOTFOUND registry",
                Code::NetworkDown,
                "network",
            ),
            (
                1,
                "Error: x\n  code: 'ENOTFOUND',",
                Code::NetworkDown,
                "network",
            ),
            (
                1,
                "listen EADDRINUSE: address already in use",
                Code::PortTaken,
                "port",
            ),
            (
                1,
                "the input device is not a TTY",
                Code::TerminalWanted,
                "terminal",
            ),
            (
                1,
                "cannot connect to the Docker daemon at x",
                Code::RuntimeMissing,
                "daemon",
            ),
            (
                2,
                "Usage: server [OPTIONS]",
                Code::UsageText,
                "Usage: server [OPTIONS]",
            ),
        ] {
            let hint = found(exit, Some(code), "server", said).expect(said);
            assert_eq!(hint.code, expected, "{said}");
            assert!(hint.message.contains(part), "{}", hint.message);
        }
        for said in [
            "",
            "panic: boom",
            "ERROR: all is lost",
            "the file is missing",
            "FileNotFoundError: [Errno 2] No such file or directory: 'a.json'",
        ] {
            assert_eq!(found(exit, Some(1), "server", said), None, "{said}");
        }
    }

    #[test]
    fn stderr_prompt_is_a_hint_only_after_a_startup_timeout() {
        let ask = "Password:";
        let waits = found(SourceCause::StartupTimeout, None, "server", ask);
        assert_eq!(waits.map(|found| found.code), Some(Code::TerminalWanted));
        assert_eq!(
            found(SourceCause::ExitBeforeReady, Some(1), "server", ask),
            None
        );
    }

    #[test]
    fn stderr_hint_names_a_command_that_is_a_runtime() {
        let cause = SourceCause::SpawnNotFound;
        let hint = found(cause, None, "npx", "").expect("it is known");
        assert!(hint.message.contains("Node.js"), "{hint:?}");
        assert_eq!(found(cause, None, "some-server", ""), None);
    }

    #[test]
    fn stderr_hint_for_a_withheld_variable_has_another_remedy() {
        let exit = SourceCause::ExitBeforeReady;
        let remedy = |said| found(exit, Some(1), "s", said).expect("found").remedy;
        assert!(remedy("API_TOKEN not set").contains("not passed on"));
        assert!(remedy("OTHER_TOKEN not set").starts_with("Set it"));
    }
}
