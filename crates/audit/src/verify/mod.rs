//! Verifies files of a log: reads them once, in the order of their lines, and compares each line with the one before, with
//! the signatures of checkpoints, and with a given head.

mod check;
mod read;
mod report;

use std::io;
use std::path::{Path, PathBuf};

use crate::head::Head;
use crate::key::PublicKey;
use crate::line::parse;
use check::Check;
use read::Lines;
pub use report::{Anchor, Finding, FindingKind, FoundBy, LeftOpen, Report};

/// What files are compared with.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The key of checkpoints.
    pub key: Option<PublicKey>,
    /// A head that was kept elsewhere.
    pub head: Option<Head>,
}

/// The reason why files cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file cannot be read.
    #[error("`{}`: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The files have no line of a log.
    #[error("`{}` has no line of an audit log", .0.display())]
    NotALog(PathBuf),
}

/// Verifies files, given in any order. Memory is bounded: of each file one line at a time, and of calls those that are open.
///
/// # Errors
///
/// Every [`VerifyError`]. Changes are findings, not errors.
pub fn verify(files: &[PathBuf], options: &VerifyOptions) -> Result<Report, VerifyError> {
    let mut sorted = Vec::with_capacity(files.len());
    for file in files {
        let first = first_seq(file).map_err(|error| io_error(file, error))?;
        sorted.push((first, file));
    }
    if let Some((_, file)) = sorted.first()
        && sorted.iter().all(|(first, _)| first.is_none())
    {
        return Err(VerifyError::NotALog(file.to_path_buf()));
    }
    // A file whose first line cannot be read is compared last: its lines show there.
    sorted.sort_by_key(|(first, _)| first.unwrap_or(u64::MAX));
    let mut check = Check::new(options);
    for (_, file) in &sorted {
        check.file(file).map_err(|error| io_error(file, error))?;
    }
    Ok(check.finish(files.len()))
}

fn io_error(file: &Path, error: io::Error) -> VerifyError {
    VerifyError::Io {
        file: file.to_owned(),
        error,
    }
}

/// Reads the number of the first line that can be read.
fn first_seq(file: &Path) -> io::Result<Option<u64>> {
    let mut lines = Lines::open(file)?;
    while let Some(line) = lines.next()? {
        if let Ok(line) = parse(line.bytes) {
            return Ok(Some(line.seq));
        }
    }
    Ok(None)
}
