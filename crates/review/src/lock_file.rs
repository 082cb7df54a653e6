//! Locks as they are in files.

use std::path::{Path, PathBuf};

use broker_build::build_script::lock_text;
use broker_build::lock_file;
use broker_files::ReadError;
use broker_model::Diagnostic;
use broker_model::lock::{Lock, MAX_BYTES};

/// `c.json` for `c.lock.json`.
pub fn config_of_lock(lock: &Path) -> Option<PathBuf> {
    let stem = lock.file_name()?.to_str()?.strip_suffix(".lock.json")?;
    Some(lock.with_file_name(format!("{stem}.json")))
}

/// A lock as it was read.
#[derive(Debug)]
pub struct LockFile {
    pub lock: Lock,
    /// The text of the file, for the lines of findings.
    pub text: String,
}

/// Reads a lock.
pub fn read_lock(path: &Path) -> Result<LockFile, Vec<Diagnostic>> {
    parse_lock(path, broker_files::read_text(path, MAX_BYTES))
}

/// The lock in a text that was read from `path`, or the reason why it cannot be read.
pub fn parse_lock(
    path: &Path,
    text: Result<String, ReadError>,
) -> Result<LockFile, Vec<Diagnostic>> {
    let shown = path.to_string_lossy();
    let text = lock_text(text, &shown)?;
    Lock::parse(&shown, &text).map(|lock| LockFile { lock, text })
}

/// Reads the lock beside a config.
pub fn lock_of_config(config: &Path) -> Result<Lock, Vec<Diagnostic>> {
    read_lock(&lock_file(config)).map(|file| file.lock)
}
