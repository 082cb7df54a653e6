//! Verifies files of a log: reads them once, in the order of their lines, and compares each line with the one before, with
//! the signatures of checkpoints, and with a given head.

mod check;
mod read;
mod report;

use std::io;
use std::path::{Path, PathBuf};

use crate::head::Head;
use crate::key::PublicKey;
use crate::line::{Line, LineError, parse};
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
    let sorted = sorted_files(files)?;
    let mut check = Check::new(options);
    for file in &sorted {
        check.file(file).map_err(|error| io_error(file, error))?;
    }
    Ok(check.finish(files.len()))
}

/// The place of a line: its file, and its number in the file.
#[derive(Clone, Copy, Debug)]
pub struct LinePlace<'a> {
    /// The file.
    pub file: &'a Path,
    /// The number of the line, from 1.
    pub number: u64,
}

/// Reads the lines of files, given in any order, in the order of their numbers. Memory is bounded: one line at a time. A
/// line that is too long, or cut, is an error for `each`.
///
/// # Errors
///
/// Every [`VerifyError`].
pub fn read_lines(
    files: &[PathBuf],
    each: &mut dyn FnMut(LinePlace<'_>, Result<Line<'_>, LineError>),
) -> Result<(), VerifyError> {
    for file in sorted_files(files)? {
        let mut lines = Lines::open(file).map_err(|error| io_error(file, error))?;
        let mut number = 0;
        // A line that is too long comes in parts.
        let mut is_whole = true;
        while let Some(line) = lines.next().map_err(|error| io_error(file, error))? {
            if is_whole {
                number += 1;
                each(LinePlace { file, number }, parse(line.bytes));
            }
            is_whole = line.has_line_feed;
        }
    }
    Ok(())
}

/// Sorts files by the numbers of their first lines.
fn sorted_files(files: &[PathBuf]) -> Result<Vec<&PathBuf>, VerifyError> {
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
    Ok(sorted.into_iter().map(|(_, file)| file).collect())
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
