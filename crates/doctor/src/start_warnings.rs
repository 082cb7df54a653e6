//! Warnings about a source that follow from its command and from the end of its process, also if it started: a program
//! that did not end, a container without an init process, and variables that its command asks for and does not get.

use broker_config::launcher::{LaunchKind, Launcher};
use broker_mcp::StartHints;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_process::{Ending, StopStage};

use super::finding::{Code, Finding, Severity};

/// The maximum number of variables that a warning names.
const MAX_NAMES: usize = 16;

/// A warning about the start or the end of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StartWarning {
    code: Code,
    severity: Severity,
    message: String,
    remedy: String,
}

/// Returns the warnings about a source whose process ended in this way, for `lock`. `source` names it.
pub fn start_warnings(
    source: &str,
    hints: &StartHints,
    ending: Option<&Ending>,
) -> Vec<Diagnostic> {
    let warnings = collect(hints, ending).into_iter();
    let warnings = warnings.filter(|warning| warning.severity > Severity::Note);
    let diagnostics = warnings.filter_map(|warning| {
        let message = format!("`{source}`: {}", warning.message);
        let code = diagnostic_code(warning.code)?;
        Some(Diagnostic::warning(code, message).help(warning.remedy))
    });
    diagnostics.collect()
}

/// Returns the findings about a source whose process ended in this way, for `doctor`.
pub(crate) fn findings(
    hints: &StartHints,
    ending: Option<&Ending>,
) -> impl Iterator<Item = Finding> {
    let warnings = collect(hints, ending).into_iter();
    warnings.map(|one| Finding::new(one.code, one.severity, one.message, one.remedy))
}

fn diagnostic_code(code: Code) -> Option<DiagnosticCode> {
    let codes = [
        (Code::DidNotEnd, DiagnosticCode::DidNotEnd),
        (Code::ContainerInit, DiagnosticCode::ContainerInit),
        (Code::VariableWithheld, DiagnosticCode::VariableWithheld),
    ];
    codes.iter().find(|one| one.0 == code).map(|one| one.1)
}

fn collect(hints: &StartHints, ending: Option<&Ending>) -> Vec<StartWarning> {
    let launcher = hints.launcher.as_ref();
    let without_end = ending.and_then(|ending| did_not_end(launcher, ending));
    let without_init = launcher
        .zip(ending)
        .and_then(|(launcher, ending)| without_init(launcher, ending.stage));
    let warnings = without_end.into_iter().chain(without_init);
    warnings.chain(withheld(launcher, &hints.asked)).collect()
}

/// Returns the warning about a program that had to be killed, or that may run on elsewhere.
fn did_not_end(launcher: Option<&Launcher>, ending: &Ending) -> Option<StartWarning> {
    let elsewhere = launcher.filter(|launcher| launcher.kind != LaunchKind::Run);
    let (what, mut remedy) = match (ending.stage, elsewhere) {
        (StopStage::Killed, _) => (
            "its process did not end after its input was closed and after SIGTERM, and was killed"
                .to_owned(),
            "Make the server end when its standard input ends.".to_owned(),
        ),
        // The signal ended the client only.
        (StopStage::Terminated, Some(launcher)) => (
            format!(
                "its program did not end when its input was closed; SIGTERM ended `{}`, which passes no signal on",
                launcher.shown
            ),
            "Make the server end when its standard input ends.".to_owned(),
        ),
        (StopStage::Terminated, None) | (StopStage::Closed, _) => return None,
    };
    let rest = match (&ending.removed, elsewhere) {
        (Some(Ok(name)), _) => format!("its container `{name}` was removed"),
        (Some(Err(why)), _) => {
            remedy.push_str(" Remove the container by hand.");
            why.clone()
        }
        (None, Some(launcher)) => {
            remedy.push_str(" End the program where it runs.");
            format!(
                "the program that `{}` started may still run",
                launcher.shown
            )
        }
        (None, None) => "if it is a container, it still runs".to_owned(),
    };
    Some(StartWarning {
        code: Code::DidNotEnd,
        severity: Severity::Warning,
        message: format!("{what}; {rest}"),
        remedy,
    })
}

