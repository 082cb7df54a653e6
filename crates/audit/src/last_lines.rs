//! The last lines of a file, for people who look at a running broker.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The bytes at the end of a file that are read.
const MAX_BYTES: u64 = 256 << 10;

/// Reads the last complete lines of a file, oldest first.
pub(crate) fn read(path: &Path) -> io::Result<Vec<String>> {
    // A pipe in its place would not end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(MAX_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(complete_lines(&bytes, from > 0))
}

/// Returns the lines that have their end, and if `is_cut` also surely their begin.
fn complete_lines(bytes: &[u8], is_cut: bool) -> Vec<String> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let whole = lines.into_iter().skip(usize::from(is_cut));
    whole
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_lines_are_read() {
        for (text, is_cut, expected) in [
            ("", false, vec![]),
            ("a\nb\nc", false, vec!["a", "b"]),
            ("a\nb\nc\n", true, vec!["b", "c"]),
            ("a", true, vec![]),
        ] {
            assert_eq!(complete_lines(text.as_bytes(), is_cut), expected, "{text}");
        }
    }

    #[test]
    fn end_of_a_long_file_is_read_and_a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let lines: Vec<String> = (0..60_000).map(|at| format!("{at:09}")).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let last = read(&path).unwrap();
        assert_eq!(last.last().unwrap(), "000059999");
        assert!(last.len() * 10 <= MAX_BYTES as usize, "{}", last.len());
        assert!(last.iter().all(|line| line.len() == 9));
        assert!(read(folder.path()).is_err());
    }
}
