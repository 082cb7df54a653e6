//! Reads a file line by line, with a bound on the length of a line.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use crate::line::MAX_LINE_BYTES;

/// The lines of a file.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    buffer: Vec<u8>,
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawLine<'a> {
    /// The bytes without the line feed. Of a line that is too long, a part.
    pub(super) bytes: &'a [u8],
    /// Whether a line feed follows.
    pub(super) has_line_feed: bool,
}

impl Lines {
    /// Opens a regular file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Self {
            reader: BufReader::with_capacity(64 << 10, file),
            buffer: Vec::new(),
        })
    }

    /// Reads the next line; `None` at the end. A line that is too long comes in parts, of which the first is longer than a line
    /// may be.
    pub(super) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.buffer.clear();
        let mut bounded = (&mut self.reader).take(MAX_LINE_BYTES as u64 + 2);
        if bounded.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        let bytes = self.buffer.strip_suffix(b"\n");
        Ok(Some(RawLine {
            has_line_feed: bytes.is_some(),
            bytes: bytes.unwrap_or(&self.buffer),
        }))
    }
}