/// Returns the warning about a new container without an init process. A program that was seen to end needs none.
fn without_init(launcher: &Launcher, stage: StopStage) -> Option<StartWarning> {
    if launcher.has_init || launcher.kind != LaunchKind::Run {
        return None;
    }
    let shown = &launcher.shown;
    let (severity, message) = match stage {
        StopStage::Killed => (
            Severity::Warning,
            format!(
                "`{shown}` has no `--init`: as process 1 of its container a program ignores SIGTERM unless it handles it, so the container runs on"
            ),
        ),
        StopStage::Closed | StopStage::Terminated => (
            Severity::Note,
            format!("`{shown}` has no `--init`; its program was seen to end without it"),
        ),
    };
    Some(StartWarning {
        code: Code::ContainerInit,
        severity,
        message,
        remedy: format!("Write `--init` after `{shown}`."),
    })
}

/// Returns the warning about variables that the command asks for and that the process does not get.
fn withheld(launcher: Option<&Launcher>, asked: &[String]) -> Option<StartWarning> {
    let names = asked.iter().take(MAX_NAMES);
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let (verb, pronoun) = match asked.len() {
        0 => return None,
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    let more = match asked.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let command = launcher.map_or("its command".to_owned(), |one| format!("`{}`", one.shown));
    Some(StartWarning {
        code: Code::VariableWithheld,
        severity: Severity::Warning,
        message: format!(
            "{command} asks for {}{more}; set here and not passed on, {pronoun} {verb} missing",
            names.join(", ")
        ),
        remedy: format!(
            "Name {pronoun} in `inherit_env` of the source, or with a value in its `env`."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(command: &str, asked: &[&str]) -> StartHints {
        StartHints {
            launcher: Launcher::parse(&command.split(' ').collect::<Vec<_>>()),
            asked: asked.iter().map(|name| (*name).to_owned()).collect(),
            ..StartHints::default()
        }
    }

    #[test]
    fn warnings_about_an_end_depend_on_the_command_and_the_step() {
        use Severity::{Note, Warning};
        use StopStage::{Closed, Killed, Terminated};
        let removed = || Some(Ok("mcp-broker-1".to_owned()));
        for (command, stage, removed, expected) in [
            ("server", Closed, None, vec![]),
            ("server", Terminated, None, vec![]),
            (
                "server",
                Killed,
                None,
                vec![(
                    Code::DidNotEnd,
                    Warning,
                    "if it is a container, it still runs",
                )],
            ),
            (
                "docker run -i a",
                Closed,
                None,
                vec![(Code::ContainerInit, Note, "was seen to end")],
            ),
            ("docker run --init -i a", Closed, None, vec![]),
            (
                "docker run -i a",
                Killed,
                removed(),
                vec![
                    (
                        Code::DidNotEnd,
                        Warning,
                        "its container `mcp-broker-1` was removed",
                    ),
                    (Code::ContainerInit, Warning, "`docker run` has no `--init`"),
                ],
            ),
            (
                "podman run --init a",
                Killed,
                Some(Err("the container `x` cannot be removed: y".to_owned())),
                vec![(Code::DidNotEnd, Warning, "`x` cannot be removed")],
            ),
            ("ssh host server", Closed, None, vec![]),
            (
                "ssh host server",
                Terminated,
                None,
                vec![(Code::DidNotEnd, Warning, "`ssh` started may still run")],
            ),
            (
                "kubectl exec -i p -- s",
                Killed,
                None,
                vec![(
                    Code::DidNotEnd,
                    Warning,
                    "`kubectl exec` started may still run",
                )],
            ),
        ] {
            let ending = Ending { stage, removed };
            let found = collect(&hints(command, &[]), Some(&ending));
            assert_eq!(found.len(), expected.len(), "{command} {found:?}");
            for (warning, (code, severity, part)) in found.iter().zip(expected) {
                assert_eq!(
                    (warning.code, warning.severity),
                    (code, severity),
                    "{command}"
                );
                assert!(warning.message.contains(part), "{}", warning.message);
            }
        }
    }

    #[test]
    fn withheld_variables_are_a_warning_without_an_end_too() {
        let found = start_warnings("/a", &hints("docker run -i a", &["ONE", "TWO"]), None);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .message
                .starts_with("`/a`: `docker run` asks for `ONE`, `TWO`;"),
            "{found:?}"
        );
    }
}
