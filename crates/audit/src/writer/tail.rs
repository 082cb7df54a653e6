//! Reads the two ends of a file.

use std::path::Path;

use crate::chain::{Chain, hash_of};
use crate::file::{FileLayer, LogFile};
use crate::line::{Line, MAX_LINE_BYTES, Torn, day_of, parse};

/// The bytes at the end of a file that are searched for a line.
const TAIL_BYTES: u64 = 1 << 20;

/// The end of a file.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) chain: Chain,
    /// What follows the last line, and whether it ends with a line feed.
    pub(super) torn: Option<(Torn, bool)>,
}

/// Reads the end of a file; `None` if it has no line of a log.
pub(super) fn tail(file: &mut dyn LogFile, size: u64) -> std::io::Result<Option<Tail>> {
    let from = size.saturating_sub(TAIL_BYTES);
    let bytes = file.read_at(from, TAIL_BYTES as usize)?;
    let mut end = bytes.len();
    while end > 0 {
        // A line ends with a line feed. What follows the last one is torn.
        let Some(feed) = bytes[..end].iter().rposition(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let begin = bytes[..feed].iter().rposition(|byte| *byte == b'\n');
        let begin = match begin {
            Some(before) => before + 1,
            None if from == 0 => 0,
            None => return Ok(None),
        };
        if let Ok(line) = parse(&bytes[begin..feed]) {
            let rest = &bytes[feed + 1..];
            return Ok(Some(Tail {
                chain: chain_of(&line, &bytes[begin..feed]),
                torn: (!rest.is_empty()).then(|| {
                    let has_line_feed = rest.ends_with(b"\n");
                    let content = rest.strip_suffix(b"\n").unwrap_or(rest);
                    let torn = Torn {
                        bytes: content.len() as u64,
                        hash: hash_of(content),
                    };
                    (torn, has_line_feed)
                }),
            }));
        }
        end = feed;
    }
    Ok(None)
}

fn chain_of(line: &Line<'_>, bytes: &[u8]) -> Chain {
    Chain {
        stream: line.stream.to_string(),
        seq: line.seq,
        hash: hash_of(bytes),
    }
}

/// Reads the number and the day of the first line.
pub(super) fn first_line(file: &mut dyn LogFile) -> std::io::Result<Option<(u64, String)>> {
    let bytes = file.read_at(0, MAX_LINE_BYTES)?;
    let line = bytes.split(|byte| *byte == b'\n').next();
    let line = line.and_then(|line| parse(line).ok());
    Ok(line.map(|line| (line.seq, day_of(&line.at).to_owned())))
}

/// Reads the end of an older file.
pub(super) fn tail_of(disk: &dyn FileLayer, path: &Path) -> std::io::Result<Option<Tail>> {
    let mut file = disk.read(path)?;
    let size = file.size()?;
    tail(&mut *file, size)
}
