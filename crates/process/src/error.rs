//! Why a process did not start, and how a process ended. All texts are safe to show: secrets are masked
//! and characters are printable.

use std::fmt;

use broker_model::SourceCause;

/// Why a process was not started.
#[derive(Clone, Debug)]
pub struct SpawnError {
    /// The stable cause.
    pub cause: SourceCause,
    /// The event: a lowercase fragment.
    pub message: String,
}

/// The exit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitReport {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

impl SpawnError {
    pub(crate) fn new(cause: SourceCause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
        }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpawnError {}

/// `exited with code 3`, `was killed by signal 9`.
impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (_, Some(signal)) => write!(f, "was killed by signal {signal}"),
            (Some(code), None) => write!(f, "exited with code {code}"),
            (None, None) => f.write_str("ended"),
        }
    }
}
