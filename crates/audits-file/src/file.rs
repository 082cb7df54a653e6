//! The audits file as programs and build scripts read it: its place, its text, and its lists of entries.

use std::path::{Path, PathBuf};

use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use serde::de::DeserializeOwned;

use crate::read::{FileEntry, read_lists};

/// Maximum size, far above any file that people write.
pub const MAX_BYTES: usize = 4 << 20;

/// `<config stem>.audits.toml`, beside the config.
pub fn audits_file(config: &Path) -> PathBuf {
    let stem = config.file_stem().unwrap_or_default().to_string_lossy();
    config.with_file_name(format!("{stem}.audits.toml"))
}

/// Reads the entries of one list of the audits file beside a config. Other entries of the file are not checked.
pub fn entries_of<T: DeserializeOwned>(
    config: &Path,
    name: &str,
) -> Result<Vec<T>, Vec<Diagnostic>> {
    let path = audits_file(config);
    let Some(text) = text_of(&path)? else {
        return Ok(Vec::new());
    };
    let mut entries: Vec<FileEntry<T>> = Vec::new();
    read_lists(&path.to_string_lossy(), &text, |list, problems| {
        if list.0 == name {
            entries = problems.entries(list);
        }
    })?;
    Ok(entries.into_iter().map(|placed| placed.entry).collect())
}

/// An entry for the same bytes whose node has another path.
#[derive(Debug)]
pub struct Elsewhere<'e> {
    pub path: &'e NodePath,
    pub who: &'e str,
    pub date: &'e str,
}

impl Elsewhere<'_> {
    /// Begins a remedy with the command that carries the entry over, if the node was moved to `new`. A build does not know
    /// whether it was; `accept` compares the sources of both paths.
    pub fn remedy(&self, new: &NodePath, config: &str) -> String {
        format!(
            "The entry of {} on {} at `{old}` is of the same bytes: if the node was moved, `broker-gen accept --config {} --moved {old} {new}` carries it over. Otherwise: ",
            shown_line(self.who, 80),
            self.date,
            shell_word(config),
            old = self.path,
        )
    }
}

/// Reads the text of the audits file. Returns `None` if there is no such file.
pub fn text_of(path: &Path) -> Result<Option<String>, Vec<Diagnostic>> {
    match broker_files::read_text(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => {
            let shown = path.to_string_lossy();
            let message = format!("the audits `{shown}` cannot be read: {error}");
            Err(vec![Diagnostic::error(
                DiagnosticCode::AuditsUnreadable,
                message,
            )])
        }
    }
}
