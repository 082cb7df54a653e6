//! The settings of a log.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::clock::Clock;
use crate::key::AuditKey;

/// The default size of a file.
const ROTATE_BYTES: u64 = 100 << 20;
/// The default maximum number of lines that wait.
const QUEUE_LINES: usize = 8192;
/// The maximum number of lines between two checkpoints.
pub(crate) const CHECKPOINT_LINES: u64 = 1000;
/// The maximum time between a line and the next checkpoint.
pub(crate) const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);

/// The settings of a log.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// The file. Older files are beside it.
    pub file: PathBuf,
    /// Whether a batch of lines is synced.
    pub sync: SyncMode,
    /// When a new file is begun.
    pub rotate: Rotation,
    /// The number of older files that are kept; `None` keeps all.
    pub keep: Option<usize>,
    /// The key that signs checkpoints.
    pub key: Option<AuditKey>,
    /// The form of lines.
    pub format: Format,
    /// The version of the broker, for the line `start`.
    pub broker_version: String,
    /// The maximum number of lines that wait. One caller has half of it.
    pub queue_lines: usize,
    /// Gets a copy of every line.
    pub copy: Option<Arc<dyn LineCopy>>,
    /// The clock.
    pub clock: Clock,
}

/// Takes copies of lines, on the thread that writes them. A line is copied when it is made: it may be written later.
pub trait LineCopy: fmt::Debug + Send + Sync {
    /// Takes the bytes of a line, without its end. It must not block.
    fn take(&self, line: &[u8], at: SystemTime);
}

/// Whether a batch of lines is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// One `fdatasync` for each batch. A call waits for the sync of its begin line.
    #[default]
    Batch,
    /// None. Lines of the last seconds may be lost when the machine loses power, not when the broker ends.
    None,
}

/// When a new file is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// When the file has this many bytes.
    Size(u64),
    /// When a day of UTC ends.
    Day,
}

/// The form of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The form of this package.
    #[default]
    Native,
    /// Events of the Open Cybersecurity Schema Framework.
    Ocsf(OcsfVersion),
}

impl AuditSettings {
    /// Returns the default settings for a file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            sync: SyncMode::default(),
            rotate: Rotation::default(),
            keep: None,
            key: None,
            format: Format::default(),
            broker_version: String::new(),
            queue_lines: QUEUE_LINES,
            copy: None,
            clock: Clock::system(),
        }
    }
}

impl Default for Rotation {
    fn default() -> Self {
        Self::Size(ROTATE_BYTES)
    }
}

/// A version of the Open Cybersecurity Schema Framework.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OcsfVersion {
    /// The release 1.8.0.
    #[default]
    V1_8,
    /// The version in development, with the profile `record_integrity`.
    V1_9Dev,
}

impl OcsfVersion {
    /// Returns the version as events have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::V1_8 => "1.8.0",
            Self::V1_9Dev => "1.9.0-dev",
        }
    }
}
