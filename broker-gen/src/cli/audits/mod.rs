//! The audits file, `<config stem>.audits.toml`: decisions of people on the tools of a lock, each bound to a
//! digest. It is read strictly, appended to, and never rewritten.

use std::path::{Path, PathBuf};

use broker_model::digest::Digest;
use broker_model::filter::ToolFilter;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

mod append;
mod date;
mod fields;
mod read;
mod status;
mod subject;
#[cfg(test)]
mod tests;
mod who;

pub(super) use append::{Decision, append};
pub(super) use date::Date;
pub(super) use status::{AuditStatus, Missing};
pub(super) use subject::{Subject, subjects};
pub(super) use who::who;

/// The only criteria that an audit can state.
pub(super) const CRITERIA: &str = "safe-to-expose";

/// Maximum size, far above any file that people write.
const MAX_BYTES: usize = 4 << 20;

/// All entries of one file, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Audits {
    /// The file as the user would name it.
    file: String,
    audits: Vec<FileEntry<Audit>>,
    exemptions: Vec<Exemption>,
    suppressions: Vec<FileEntry<Suppression>>,
}

/// An entry, and its first line.
#[derive(Clone, Debug)]
struct FileEntry<T> {
    line: usize,
    entry: T,
}

/// A person reviewed a tool, or the texts of a source itself, and approved its exposure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Audit {
    pub(super) source: NodePath,
    /// The server's name of the tool; `None` for the source itself.
    pub(super) tool: Option<String>,
    pub(super) digest: Digest,
    pub(super) who: String,
    pub(super) date: Date,
    pub(super) looked_at: Vec<String>,
    pub(super) notes: Option<String>,
    /// The last day of validity.
    pub(super) expires: Option<Date>,
}

/// Tools that need no audit for some time.
#[derive(Clone, Debug)]
struct Exemption {
    source: ToolFilter,
    /// `None` for the source itself.
    tool: Option<ToolFilter>,
    /// The last day of validity.
    expires: Date,
}

/// A finding of the lint that a person reviewed and found harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suppression {
    pub(super) rule: String,
    pub(super) source: NodePath,
    /// `None` for the source itself.
    pub(super) tool: Option<String>,
    pub(super) digest: Digest,
    pub(super) reason: String,
    pub(super) who: String,
    pub(super) date: Date,
}

impl Audits {
    /// Reads the audits beside a config; empty if there is no file.
    pub(super) fn read(config: &Path) -> Result<Self, Vec<Diagnostic>> {
        let path = audits_file(config);
        let file = path.to_string_lossy().into_owned();
        match text_of(&path)? {
            Some(text) => Self::parse(&file, &text),
            None => Ok(Self {
                file,
                ..Self::default()
            }),
        }
    }

    /// Whether a suppression covers this finding of the lint in exactly these bytes.
    pub(super) fn suppresses(
        &self,
        rule: &str,
        source: &str,
        tool: Option<&str>,
        digest: &Digest,
    ) -> bool {
        self.suppressions
            .iter()
            .any(|FileEntry { entry: one, .. }| {
                one.rule == rule
                    && one.source.as_str() == source
                    && one.tool.as_deref() == tool
                    && one.digest == *digest
            })
    }
}

/// `<config stem>.audits.toml`, beside the config.
pub(super) fn audits_file(config: &Path) -> PathBuf {
    let stem = config.file_stem().unwrap_or_default().to_string_lossy();
    config.with_file_name(format!("{stem}.audits.toml"))
}

/// The file's text; `None` if there is no file.
fn text_of(path: &Path) -> Result<Option<String>, Vec<Diagnostic>> {
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
