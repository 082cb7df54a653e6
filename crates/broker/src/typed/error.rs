//! The errors of opening a broker and of calling a tool.

use broker_drift::Report;
use broker_model::{CallCode, Diagnostic};
use thiserror::Error;

use super::RawResult;
use crate::core::{CoreError, RefusalCause};

/// Why a call returned no output.
#[derive(Clone, Debug, Error)]
pub enum CallError {
    /// The broker, the source or the arguments: one of the closed list of codes, as on every surface,
    /// with its details.
    #[error("{0}")]
    Failed(Box<CoreError>),
    /// The tool ran and reported a failure (`isError`).
    #[error("the tool failed: {}", shown(.raw))]
    Tool {
        /// Its message.
        raw: RawResult,
    },
    /// The tool ran, and its answer does not fit the reviewed output schema's type.
    #[error("{message}")]
    Output {
        /// The mismatch and its place.
        message: String,
        /// Its result.
        raw: RawResult,
    },
}

/// Why a broker was not opened. No process is left running.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// The catalog was compiled for another version of this library.
    #[error(
        "the catalog has format {found}, this library reads {}; build the program again",
        crate::catalog::FORMAT
    )]
    Catalog {
        /// The catalog's format.
        found: u32,
    },
    /// Config or environment cannot be used; all problems.
    #[error("{}", listed(.0))]
    Diagnostics(Vec<Diagnostic>),
    /// A plain start is refused: a source differs from the lock, or could not be compared with it.
    #[error("{}: {}", refused(.reason), broker_doctor::report_text(.report).as_str())]
    Refused {
        /// The reason.
        reason: RefusalCause,
        /// Everything that differs.
        report: Box<Report>,
    },
    /// The broker itself failed.
    #[error("{0}")]
    Internal(String),
}

impl CallError {
    /// Returns the code, if the call failed with one; a failure that the tool reports and a mismatch have no code.
    pub fn code(&self) -> Option<CallCode> {
        match self {
            Self::Failed(error) => Some(error.code),
            Self::Tool { .. } | Self::Output { .. } => None,
        }
    }

    /// The result, if the tool returned one.
    pub const fn raw(&self) -> Option<&RawResult> {
        match self {
            Self::Failed(_) => None,
            Self::Tool { raw } | Self::Output { raw, .. } => Some(raw),
        }
    }

    /// Whether the server may have executed the call. Repeating a call that was executed can do harm.
    pub fn maybe_executed(&self) -> bool {
        match self {
            Self::Failed(error) => error.maybe_executed == Some(true),
            Self::Tool { .. } | Self::Output { .. } => true,
        }
    }
}

impl From<CoreError> for CallError {
    fn from(error: CoreError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<Box<CoreError>> for CallError {
    fn from(error: Box<CoreError>) -> Self {
        Self::Failed(error)
    }
}

fn shown(raw: &RawResult) -> String {
    broker_model::text::shown_line(&raw.text(), 300)
}

fn listed(diagnostics: &[Diagnostic]) -> String {
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn refused(reason: &RefusalCause) -> &'static str {
    match reason {
        RefusalCause::Drift => "the tools of the sources differ from the lock",
        RefusalCause::Unchecked => "a source could not be compared with the lock",
    }
}
