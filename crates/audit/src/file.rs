//! The file layer: what the writer asks of the file system. The file layer of tests can fail, and records the order of
//! operations.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The mode of files: they name callers.
const MODE: u32 = 0o600;

/// A file that is written at its end.
pub trait LogFile: Send + fmt::Debug {
    /// Returns the size.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn size(&self) -> io::Result<u64>;

    /// Appends bytes, at least one, and returns their number.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the bytes are on the disk.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn sync(&mut self) -> io::Result<()>;

    /// Allocates the bytes from `from` to `to` without a change of the size. `Unsupported` if the file system cannot.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn allocate(&mut self, from: u64, to: u64) -> io::Result<()>;

    /// Sets the size, and gives back what is allocated behind it.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn truncate(&mut self, size: u64) -> io::Result<()>;

    /// Reads up to `max` bytes from a place.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn read_at(&mut self, from: u64, max: usize) -> io::Result<Vec<u8>>;

    /// Takes the lock of the file, if no other process has it.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn try_lock(&mut self) -> io::Result<bool>;

    /// Whether a path names this file.
    fn is_at(&self, path: &Path) -> bool;
}

/// A file system.
pub trait FileLayer: Send + fmt::Debug {
    /// Opens a file for appending, and creates it with the mode 0600 if it does not exist.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn read(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;

    /// Gives a file another name, and syncs the folder.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file, and syncs the folder.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Replaces a file with the mode 0600 at once: a reader sees the old bytes or the new ones.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Returns the files of a folder.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Returns the free bytes of the file system with this folder.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn free_bytes(&self, folder: &Path) -> io::Result<u64>;
}

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

#[derive(Debug)]
struct DiskFile {
    file: File,
}

impl FileLayer for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(MODE);
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Box::new(DiskFile { file }))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let file = File::open(path)?;
        Ok(Box::new(DiskFile { file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if to.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(from, to)?;
        sync_folder(to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)?;
        sync_folder(path)
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(MODE);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&new, path)?;
        sync_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    }

    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl LogFile for DiskFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn allocate(&mut self, from: u64, to: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};

        let length = to.saturating_sub(from);
        let flags = FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| fallocate(&self.file, flags, from, length)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&mut self, _from: u64, _to: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn read_at(&mut self, from: u64, max: usize) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        (&self.file).take(max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn try_lock(&mut self) -> io::Result<bool> {
        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;

        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        let here = self.file.metadata();
        let there = fs::metadata(path);
        here.is_ok_and(|here| {
            there.is_ok_and(|there| (here.dev(), here.ino()) == (there.dev(), there.ino()))
        })
    }
}

/// Syncs the folder of a file, so that the name of the file is on the disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}
