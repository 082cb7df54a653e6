//! The reasons why a store is not opened, or does not do what it is asked.

use std::io;
use std::path::PathBuf;

/// The reason why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The owner has the maximum number of queued jobs, or uses its part of the store.
    #[error("{}", owner_full(*.limit, *.max))]
    OwnerFull {
        /// The limit that was reached.
        limit: FullLimit,
        /// Its size.
        max: u64,
    },
    /// The store has the maximum number of unfinished jobs, or of bytes.
    #[error("{}", store_full(*.limit, *.max))]
    Full {
        /// The limit that was reached.
        limit: FullLimit,
        /// Its size.
        max: u64,
    },
    /// The disk is full. Jobs that exist go on in the room that is reserved for them.
    #[error("the disk of the job store has no room for another job; make room")]
    NoSpace,
    /// The store cannot be used until the broker is started again.
    #[error("the job store cannot be used: {reason}")]
    Unavailable {
        /// The reason and the remedy.
        reason: String,
    },
}

/// The reason why a group of changes does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The disk is full.
    NoSpace,
    /// The store cannot be used until it is opened again. The text has the reason and the remedy.
    Unavailable(String),
}

impl OpenError {
    /// Returns the word for the state of the store.
    pub const fn state(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "store_in_use",
            Self::Io { .. }
            | Self::NetworkFileSystem { .. }
            | Self::Newer { .. }
            | Self::NotAStore { .. }
            | Self::Damaged { .. }
            | Self::ReadOnly(_)
            | Self::NoSpace(_)
            | Self::Thread(_)
            | Self::NotBuilt => STORE_UNAVAILABLE,
        }
    }
}

/// The word for a store that cannot be used, unless another process holds it.
pub const STORE_UNAVAILABLE: &str = "store_unavailable";

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoSpace => Self::NoSpace,
            Failure::Unavailable(reason) => Self::Unavailable { reason },
        }
    }
}

/// A limit of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullLimit {
    /// The number of queued jobs of an owner.
    Queued,
    /// The number of unfinished jobs.
    Unfinished,
    /// The bytes of jobs, results and events.
    Bytes,
}

fn owner_full(limit: FullLimit, max: u64) -> String {
    match limit {
        FullLimit::Queued | FullLimit::Unfinished => {
            format!("the caller has {max} queued jobs; wait until some have ended")
        }
        FullLimit::Bytes => format!(
            "the jobs of the caller use their {max} bytes of the store; wait until results expire"
        ),
    }
}

fn store_full(limit: FullLimit, max: u64) -> String {
    match limit {
        FullLimit::Queued | FullLimit::Unfinished => {
            format!("{max} jobs have not ended; call again later")
        }
        FullLimit::Bytes => format!("the job store is full ({max} bytes); call again later"),
    }
}

/// The reason why a store was not opened. The file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file or its folder cannot be used.
    #[error("the job store `{}`: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another process holds the store.
    #[error("the job store `{}` is used by {holder}; give each broker its store", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process that holds it, as far as it is known.
        holder: String,
    },
    /// The file is on a file system of another machine, where locks are not reliable.
    #[error("the job store `{}` is on a network file system ({kind}); name a file on a local disk", path.display())]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// The kind of the file system.
        kind: String,
    },
    /// A newer version of the broker made the file.
    #[error("the job store `{}` has version {found}, this broker reads up to {known}; start the newer broker or name another file", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// The file at the path is not a job store.
    #[error("`{}` is not a job store: {found}; name another file", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The sign of it.
        found: String,
    },
    /// The content is damaged.
    #[error("the job store `{}` is damaged: {found}; keep a copy of it, then remove it or restore a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first fault.
        found: String,
    },
    /// The file or its folder cannot be written.
    #[error("the job store `{}` cannot be written; let the user of the broker write the file and its folder", .0.display())]
    ReadOnly(PathBuf),
    /// The disk is full.
    #[error("the disk of the job store `{}` is full; make room", .0.display())]
    NoSpace(PathBuf),
    /// The thread of the store cannot be started.
    #[error("the thread of the job store cannot be started: {0}")]
    Thread(io::Error),
    /// The build has no store in a file.
    #[error(
        "`jobs.store` and files of jobs need the feature `sqlite`, and this broker was built without it; build it with the feature, or leave the key out"
    )]
    NotBuilt,
}
