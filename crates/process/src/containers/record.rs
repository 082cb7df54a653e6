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
/// The variable in which systemd names the folders for the state of a service.
const STATE_FOLDER: &str = "STATE_DIRECTORY";
/// The temporary folder of the machine. `TMPDIR` differs between a terminal and a service.
const TEMPORARY_FOLDER: &str = "/tmp";
/// The maximum number of files in a folder that a start looks at.
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
        let folder = usable_folder()?;
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
    for folder in folders() {
        if check_folder(&folder).is_ok() {
            visit_folder(&folder, &mut visit);
        }
    }
}

fn visit_folder(folder: &Path, visit: &mut impl FnMut(&[u8]) -> Vec<u8>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten().take(MAX_RECORDS) {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == ENDING)
            && let Err(error) = visit_file(&path, visit)
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

/// Returns the folders in which files of this user may be. A new file is in the first one that can be used. The folder in
/// `/tmp` is found whatever the environment is; a service with a `/tmp` that ends with it has a folder for its state.
fn folders() -> Vec<PathBuf> {
    let state = std::env::var_os(STATE_FOLDER);
    let state = state.iter().flat_map(std::env::split_paths).next();
    let temporary = [PathBuf::from(TEMPORARY_FOLDER), std::env::temp_dir()];
    let name = format!("mcp-broker-{}", geteuid().as_raw());
    let mut folders: Vec<_> = state
        .filter(|state| state.is_absolute())
        .into_iter()
        .collect();
    folders.extend(temporary);
    folders.dedup();
    folders.iter().map(|folder| folder.join(&name)).collect()
}

/// Returns the first folder that can be used, and makes it if necessary.
pub(super) fn usable_folder() -> io::Result<PathBuf> {
    let mut last = io::ErrorKind::NotFound.into();
    for folder in folders() {
        match make_folder(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Makes a folder that only this user may use, unless there is one.
fn make_folder(folder: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_folder(folder),
    }
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
