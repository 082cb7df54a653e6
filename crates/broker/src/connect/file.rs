//! Reads and replaces the file of a client: with a backup beside it, by rename, and with its mode. Takes a write back.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::disk::{NEW_MODE, beside, is_file, write_new};
use super::error::{ConnectError, usage};
use super::record::{Before, Record, Write, digest};

/// The maximum length of a file that is read.
const MAX_FILE_BYTES: usize = 8 << 20;
/// The maximum number of backups of one file.
const MAX_BACKUPS: usize = 100;
/// The bit of a mode by which the owner may write.
const OWNER_WRITES: u32 = 0o200;

/// The file of a client as it was found.
#[derive(Debug)]
pub(super) struct ClientFile {
    /// The file itself, where links end.
    path: PathBuf,
    /// Its text and its mode, if it exists.
    found: Option<(String, u32)>,
}

impl ClientFile {
    /// Reads a file of a project: no symbolic link, of the file or of a folder above it, may lead out of the project's folder.
    /// Who writes into the project, for example by a commit, must not choose which other file is changed.
    pub(super) fn open_within(folder: &Path, path: &Path) -> Result<Self, ConnectError> {
        let shown = path.display();
        let unreadable =
            |error: io::Error| ConnectError::Usage(format!("cannot read `{shown}`: {error}"));
        let root = fs::canonicalize(folder).map_err(unreadable)?;
        // The nearest part that exists decides where a missing file would be made.
        let existing = path
            .ancestors()
            .find(|one| fs::symlink_metadata(one).is_ok());
        match existing.map(fs::canonicalize) {
            Some(Ok(target)) if !target.starts_with(&root) => usage(format!(
                "`{shown}` leads out of the project by a symbolic link, to `{}`; name that file with `--file` if it is meant",
                target.display()
            )),
            _ => Self::open(path),
        }
    }

