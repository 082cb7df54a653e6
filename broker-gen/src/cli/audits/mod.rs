//! The audits file, `<config stem>.audits.toml`: decisions of people on the tools of a lock, each bound to a
//! digest. It is read strictly, appended to, and never rewritten.

use std::path::{Path, PathBuf};

use broker_model::digest::Digest;
use broker_model::filter::ToolFilter;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use serde::Deserialize;

mod append;
mod date;
mod fields;
mod read;
mod status;
mod subject;
#[cfg(test)]
mod tests;
mod who;

pub(super) use append::{Decision, append, quoted};
pub(super) use date::Date;
pub(super) use status::{AuditStatus, Missing};
pub(super) use subject::{Subject, subjects};
pub(super) use who::who;

/// Maximum size, far above any file that people write.
const MAX_BYTES: usize = 4 << 20;

/// All entries of one file, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Audits {
    /// The file as the user would name it.
    file: String,
    audits: Vec<FileEntry<Audit>>,
    exemptions: Vec<FileEntry<Exemption>>,
    suppressions: Vec<FileEntry<Suppression>>,
}

/// An entry, and its first line.
#[derive(Clone, Debug)]
struct FileEntry<T> {
    line: usize,
    entry: T,
}

/// The criteria that an audit states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Criteria {
    SafeToExpose,
}

/// A person reviewed a tool, or the texts of a source itself, and approved its exposure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: `[[audits]]`")]
pub(super) struct Audit {
    pub(super) source: NodePath,
    /// The server's name of the tool; `None` for the source itself.
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub(super) tool: Option<String>,
    pub(super) digest: Digest,
    pub(super) criteria: Criteria,
    #[serde(deserialize_with = "fields::text")]
    pub(super) who: String,
    #[serde(deserialize_with = "fields::date")]
    pub(super) date: Date,
    #[serde(default, deserialize_with = "fields::texts")]
    pub(super) looked_at: Vec<String>,
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub(super) notes: Option<String>,
    /// The last day of validity.
    #[serde(default, deserialize_with = "fields::optional_date")]
    pub(super) expires: Option<Date>,
}

/// Tools that need no audit for some time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: `[[exemptions]]`")]
struct Exemption {
    #[serde(deserialize_with = "fields::glob")]
    source: ToolFilter,
    /// `None` for the source itself.
    #[serde(default, deserialize_with = "fields::optional_glob")]
    tool: Option<ToolFilter>,
    /// The last day of validity.
    #[serde(deserialize_with = "fields::date")]
    expires: Date,
    /// For people, and still required, as is the next one.
    #[serde(rename = "reason", deserialize_with = "fields::text")]
    _reason: String,
    #[serde(rename = "who", deserialize_with = "fields::text")]
    _who: String,
}

/// A finding of the lint that a person reviewed and found harmless.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: `[[suppressions]]`")]
pub(super) struct Suppression {
    #[serde(deserialize_with = "fields::text")]
    pub(super) rule: String,
    pub(super) source: NodePath,
    /// `None` for the source itself.
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub(super) tool: Option<String>,
    pub(super) digest: Digest,
    #[serde(deserialize_with = "fields::text")]
    pub(super) reason: String,
    #[serde(deserialize_with = "fields::text")]
    pub(super) who: String,
    #[serde(deserialize_with = "fields::date")]
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
