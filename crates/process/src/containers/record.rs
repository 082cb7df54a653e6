//! The file with the containers of a process. The process has a lock on it, so that a file without a lock is of a process
//! that was killed. The system ends the lock with the process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use super::name_digits;

/// The ending of the name of a file.
const ENDING: &str = "containers";
/// The maximum number of files that a start looks at.
const MAX_RECORDS: usize = 1_000;
/// The maximum length of a file.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// The file of this process. It is removed when this is dropped.
pub(super) struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// Makes an empty file.
    pub(super) fn create() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = folder();
        let made = DirBuilder::new().mode(0o700).create(&folder);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => check_folder(&folder)?,
        }
        // No path is used twice: another process may have found the earlier file.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let new = folder.join(format!("{}-{number}.new", name_digits()));
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Other processes look at it only now that it has its lock.
        let path = new.with_extension(ENDING);
        fs::rename(&new, &path)?;
        Ok(Self { path, file })
    }

    /// Writes the content.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        rewrite(&mut self.file, bytes)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes the file of a process.
pub(super) fn remove(path: &Path) {
    // It may be gone: its containers were removed, too.
    let _: io::Result<()> = fs::remove_file(path);
}

/// Calls `visit` with the content of each file of a process that has ended, and writes what it returns. A file without
/// content is removed.
pub(super) fn visit_abandoned(mut visit: impl FnMut(&[u8]) -> Vec<u8>) {
    let folder = folder();
    if check_folder(&folder).is_err() {
        return;
    }
    let Ok(entries) = fs::read_dir(&folder) else {
        return;
    };
    for entry in entries.flatten().take(MAX_RECORDS) {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == ENDING)
            && let Err(error) = visit_file(&path, &mut visit)
        {
            tracing::debug!(%error, "a file with containers cannot be read");
        }
    }
}

fn visit_file(path: &Path, visit: &mut impl FnMut(&[u8]) -> Vec<u8>) -> io::Result<()> {
    // A file that another process removes meanwhile is an error; its containers are not lost.
    let mut file = File::options().read(true).write(true).open(path)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    (&file).take(MAX_RECORD_BYTES).read_to_end(&mut bytes)?;
    let rest = visit(&bytes);
    rewrite(&mut file, &rest)?;
    if rest.is_empty() {
        remove(path);
    }
    Ok(())
}

/// Writes bytes in place of the content of a file. A process that is killed meanwhile leaves the new list: its end is
/// written before the rest of the old one is cut off.
pub(super) fn rewrite(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Returns the folder of the files of this user.
fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("mcp-broker-{}", geteuid().as_raw()))
}

/// Refuses a folder into which other users may write.
fn check_folder(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if is_ours {
        return Ok(());
    }
    Err(io::Error::other(
        "the folder for the containers of brokers may be written by others",
    ))
}
