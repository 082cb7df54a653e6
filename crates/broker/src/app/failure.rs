//! The errors of a failed start, and their report.

use std::io;

use broker_model::exit::Exit;
use broker_model::{Diagnostic, DiagnosticCode, text};
use serde_json::json;

use crate::logging::LogOutput;
use crate::secret::SecretError;

/// A start that failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line is not valid.
    Usage(String),
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
        let with_remedy = |problem: Diagnostic| match problem.code {
            DiagnosticCode::LockMismatch | DiagnosticCode::LockWiden => problem.help(RESTART),
            _ => problem,
        };
        Self::Diagnostics(found.into_iter().map(with_remedy).collect())
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Diagnostics(diagnostics) => Exit::of_diagnostics(diagnostics),
            Self::Bind { .. } => Exit::Bind,
            Self::Catalog { .. } => Exit::Lock,
            Self::Internal(_) => Exit::Failure,
        }
    }

    /// Reports the failure completely.
    pub(super) fn report(&self, output: &LogOutput) {
        let message = match self {
            Self::Usage(message) | Self::Internal(message) => message.clone(),
            Self::Diagnostics(diagnostics) => {
                let lines = diagnostics.iter().map(|one| text!("{}\n", one.text()));
                let objects: Vec<_> = diagnostics.iter().map(Diagnostic::to_json).collect();
                output.report(&lines.collect(), &json!({ "diagnostics": objects }));
                return;
            }
            Self::Bind { address, reason } => format!("cannot listen on `{address}`: {reason}"),
            Self::Catalog { found } => format!(
                "the compiled-in catalog has format {found}, this library reads {}; build the program again",
                crate::catalog::FORMAT
            ),
        };
        output.report(&text!("error: {}", message), &json!({ "error": message }));
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
