//! Watches files for changes. A file counts as changed when two checks in a row found the same new state, so that one that
//! is being written is not read.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use broker_config::MAX_BYTES;

/// The interval of checks of a watched file.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// The files that are watched.
#[derive(Debug)]
pub(super) enum Watch {
    /// No file.
    Nothing,
    /// One file, by its content.
    Content(Content),
    /// Several files that may be large, by what the file system knows of them.
    Stamps(Stamps),
}

impl Watch {
    /// Waits until a watched file has changed.
    pub(super) async fn changed(&mut self) {
        loop {
            let has_changed = match self {
                Self::Nothing => return std::future::pending().await,
                Self::Content(watch) => {
                    tokio::time::sleep(WATCH_INTERVAL).await;
                    watch.look()
                }
                Self::Stamps(watch) => {
                    tokio::time::sleep(WATCH_INTERVAL).await;
                    watch.look()
                }
            };
            if has_changed {
                return;
            }
        }
    }
}

/// A file, and its content when it was last applied.
#[derive(Debug)]
pub(super) struct Content {
    file: PathBuf,
    known: Option<Vec<u8>>,
    /// The different content that the last check found.
    other: Option<Vec<u8>>,
}

impl Content {
    pub(super) fn new(file: &Path) -> Self {
        Self {
            known: broker_files::read(file, MAX_BYTES).ok(),
            file: file.to_owned(),
            other: None,
        }
    }

    /// Checks the file once. Returns whether its content is new and complete. A file that cannot be
    /// read or is too large counts as being replaced.
    fn look(&mut self) -> bool {
        let Ok(now) = broker_files::read(&self.file, MAX_BYTES) else {
            return false;
        };
        if self.known.as_ref() == Some(&now) {
            self.other = None;
            return false;
        }
        if self.other.as_ref() == Some(&now) {
            self.known = self.other.take();
            return true;
        }
        self.other = Some(now);
        false
    }
}

/// Files, and what the file system knew of each when they were last read.
#[derive(Debug)]
pub(super) struct Stamps {
    files: Vec<PathBuf>,
    known: Vec<Option<Stamp>>,
    /// The different stamps that the last check found.
    other: Option<Vec<Option<Stamp>>>,
}

/// What the file system knows of a file, after every symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    file: (u64, u64),
    /// A change of the content also changes it, whatever time the writer sets.
    #[cfg(unix)]
    changed: (i64, i64),
}

impl Stamp {
    fn read(file: &Path) -> Option<Self> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        let metadata = file.metadata().ok()?;
        Some(Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            file: (metadata.dev(), metadata.ino()),
            #[cfg(unix)]
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Stamps {
    pub(super) fn new(files: &[PathBuf]) -> Self {
        Self {
            known: files.iter().map(|file| Stamp::read(file)).collect(),
            files: files.to_vec(),
            other: None,
        }
    }

    /// Checks the files once. Returns whether one has changed and all are completely written. A file that is gone
    /// counts as being replaced.
    fn look(&mut self) -> bool {
        let stamps = self.files.iter().zip(&self.known);
        let now: Vec<_> = stamps
            .map(|(file, known)| Stamp::read(file).or(*known))
            .collect();
        if now == self.known {
            self.other = None;
            return false;
        }
        if self.other.as_ref() == Some(&now) {
            self.known = now;
            self.other = None;
            return true;
        }
        self.other = Some(now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_watch_reports_a_complete_change_once() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("c.json");
        std::fs::write(&file, "1").unwrap();
        let mut watch = Content::new(&file);
        assert!(!watch.look() && !watch.look(), "as it was");
        std::fs::write(&file, "2").unwrap();
        assert!(!watch.look(), "it may still be written to");
        std::fs::write(&file, "22").unwrap();
        assert!(!watch.look(), "it was");
        assert!(watch.look());
        assert!(!watch.look(), "reported once");
        std::fs::remove_file(&file).unwrap();
        assert!(!watch.look() && !watch.look(), "not there for a moment");
        std::fs::write(&file, "22").unwrap();
        assert!(!watch.look() && !watch.look(), "back as it was");
    }

    #[test]
    fn stamps_report_a_file_that_is_replaced_or_linked_anew() {
        let folder = tempfile::TempDir::new().unwrap();
        let [config, lock, other, link] =
            ["c.json", "c.lock.json", "other", "link"].map(|name| folder.path().join(name));
        for file in [&config, &lock, &other] {
            std::fs::write(file, "1").unwrap();
        }
        std::os::unix::fs::symlink(&lock, &link).unwrap();
        let mut watch = Stamps::new(&[config, link.clone()]);
        assert!(!watch.look() && !watch.look(), "as it was");
        std::fs::write(&lock, "22").unwrap();
        assert!(!watch.look(), "it may still be written to");
        assert!(watch.look());
        assert!(!watch.look(), "reported once");
        std::fs::remove_file(&link).unwrap();
        assert!(!watch.look() && !watch.look(), "not there for a moment");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert!(!watch.look());
        assert!(watch.look());
        std::fs::rename(&lock, &other).unwrap();
        assert!(!watch.look());
        assert!(watch.look());
    }
}
