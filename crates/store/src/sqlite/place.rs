//! The place of the file: its folder, the lock by which one process holds it, and its identity.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::OpenError;

/// The mode of each file of a store: its user reads and writes it.
const MODE: u32 = 0o600;
/// The maximum bytes of a lock file that are shown.
const MAX_HOLDER_BYTES: u64 = 64;

/// Returns the path of a file next to the store.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Returns an error of a file as the reason why a store is not opened.
pub(super) fn open_error(path: &Path, error: io::Error) -> OpenError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            OpenError::ReadOnly(path)
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::NoSpace(path),
        _ => OpenError::Io { path, error },
    }
}

/// Returns the path without links, so that each store has one name.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let failed = |error| open_error(path, error);
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            let name = path
                .file_name()
                .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            Ok(fs::canonicalize(folder).map_err(failed)?.join(name))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The lock of a store: as long as this value lives, no other process opens the store.
#[derive(Debug)]
pub(super) struct PlaceLock {
    _file: File,
}

impl PlaceLock {
    /// Takes the lock. The file of the lock stays: a lock on a file that another process removes would not exclude a third.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let failed = |error| open_error(path, error);
        let mut options = create_options();
        let lock = beside(path, ".lock");
        let mut file = options
            .create(true)
            .truncate(false)
            .open(lock)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(OpenError::InUse {
                    path: path.to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(error) => return Err(failed(error.into())),
        }
        // The text only helps a person who finds the store in use.
        let written = file
            .set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()));
        match written {
            Ok(()) => Ok(Self { _file: file }),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(Self { _file: file }),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Returns the process that wrote a lock file.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(MAX_HOLDER_BYTES).read_to_string(&mut text));
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!("the process {pid}"),
        _ => "another process".to_owned(),
    }
}

/// Returns options that read and write, create with the mode of a store, and follow no link: the names of these files are
/// known to everyone who may write the folder.
pub(super) fn create_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .mode(MODE)
        .custom_flags(no_follow());
    options
}

/// Returns the flag by which a link is not opened.
fn no_follow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Takes the rights of other users from an existing file, and refuses one that its user may not write.
pub(super) fn secure(path: &Path) -> Result<(), OpenError> {
    let failed = |error| open_error(path, error);
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(OpenError::NotAStore {
            path: path.to_owned(),
            found: "it is not a regular file".to_owned(),
        });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & MODE != MODE {
        return Err(OpenError::ReadOnly(path.to_owned()));
    }
    if mode != MODE {
        fs::set_permissions(path, fs::Permissions::from_mode(MODE)).map_err(failed)?;
    }
    Ok(())
}

/// Syncs the folder of a file, so that the name of the file is on the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    File::open(folder)?.sync_all()
}

/// The identity of a file on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    /// Returns the identity of the file at a path.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }
}
