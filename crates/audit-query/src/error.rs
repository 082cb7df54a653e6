//! The reasons why a question has no answer.

use broker_audit::VerifyError;
use broker_model::Diagnostic;

/// The reason why a question has no answer: an argument or a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The log cannot be read.
    #[error("{0}; name the files of an audit log")]
    Log(#[from] VerifyError),
    /// No line has the number.
    #[error(
        "the log has no line {seq}: its lines are {first} to {last}; name a line of it, or more files of the log"
    )]
    NoLine {
        /// The number.
        seq: u64,
        /// The first number of the files.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// Lines of several logs have the number.
    #[error("line {0} is in several logs; name the files of one")]
    SeveralLogs(u64),
    /// A named file cannot be used.
    #[error("{0}")]
    Argument(String),
    /// A config or a lock has problems.
    #[error("the config or the lock cannot be used")]
    Files(Vec<Diagnostic>),
}