    /// Reads a file; a missing one has an empty text.
    pub(super) fn open(path: &Path) -> Result<Self, ConnectError> {
        let shown = path.display();
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return usage(format!(
                        "`{shown}` is a symbolic link to a file that does not exist; make the file or remove the link"
                    ));
                }
                return Ok(Self {
                    path: path.to_owned(),
                    found: None,
                });
            }
            Err(error) => return usage(format!("cannot read `{shown}`: {error}")),
        };
        let read = || -> Result<(String, u32), broker_files::ReadError> {
            let text = broker_files::read_text(&target, MAX_FILE_BYTES)?;
            Ok((text, fs::metadata(&target)?.permissions().mode() & 0o7777))
        };
        match read() {
            Ok(found) => Ok(Self {
                path: target,
                found: Some(found),
            }),
            Err(error) => usage(format!("cannot read `{shown}`: {error}")),
        }
    }

    /// The text of the file; of a missing file the empty one.
    pub(super) fn text(&self) -> &str {
        self.found.as_ref().map_or("", |(text, _)| text)
    }

    /// Replaces the content, after a copy of the old one to a backup, whose path is returned. With
    /// `is_private` no other user can read the new file.
    pub(super) fn replace(
        &self,
        text: &str,
        is_private: bool,
    ) -> Result<Option<PathBuf>, ConnectError> {
        let old_mode = self.found.as_ref().map(|(_, mode)| *mode);
        if old_mode.is_some_and(|mode| mode & OWNER_WRITES == 0) {
            return usage(format!(
                "`{}` is read-only; permit its owner to write it first",
                self.path.display()
            ));
        }
        let mode = old_mode.unwrap_or(NEW_MODE);
        let mode = if is_private { mode & 0o600 } else { mode };
        let mut record = Record::read(&self.path)?;
        let backup = match &self.found {
            // The old content may have the secret as well.
            Some((old, _)) => Some(self.back_up(old, mode)?),
            None => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)
                        .map_err(|error| ConnectError::write("create", folder, &error))?;
                }
                None
            }
        };
        let before = self.found.as_ref().zip(backup.as_ref());
        record.push(Write {
            before: before.map(|((old, mode), backup)| Before {
                sha256: digest(old.as_bytes()),
                mode: *mode,
                backup: backup.number,
            }),
            after: digest(text.as_bytes()),
        });
        // The record comes first: it does no harm without the write, and a write without it could not be taken back.
        let written = record
            .save(&self.path)
            .and_then(|()| self.put(text.as_bytes(), mode));
        if let Err(error) = written {
            record.writes.pop();
            // The reported error is the first one.
            drop(record.save(&self.path));
            // A file that another program changed has its old text only in the backup.
            if let Some(backup) = backup.filter(|backup| backup.is_new)
                && self.is_unchanged()
            {
                drop(fs::remove_file(backup.path));
            }
            return Err(error);
        }
        Ok(backup.map(|backup| backup.path))
    }

    /// Puts a text in the place of the file, unless another program has changed the file meanwhile.
    fn put(&self, text: &[u8], mode: u32) -> Result<(), ConnectError> {
        let draft = beside(&self.path, &format!(".connect-{}", std::process::id()));
        let written = write_new(&draft, text, mode).and_then(|()| {
            // The client may have written its file meanwhile.
            if self.is_unchanged() {
                broker_files::put_in_place(&draft, &self.path)
            } else {
                Err(io::Error::other(
                    "another program changed it meanwhile; close the client and try again",
                ))
            }
        });
        // After a rename there is none. The reported error is the first one.
        drop(fs::remove_file(&draft));
        written.map_err(|error| ConnectError::write("write", &self.path, &error))
    }

    /// Takes the last write of `connect` back: the bytes and the mode before it, or no file. Refuses if another program
    /// has changed the file since.
    pub(super) fn undo(&self) -> Result<Undone, ConnectError> {
        let shown = self.path.display();
        let mut record = Record::read(&self.path)?;
        let now = self.found.as_ref().map(|(text, _)| digest(text.as_bytes()));
        let last = loop {
            let Some(last) = record.writes.pop() else {
                return usage(format!(
                    "`{shown}` has no write of `connect` that can be taken back"
                ));
            };
            // A write that was interrupted has changed nothing.
            let before = last.before.as_ref().map(|before| &before.sha256);
            if before != now.as_ref() || Some(&last.after) == now.as_ref() {
                break last;
            }
        };
        if now.as_ref() != Some(&last.after) {
            let backup = match &last.before {
                Some(before) => format!(
                    "; the file before is `{}`",
                    self.backup(before.backup).display()
                ),
                None => String::new(),
            };
            return usage(format!(
                "`{shown}` was changed after `connect` wrote it, and is left as it is: take the entry out by hand{backup}"
            ));
        }
        let Some(before) = last.before else {
            if !self.is_unchanged() {
                return usage(format!(
                    "`{shown}` is being changed; close the client and try again"
                ));
            }
            fs::remove_file(&self.path)
                .map_err(|error| ConnectError::write("remove", &self.path, &error))?;
            record.save(&self.path)?;
            return Ok(Undone::Removed);
        };
        let backup = self.backup(before.backup);
        let read = match is_file(&backup) {
            true => broker_files::read(&backup, MAX_FILE_BYTES).ok(),
            false => None,
        };
        let Some(bytes) = read.filter(|bytes| digest(bytes) == before.sha256) else {
            return usage(format!(
                "the backup `{}` was changed or removed, so that `{shown}` cannot be put back",
                backup.display()
            ));
        };
        self.put(&bytes, before.mode & 0o7777)?;
        record.save(&self.path)?;
        let mut others = record
            .writes
            .iter()
            .filter_map(|write| write.before.as_ref());
        if !others.any(|other| other.backup == before.backup) {
            // The file has its content now. A backup that stays does no harm.
            drop(fs::remove_file(backup));
        }
        Ok(Undone::Restored)
    }

    /// The path of a backup.
    fn backup(&self, number: usize) -> PathBuf {
        match number {
            0 => beside(&self.path, ".bak"),
            number => beside(&self.path, &format!(".bak.{number}")),
        }
    }

    /// Takes the file from other users, since it contains a secret; whether they could read it.
    pub(super) fn close_to_others(&self) -> Result<bool, ConnectError> {
        let Some((_, mode)) = self.found.as_ref().filter(|(_, mode)| mode & 0o077 != 0) else {
            return Ok(false);
        };
        fs::set_permissions(&self.path, Permissions::from_mode(mode & 0o600))
            .map_err(|error| ConnectError::write("change the mode of", &self.path, &error))?;
        Ok(true)
    }

    fn is_unchanged(&self) -> bool {
        match &self.found {
            Some((old, _)) => broker_files::holds(&self.path, old.as_bytes()),
            None => fs::symlink_metadata(&self.path).is_err(),
        }
    }

    /// Copies the old content beside the file; a backup with this content is not repeated.
    fn back_up(&self, old: &str, mode: u32) -> Result<Backup, ConnectError> {
        for number in 0..MAX_BACKUPS {
            let path = self.backup(number);
            match write_new(&path, old.as_bytes(), mode) {
                Ok(()) => {
                    return Ok(Backup {
                        path,
                        number,
                        is_new: true,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if is_file(&path) && broker_files::holds(&path, old.as_bytes()) {
                        fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(
                            |error| ConnectError::write("change the mode of", &path, &error),
                        )?;
                        return Ok(Backup {
                            path,
                            number,
                            is_new: false,
                        });
                    }
                }
                Err(error) => {
                    return Err(ConnectError::write("write the backup", &path, &error));
                }
            }
        }
        usage(format!(
            "`{}` has {MAX_BACKUPS} backups, `.bak` to `.bak.{}`; remove old ones",
            self.path.display(),
            MAX_BACKUPS - 1
        ))
    }
}

/// A copy of the old content.
struct Backup {
    path: PathBuf,
    number: usize,
    /// Whether it was made now.
    is_new: bool,
}

/// The result of taking a write back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undone {
    /// The file has its old bytes.
    Restored,
    /// The file, which `connect` had made, is removed.
    Removed,
}

#[cfg(test)]
mod tests;
