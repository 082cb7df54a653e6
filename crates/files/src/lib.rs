//! Reads files of people and other programs: only regular files, and at most a number of bytes. A device, a
//! pipe without a writer or a huge file gives an error at once instead of filling memory.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

mod models;
mod programs;
mod replace;

pub use models::{
    CACHE_VARIABLES, Lookup, MODEL_VARIABLES, ModelNotFound, find_model, model_of_variable,
};

pub use programs::{exists, is_same_file, program_name};
pub use replace::{link_target, put_in_place, with_help};

/// Time for a pipe to be written and closed.
pub const PIPE_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval between checks of an empty pipe.
const PIPE_INTERVAL: Duration = Duration::from_millis(10);

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A folder, a device, a pipe or a socket.
    #[error("it is {0}; name a regular file")]
    Kind(FileKind),
    /// Larger than the maximum.
    #[error("it has more than {0} bytes, which is the most that is read")]
    Size(usize),
    /// Not UTF-8.
    #[error("it is not UTF-8")]
    Encoding,
    /// A pipe whose writer does not close it.
    #[error("nothing has written all of it to the pipe within {} s", PIPE_TIMEOUT.as_secs())]
    Pipe,
}

/// The kind of a file that is not a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A folder.
    Folder,
    /// A named or unnamed pipe.
    Pipe,
    /// A character or block device.
    Device,
    /// A socket, or a kind of file that only this operating system has.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Folder => "a folder",
            Self::Pipe => "a pipe",
            Self::Device => "a device",
            Self::Other => "a socket or the like",
        })
    }
}

impl ReadError {
    /// Whether the file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a regular file of at most `max` bytes. Links are followed.
///
/// # Errors
///
/// Every [`ReadError`] except `Encoding` and `Pipe`.
pub fn read(path: &Path, max: usize) -> Result<Vec<u8>, ReadError> {
    // The kind is checked before the file is opened, since opening some devices has an effect.
    let metadata = fs::metadata(path)?;
    is_regular(&metadata)?;
    if metadata.len() > max as u64 {
        return Err(ReadError::Size(max));
    }
    let file = open(path)?;
    // The kind is checked again, since the path may name another file now.
    is_regular(&file.metadata()?)?;
    read_from(file, max)
}

/// Reads a file like [`read`], as text.
///
/// # Errors
///
/// Every [`ReadError`] except `Pipe`.
pub fn read_text(path: &Path, max: usize) -> Result<String, ReadError> {
    text(read(path, max)?)
}

/// Reads a stream to its end, at most `max` bytes.
///
/// # Errors
///
/// `Io` and `Size` of [`ReadError`].
pub fn read_from(source: impl Read, max: usize) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    source.take(max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(ReadError::Size(max));
    }
    Ok(bytes)
}

/// Returns bytes as text.
///
/// # Errors
///
/// `Encoding` of [`ReadError`].
pub fn text(bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|_| ReadError::Encoding)
}

/// Returns a text without the byte order mark that editors of Windows write at its beginning.
pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Whether a regular file contains exactly these bytes.
pub fn holds(path: &Path, bytes: &[u8]) -> bool {
    read(path, bytes.len()).is_ok_and(|old| old == bytes)
}

/// Reads a text like [`read_text`] from a regular file or a pipe, such as a shell makes for `<(command)`. The writer of
/// a pipe must begin and end within [`PIPE_TIMEOUT`].
///
/// # Errors
///
/// Every [`ReadError`].
pub fn read_text_or_pipe(path: &Path, max: usize) -> Result<String, ReadError> {
    match read_text(path, max) {
        Err(ReadError::Kind(FileKind::Pipe)) => text(read_pipe(&mut open(path)?, max)?),
        outcome => outcome,
    }
}

fn read_pipe(pipe: &mut File, max: usize) -> Result<Vec<u8>, ReadError> {
    // Polls are counted instead of time: this runs before any runtime and needs no exact time.
    let mut looks = PIPE_TIMEOUT.as_millis() / PIPE_INTERVAL.as_millis();
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match pipe.read(&mut piece) {
            // An end without a byte before it means that no process has opened the pipe for writing.
            Ok(0) if !bytes.is_empty() => return Ok(bytes),
            Ok(count) if count > 0 => {
                bytes.extend_from_slice(&piece[..count]);
                if bytes.len() > max {
                    return Err(ReadError::Size(max));
                }
                continue;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        if looks == 0 {
            return Err(ReadError::Pipe);
        }
        looks -= 1;
        std::thread::sleep(PIPE_INTERVAL);
    }
}

/// Opens a file without waiting for the writer of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    options.open(path)
}

fn is_regular(metadata: &fs::Metadata) -> Result<(), ReadError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(ReadError::Kind(FileKind::Folder));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return Err(ReadError::Kind(FileKind::Pipe));
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Err(ReadError::Kind(FileKind::Device));
        }
    }
    Err(ReadError::Kind(FileKind::Other))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::TempDir::new().unwrap()
    }

    fn pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[test]
    fn file_is_read_up_to_its_limit_also_through_a_link() {
        let folder = folder();
        let (file, link) = (folder.path().join("f"), folder.path().join("l"));
        fs::write(&file, "12345").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(read_text(&link, 5).unwrap(), "12345");
        assert!(matches!(read(&link, 4), Err(ReadError::Size(4))));
        assert!(holds(&file, b"12345") && !holds(&file, b"1234") && !holds(&file, b"123456"));
        fs::write(&file, [0xff]).unwrap();
        assert!(matches!(read_text(&file, 5), Err(ReadError::Encoding)));
        assert!(
            read(&folder.path().join("none"), 5)
                .unwrap_err()
                .is_not_found()
        );
    }

    #[test]
    fn file_that_is_not_regular_is_refused_at_once() {
        let folder = folder();
        pipe(&folder.path().join("pipe"));
        for device in ["full", "zero", "null"] {
            symlink(Path::new("/dev").join(device), folder.path().join(device)).unwrap();
        }
        for (name, kind) in [
            ("full", FileKind::Device),
            ("zero", FileKind::Device),
            ("null", FileKind::Device),
            ("pipe", FileKind::Pipe),
            (".", FileKind::Folder),
        ] {
            let error = read(&folder.path().join(name), 5).unwrap_err();
            assert!(
                matches!(error, ReadError::Kind(found) if found == kind),
                "{name}: {error}"
            );
        }
    }

    #[test]
    fn file_that_is_sparse_and_too_large_is_refused() {
        let folder = folder();
        let file = folder.path().join("sparse");
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(read(&file, 1 << 10), Err(ReadError::Size(1024))));
    }

    #[test]
    fn pipe_is_read_to_its_end_and_refused_without_a_writer() {
        let folder = folder();
        let path = folder.path().join("pipe");
        pipe(&path);
        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                File::options()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .write_all(b"word")
            }
        });
        assert_eq!(read_text_or_pipe(&path, 10).unwrap(), "word");
        writer.join().unwrap().unwrap();
        assert!(matches!(read_text_or_pipe(&path, 10), Err(ReadError::Pipe)));
    }
}
