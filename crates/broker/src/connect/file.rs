//! Reads and replaces the file of a client: with a backup beside it, by rename, and with its mode.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::error::{ConnectError, usage};

/// The maximum length of a file that is read.
const MAX_FILE_BYTES: usize = 8 << 20;
/// The maximum number of backups of one file.
const MAX_BACKUPS: usize = 100;
/// The mode of a new file.
const NEW_MODE: u32 = 0o600;

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
        let mode = self.found.as_ref().map_or(NEW_MODE, |(_, mode)| *mode);
        let mode = if is_private { mode & 0o600 } else { mode };
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
        if let Err(error) = written {
            // A file that another program changed has its old text only in the backup.
            if let Some((backup, true)) = backup
                && self.is_unchanged()
            {
                drop(fs::remove_file(backup));
            }
            return Err(ConnectError::write("write", &self.path, &error));
        }
        Ok(backup.map(|(backup, _)| backup))
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

    /// Copies the old content beside the file; a backup with this content is not repeated. Returns also whether it was
    /// made now.
    fn back_up(&self, old: &str, mode: u32) -> Result<(PathBuf, bool), ConnectError> {
        for number in 0..MAX_BACKUPS {
            let ending = match number {
                0 => ".bak".to_owned(),
                number => format!(".bak.{number}"),
            };
            let backup = beside(&self.path, &ending);
            match write_new(&backup, old, mode) {
                Ok(()) => return Ok((backup, true)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if is_file(&backup) && broker_files::holds(&backup, old.as_bytes()) {
                        fs::set_permissions(&backup, Permissions::from_mode(mode)).map_err(
                            |error| ConnectError::write("change the mode of", &backup, &error),
                        )?;
                        return Ok((backup, false));
                    }
                }
                Err(error) => {
                    return Err(ConnectError::write("write the backup", &backup, &error));
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

/// Whether a path is a regular file, and no link to one.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// The path with an ending added to its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Writes a file that must not exist yet, with exactly this mode.
fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(NEW_MODE)
        .open(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // The reported error is the first one.
        drop(fs::remove_file(path));
    }
    written.map_err(broker_files::with_help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn replaced_file_keeps_its_mode_and_every_backup() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        for (text, backups) in [("two", 1), ("three", 2), ("two", 3), ("four", 3)] {
            let file = ClientFile::open(&path).unwrap();
            let backup = file.replace(text, false).unwrap().unwrap();
            assert_eq!(fs::read_to_string(&backup).unwrap(), file.text());
            assert_eq!(
                fs::metadata(&backup).unwrap().permissions().mode() & 0o777,
                0o640
            );
            assert_eq!(names(folder.path()).len(), backups + 1, "{text}");
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let file = ClientFile::open(&path).unwrap();
        file.replace("secret", true).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            names(folder.path()),
            ["f", "f.bak", "f.bak.1", "f.bak.2", "f.bak.3"]
        );
        // The backup with the same content exists already: it gets the mode of the new file.
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("f.bak.3")), 0o600);
        assert_eq!(mode(&folder.path().join("f.bak.1")), 0o640);
        fs::write(&path, "two").unwrap();
        let file = ClientFile::open(&path).unwrap();
        let backup = file.replace("another secret", true).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&backup).unwrap(), "two");
        assert_eq!(mode(&backup), 0o600);
    }

    #[test]
    fn file_that_changed_meanwhile_is_left_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "one").unwrap();
        let file = ClientFile::open(&path).unwrap();
        fs::write(&path, "other").unwrap();
        let error = file.replace("two", false).unwrap_err().to_string();
        assert!(error.contains("close the client"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "other");
        assert_eq!(names(folder.path()), ["f", "f.bak"]);
        let missing = ClientFile::open(&folder.path().join("g")).unwrap();
        fs::write(folder.path().join("g"), "new").unwrap();
        assert!(missing.replace("two", false).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("g")).unwrap(), "new");
    }

    #[test]
    fn backup_of_a_write_that_failed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "one").unwrap();
        let file = ClientFile::open(&path).unwrap();
        // A folder has the name of the draft, so that it cannot be written.
        let draft = beside(&path, &format!(".connect-{}", std::process::id()));
        fs::create_dir(&draft).unwrap();
        let error = file.replace("two", false).unwrap_err().to_string();
        assert!(error.contains("cannot write"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        fs::remove_dir(&draft).unwrap();
        assert_eq!(names(folder.path()), ["f"]);
    }

    #[test]
    fn file_that_cannot_be_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        File::create(path("large"))
            .and_then(|file| file.set_len(MAX_FILE_BYTES as u64 + 1))
            .unwrap();
        fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
        std::os::unix::fs::symlink("nothing", path("link")).unwrap();
        for (name, part) in [
            ("large", "8388608 bytes"),
            ("bytes", "not UTF-8"),
            ("link", "symbolic link"),
            ("", "a folder"),
        ] {
            let error = ClientFile::open(&path(name)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(ClientFile::open(&path("missing")).unwrap().text(), "");
    }
}
