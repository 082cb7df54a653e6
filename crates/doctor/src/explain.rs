//! The explanation of a failed start for a reader: the likely reason, the remedy, and the lines of stderr
//! that are worth reading. A line is chosen by its words; it decides neither code nor remedy.

use std::collections::HashSet;

use broker_model::text::shown_line;

use super::finding::Code;
use super::stderr_hints::{self, FailedStart};

/// The maximum number of stderr lines that are shown.
const MAX_LINES: usize = 10;
/// The maximum characters of a shown line.
const MAX_LINE_CHARS: usize = 300;

/// Words that mark a line as an error, lowercase.
const ERROR_WORDS: [&str; 24] = [
    "abort",
    "cannot",
    "can't",
    "could not",
    "couldn't",
    "denied",
    "error",
    "exception",
    "expected",
    "fail",
    "fatal",
    "forbidden",
    "invalid",
    "missing",
    "must be",
    "no such",
    "not found",
    "not set",
    "panic",
    "refused",
    "required",
    "traceback",
    "unable to",
    "unauthorized",
];

/// The explanation of a failed start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code and the sentence of the likely reason, if the output has a known phrase.
    pub reason: Option<(&'static str, String)>,
    /// The remedy.
    pub remedy: String,
    /// Lines of stderr, each behind `stderr: `, error lines first. The line that the message of the failure quotes is
    /// left out.
    pub lines: Vec<String>,
}

/// Explains a failed start. `doctor` is the command that the reader has for a diagnosis, such as
/// `broker-gen doctor`.
pub fn explain(start: FailedStart<'_>, doctor: &str) -> Explanation {
    let hint = stderr_hints::find(start);
    let is_about_variable = hint
        .as_ref()
        .is_some_and(|hint| hint.code == Code::VariableMissing);
    let (reason, mut remedy) = match hint {
        Some(hint) => (Some((hint.code.as_str(), hint.message)), hint.remedy),
        None => (None, start.failure.remedy().to_owned()),
    };
    // The remedies of causes name the program that is installed with a broker.
    remedy = remedy.replace("`mcp-broker doctor`", &format!("`{doctor}`"));
    let may_lack_value = start.failure.cause.may_lack_value();
    if may_lack_value && !start.empty_variables.is_empty() && !is_about_variable {
        remedy = format!(
            "Give each empty variable a value. In CI, runs for forks and bots get empty secrets: leave such runs out. Otherwise: {remedy}"
        );
    }
    if !start.withheld.is_empty() && !is_about_variable {
        remedy.push_str(
            " If it needs a variable that was not passed on, name it in `env` or `inherit_env`.",
        );
    }
    let mut said = start.stderr;
    // The message of a failed start may already contain the last line.
    if let [before @ .., last] = said
        && start.failure.quotes_stderr
        && start.failure.message.contains(last.as_str())
    {
        said = before;
    }
    let lines = chosen(said).into_iter();
    Explanation {
        reason,
        remedy,
        lines: lines
            .map(|line| format!("stderr: {}", shown_line(line, MAX_LINE_CHARS)))
            .collect(),
    }
}

/// Returns at most [`MAX_LINES`] different lines: those that name an error, then the last of the others.
fn chosen(lines: &[String]) -> Vec<&str> {
    let mut seen = HashSet::new();
    let lines = lines.iter().map(|line| line.trim_end());
    let (mut errors, others): (Vec<&str>, Vec<&str>) = lines
        .filter(|line| !line.is_empty() && seen.insert(*line))
        .partition(|line| names_error(line));
    if errors.len() > MAX_LINES {
        // The first ones are often the cause; the last ones are often its summary.
        errors.drain(MAX_LINES / 2..errors.len() - MAX_LINES / 2);
    }
    let room = MAX_LINES - errors.len();
    errors.extend(&others[others.len().saturating_sub(room)..]);
    errors
}

fn names_error(line: &str) -> bool {
    let line = line.to_lowercase();
    ERROR_WORDS.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_mcp::{SourceFailure, StartHints};
    use broker_model::SourceCause;

    fn lines(said: &[&str], failure: &SourceFailure) -> Vec<String> {
        let stderr: Vec<_> = said.iter().map(|line| (*line).to_owned()).collect();
        let start = FailedStart {
            failure,
            program: "server",
            withheld: &[],
            empty_variables: &[],
            hints: &StartHints::default(),
            stderr: &stderr,
            stdout: &[],
        };
        explain(start, "broker-gen doctor").lines
    }

    #[test]
    fn remedy_names_the_command_of_the_reader() {
        let failure = SourceFailure::new(SourceCause::ListFailed, "it failed");
        let start = FailedStart {
            failure: &failure,
            program: "server",
            withheld: &[],
            empty_variables: &[],
            hints: &StartHints::default(),
            stderr: &[],
            stdout: &[],
        };
        for doctor in ["broker-gen doctor", "mcp-broker doctor"] {
            let remedy = explain(start, doctor).remedy;
            assert_eq!(remedy.matches(" doctor`").count(), 1, "{remedy}");
            assert!(remedy.contains(&format!("`{doctor}`")), "{remedy}");
        }
    }

    #[test]
    fn stderr_lines_that_name_an_error_come_first_and_at_most_ten() {
        let failure = SourceFailure::new(SourceCause::ExitBeforeReady, "it ended");
        let frames: Vec<_> = (0..30).map(|at| format!("    at frame {at}")).collect();
        let mut said = vec!["Error: the key was rejected"];
        said.extend(frames.iter().map(String::as_str));
        let shown = lines(&said, &failure);
        assert_eq!(shown.len(), MAX_LINES);
        assert_eq!(shown[0], "stderr: Error: the key was rejected");
        assert_eq!(shown[1], "stderr: at frame 21");
        assert_eq!(shown[9], "stderr: at frame 29");

        let errors: Vec<_> = (0..30).map(|at| format!("error {at}")).collect();
        let said: Vec<_> = errors.iter().map(String::as_str).collect();
        let shown = lines(&said, &failure);
        let expected = [0, 1, 2, 3, 4, 25, 26, 27, 28, 29].map(|at| format!("stderr: error {at}"));
        assert_eq!(shown, expected);
    }

    #[test]
    fn stderr_line_that_is_repeated_or_quoted_is_shown_once() {
        let mut failure = SourceFailure::new(
            SourceCause::ExitBeforeReady,
            "it ended; its last line on stderr: retry failed",
        );
        failure.quotes_stderr = true;
        let said = [
            "loading",
            "connect failed",
            "connect failed",
            "",
            "retry failed",
        ];
        assert_eq!(
            lines(&said, &failure),
            ["stderr: connect failed", "stderr: loading"]
        );
    }
}
