//! The errors of a failed start, and their report.

use std::io;

use broker_model::exit::Exit;
use broker_model::text::{counted, shown_line};
use broker_model::{CallCode, Diagnostic, DiagnosticCode, text};
use serde_json::{Value, json};

use crate::core::CoreError;
use crate::logging::LogOutput;
use crate::secret::SecretError;

/// The maximum number of problems in the error that a client gets.
const MAX_SHOWN: usize = 20;
/// The maximum number of characters of each of their texts.
const MAX_SHOWN_CHARS: usize = 600;

/// A start that failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line is not valid.
    Usage(String),
    /// A variable for the broker itself is not valid.
    Variable(String),
    /// Config, environment, address or secret, all problems of one run.
    Diagnostics(Vec<Diagnostic>),
    /// The address cannot be listened on.
    Bind {
        /// As it was given.
        address: String,
        /// The error of the system.
        reason: String,
    },
    /// The compiled-in catalog is of another version than this library.
    Catalog {
        /// The catalog's version.
        found: u32,
    },
    /// The broker itself failed.
    Internal(String),
}

impl Failure {
    /// `address` cannot be listened on.
    pub(super) fn bind(address: &str, error: &io::Error) -> Self {
        Self::Bind {
            address: address.to_owned(),
            reason: error.to_string(),
        }
    }

    /// The failure with remedies for a catalog that is made at the start, in place of a build.
    pub(super) fn without_build(self) -> Self {
        const RESTART: &str =
            "Start `broker-gen serve` again; if it refuses the lock, run `broker-gen lock` first.";
        let Self::Diagnostics(found) = self else {
            return self;
        };
        let is_of_lock = |problem: &Diagnostic| {
            [DiagnosticCode::LockMismatch, DiagnosticCode::LockWiden].contains(&problem.code)
        };
        let with_remedy = |problem: Diagnostic| match is_of_lock(&problem) {
            true => problem.help(RESTART),
            false => problem,
        };
        Self::Diagnostics(found.into_iter().map(with_remedy).collect())
    }

    /// The code of its first problem.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Diagnostics(found) => found
                .first()
                .map_or("internal", |problem| problem.code.as_str()),
            Self::Usage(_) | Self::Variable(_) => "usage",
            Self::Bind { .. } => "bind",
            Self::Catalog { .. } => DiagnosticCode::LockVersion.as_str(),
            Self::Internal(_) => "internal",
        }
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Variable(_) => Exit::Usage,
            Self::Diagnostics(diagnostics) => Exit::from_diagnostics(diagnostics),
            Self::Bind { .. } => Exit::Bind,
            Self::Catalog { .. } => Exit::Lock,
            Self::Internal(_) => Exit::Failure,
        }
    }

    /// Returns the error of every call of a client over stdio: the client sees neither exit code nor log. `None` for a
    /// failure that ends the broker at once: a wrong command line that the client's user has just written, or a failure
    /// of the broker.
    pub(super) fn for_client(&self) -> Option<CoreError> {
        let refused = |message: &str| {
            let message = shown_line(message, MAX_SHOWN_CHARS);
            let message = format!("the start of the broker was refused: {message}");
            CoreError::new(CallCode::StartRefused, message).maybe_executed(false)
        };
        match self {
            Self::Usage(_) | Self::Bind { .. } | Self::Internal(_) => None,
            Self::Variable(message) => {
                Some(refused(message).hint("Correct the variable, then start the broker again."))
            }
            Self::Catalog { found } => Some(
                refused(&catalog_message(*found)).hint("Build the program again, then start it."),
            ),
            Self::Diagnostics(found) => {
                let mut errors = found.iter().filter(|one| one.is_error());
                let first = errors.next()?;
                let more = match errors.count() {
                    0 => String::new(),
                    more => format!(" (and {})", counted(more, "more problem")),
                };
                let hint = shown_line(first.remedy(), MAX_SHOWN_CHARS);
                let problems = found.iter().filter(|one| one.is_error());
                let problems: Vec<_> = problems.take(MAX_SHOWN).map(shown_problem).collect();
                let details = json!({ "exit": self.exit().code(), "problems": problems });
                let message = format!("{}{}{more}", first.message, shown_place(first));
                Some(refused(&message).hint(hint).details(details))
            }
        }
    }

    /// Reports the failure completely.
    pub(super) fn report(&self, output: &LogOutput) {
        let message = match self {
            Self::Usage(message) | Self::Variable(message) | Self::Internal(message) => {
                message.clone()
            }
            Self::Diagnostics(diagnostics) => {
                let lines = diagnostics.iter().map(|one| text!("{}\n", one.text()));
                let objects: Vec<_> = diagnostics.iter().map(Diagnostic::to_json).collect();
                output.report(&lines.collect(), &json!({ "diagnostics": objects }));
                return;
            }
            Self::Bind { address, reason } => format!("cannot listen on `{address}`: {reason}"),
            Self::Catalog { found } => catalog_message(*found),
        };
        output.report(&text!("error: {}", message), &json!({ "error": message }));
    }
}

fn catalog_message(found: u32) -> String {
    format!(
        "the compiled-in catalog has format {found}, this library reads {}; build the program again",
        crate::catalog::FORMAT
    )
}

fn shown_problem(problem: &Diagnostic) -> Value {
    let message = shown_line(&problem.message, MAX_SHOWN_CHARS);
    json!({
        "code": problem.code.as_str(),
        "message": format!("{message}{}", shown_place(problem)),
        "remedy": shown_line(problem.remedy(), MAX_SHOWN_CHARS),
    })
}

/// File, line and column of a problem, as far as they are known.
fn shown_place(problem: &Diagnostic) -> String {
    match (&problem.file, problem.position) {
        (Some(file), Some(at)) => format!(" ({file}:{}:{})", at.line, at.column),
        (Some(file), None) => format!(" ({file})"),
        (None, _) => String::new(),
    }
}

/// Returns the value, unless it failed or there are errors in `found`; then all problems together.
pub(super) fn unless_refused<T>(
    made: Result<T, Vec<Diagnostic>>,
    mut found: Vec<Diagnostic>,
) -> Result<T, Failure> {
    match made {
        Ok(made) if !found.iter().any(Diagnostic::is_error) => Ok(made),
        Ok(_) => Err(Failure::Diagnostics(found)),
        Err(more) => {
            found.extend(more);
            Err(Failure::Diagnostics(found))
        }
    }
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        match error {
            SecretError::Unusable(diagnostic) => Self::Diagnostics(vec![*diagnostic]),
            other => Self::Usage(other.to_string()),
        }
    }
}
