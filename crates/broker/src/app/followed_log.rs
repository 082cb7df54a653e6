//! A file of an audit log that is read line by line while it grows, through its rotations.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use broker_audit::rotated_name;

/// The maximum bytes of a line; the log has no longer ones.
const MAX_LINE_BYTES: usize = 256 << 10;

/// A file that is followed.
pub(super) struct FollowedLog {
    path: PathBuf,
    reader: BufReader<File>,
    /// The begin of a line whose end was not written yet.
    part: Vec<u8>,
    /// The number of the last line.
    last: Option<u64>,
    /// Whether another file has the path, so that this one has no more lines than it has now.
    is_complete: bool,
}

impl FollowedLog {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::new(File::open(path)?),
            part: Vec::new(),
            last: None,
            is_complete: false,
        })
    }

    /// Notes the number of the line that was returned last.
    pub(super) const fn note(&mut self, seq: u64) {
        self.last = Some(seq);
    }

    /// Returns the next complete line; `None` if there is none yet.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            // A file without a line end must not fill the memory.
            let room = (MAX_LINE_BYTES + 1 - self.part.len()) as u64;
            let mut reader = self.reader.by_ref().take(room);
            reader.read_until(b'\n', &mut self.part)?;
            match self.part.last() {
                Some(b'\n') => return Ok(Some(std::mem::take(&mut self.part))),
                _ if self.part.len() > MAX_LINE_BYTES => {
                    return Err(io::Error::other("a line is too long for an audit log"));
                }
                _ if self.is_complete => self.open_next()?,
                // Lines that were written before the file was renamed are read first.
                _ if self.is_replaced()? => self.is_complete = true,
                _ => return Ok(None),
            }
        }
    }

    /// Opens the file with the next line: the one that was renamed since, if there were several rotations, else the one at
    /// the path. The begin of a line that a broker could not finish is left out.
    fn open_next(&mut self) -> io::Result<()> {
        let next = self.last.map(|last| rotated_name(&self.path, last + 1));
        let opened = next.as_ref().map(File::open).transpose();
        let file = match opened {
            Ok(Some(file)) => file,
            Ok(None) | Err(_) => File::open(&self.path)?,
        };
        self.reader = BufReader::new(file);
        self.part.clear();
        self.is_complete = false;
        Ok(())
    }

    /// Whether another file has the path now.
    fn is_replaced(&self) -> io::Result<bool> {
        let own = self.reader.get_ref().metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(now) => Ok((now.dev(), now.ino()) != (own.dev(), own.ino())),
            // The next file is not there yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    /// Returns the numbers of the lines that there are; a line is its number.
    fn lines(log: &mut FollowedLog) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(line) = log.next().unwrap() {
            let seq = String::from_utf8(line).unwrap().trim().parse().unwrap();
            log.note(seq);
            all.push(seq);
        }
        all
    }

    fn append(path: &Path, text: &str) {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn followed_log_has_every_line_of_several_rotations_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        append(&path, "1\n2\n3");
        let mut log = FollowedLog::open(&path).unwrap();
        assert_eq!(lines(&mut log), [1, 2]);
        // Three files since the last look; the third line was half written then.
        append(&path, "\n4\n");
        fs::rename(&path, rotated_name(&path, 1)).unwrap();
        assert_eq!(lines(&mut log), [3, 4], "the next file is not there yet");
        append(&path, "5\n6\n");
        fs::rename(&path, rotated_name(&path, 5)).unwrap();
        append(&path, "7\n");
        fs::rename(&path, rotated_name(&path, 7)).unwrap();
        append(&path, "8\n");
        assert_eq!(lines(&mut log), [5, 6, 7, 8]);
        append(&path, "9\n");
        assert_eq!(lines(&mut log), [9]);
        // A broker was killed while it wrote, and its successor begins another file.
        append(&path, "10");
        fs::rename(&path, folder.path().join("moved.jsonl")).unwrap();
        append(&path, "11\n");
        assert_eq!(lines(&mut log), [11]);
        // The file of the next lines was removed.
        fs::rename(&path, folder.path().join("gone.jsonl")).unwrap();
        append(&path, "20\n");
        assert_eq!(lines(&mut log), [20]);
    }

    #[test]
    fn line_without_an_end_does_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        append(&path, &"x".repeat(1 << 20));
        let mut log = FollowedLog::open(&path).unwrap();
        assert!(log.next().is_err());
    }
}
