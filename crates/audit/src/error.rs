//! The reasons why the audit log takes no line.

use std::io;
use std::path::PathBuf;

use crate::key::KeyError;

/// The reason why the log was not opened, or takes no call now.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file cannot be opened, read or written.
    #[error("the audit log `{}`: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another process writes the file.
    #[error("the audit log `{}` is written by another process; give each broker its file", .0.display())]
    Locked(PathBuf),
    /// The end of the file has no line of an audit log.
    #[error("`{}` is not an audit log: its last 8 MiB have no line of one; name another file", .0.display())]
    NotALog(PathBuf),
    /// The file system has no room for the lines of the call.
    #[error("the file system of the audit log has no room for another call; make room")]
    Full,
    /// A write or a sync failed.
    #[error("the audit log cannot be written: {0}")]
    Write(String),
    /// The queue has no place for another line, or none for this caller.
    #[error("too many lines wait for the audit log; call again later")]
    Busy,
    /// The log was closed.
    #[error("the audit log is closed")]
    Closed,
    /// The key is unusable.
    #[error(transparent)]
    Key(#[from] KeyError),
}
