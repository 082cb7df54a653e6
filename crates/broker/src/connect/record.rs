//! The writes of `connect` to a file, so that `--undo` takes them back: `FILE.connect.json` beside the file, without
//! any text of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::disk::{NEW_MODE, beside, write_new};
use super::error::{ConnectError, usage};

/// The maximum length of a record.
const MAX_RECORD_BYTES: usize = 1 << 20;
/// The maximum number of writes that are kept; the oldest one is dropped.
const MAX_WRITES: usize = 100;
/// The version of the format.
const VERSION: u32 = 1;

/// The writes to a file, the oldest first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    pub(super) writes: Vec<Write>,
}

/// A write to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Write {
    /// The file before; `None` if there was none.
    pub(super) before: Option<Before>,
    /// The SHA-256 of the text that was written.
    pub(super) after: String,
}

/// A file before a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    /// The SHA-256 of its text.
    pub(super) sha256: String,
    /// Its mode.
    pub(super) mode: u32,
    /// The number of its backup.
    pub(super) backup: usize,
}

/// The SHA-256 of a text, in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path of the record of a file.
fn path_of(file: &Path) -> PathBuf {
    beside(file, ".connect.json")
}

impl Record {
    /// Reads the record of a file; an empty one if there is none.
    pub(super) fn read(file: &Path) -> Result<Self, ConnectError> {
        let path = path_of(file);
        let shown = path.display();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    version: VERSION,
                    writes: Vec::new(),
                });
            }
            Err(error) => return usage(format!("cannot read `{shown}`: {error}")),
            Ok(metadata) if !metadata.is_file() => {
                return usage(format!("`{shown}` is not a regular file; remove it"));
            }
            Ok(_) => {}
        }
        let text = match broker_files::read_text(&path, MAX_RECORD_BYTES) {
            Ok(text) => text,
            Err(error) => return usage(format!("cannot read `{shown}`: {error}")),
        };
        match serde_json::from_str::<Self>(&text) {
            Ok(record) if record.version == VERSION => Ok(record),
            _ => usage(format!(
                "`{shown}` is not a record of `connect` of this version; remove it"
            )),
        }
    }

    /// Adds a write.
    pub(super) fn push(&mut self, write: Write) {
        if self.writes.len() >= MAX_WRITES {
            self.writes.remove(0);
        }
        self.writes.push(write);
    }

    /// Writes the record, or removes it if it is empty.
    pub(super) fn save(&self, file: &Path) -> Result<(), ConnectError> {
        let path = path_of(file);
        let failed = |error: io::Error| ConnectError::write("write", &path, &error);
        if self.writes.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let text = serde_json::to_string(self)
            .map_err(|error| ConnectError::System(format!("the record: {error}")))?;
        let draft = beside(&path, &format!(".{}", std::process::id()));
        let written = write_new(&draft, format!("{text}\n").as_bytes(), NEW_MODE)
            .and_then(|()| broker_files::put_in_place(&draft, &path));
        // After a rename there is none. The reported error is the first one.
        drop(fs::remove_file(&draft));
        written.map_err(failed)
    }
}
