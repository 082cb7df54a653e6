//! The audits file, `<config stem>.audits.toml`: decisions of people on the tools of a lock, each bound to a
//! digest. It is read strictly. Writes no file; the package `broker-review` appends to it.

#![forbid(unsafe_code)]

use std::path::Path;

use broker_model::digest::Digest;
use broker_model::filter::ToolFilter;
use broker_model::lock::LeftOutPart;
use broker_model::{Diagnostic, NodePath};
use serde::Deserialize;

mod date;
mod decision;
pub mod fields;
mod file;
mod hints;
mod left_out;
mod moved;
mod person;
mod read;
mod status;
mod subject;
#[cfg(test)]
mod tests;
mod violations;

pub use date::Date;
pub use decision::{Decision, quoted};
pub use file::{Elsewhere, MAX_BYTES, audits_file, entries_of, text_of};
pub use hints::{HintAudit, HintValues};
pub use left_out::LeftOutAudit;
pub use moved::{Carried, Move};
pub use person::{Person, different};
pub use read::{FileEntry, Problems, read_lists};
pub use status::{AuditGap, AuditStatus, Missing};
pub use subject::{Subject, subjects};
pub use violations::{Violation, Violations, shown_source, shown_tool};

/// All entries of one file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Audits {
    /// The file as the user would name it.
    file: String,
    audits: Vec<FileEntry<Audit>>,
    hints: Vec<FileEntry<HintAudit>>,
    exemptions: Vec<FileEntry<Exemption>>,
    suppressions: Vec<FileEntry<Suppression>>,
    left_out: Vec<FileEntry<LeftOutAudit>>,
    violations: Violations,
}

/// The criteria that an audit states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criteria {
    SafeToExpose,
}

/// A person reviewed a tool, or the texts of a source itself, and approved its exposure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: `[[audits]]`")]
pub struct Audit {
    pub source: NodePath,
    /// The server's name of the tool; `None` for the source itself.
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub tool: Option<String>,
    pub digest: Digest,
    pub criteria: Criteria,
    #[serde(deserialize_with = "fields::text")]
    pub who: String,
    #[serde(deserialize_with = "fields::date")]
    pub date: Date,
    #[serde(default, deserialize_with = "fields::texts")]
    pub looked_at: Vec<String>,
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub notes: Option<String>,
    /// The last day of validity.
    #[serde(default, deserialize_with = "fields::optional_date")]
    pub expires: Option<Date>,
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
pub struct Suppression {
    #[serde(deserialize_with = "fields::text")]
    pub rule: String,
    pub source: NodePath,
    /// `None` for the source itself.
    #[serde(default, deserialize_with = "fields::optional_text")]
    pub tool: Option<String>,
    pub digest: Digest,
    #[serde(deserialize_with = "fields::text")]
    pub reason: String,
    #[serde(deserialize_with = "fields::text")]
    pub who: String,
    #[serde(deserialize_with = "fields::date")]
    pub date: Date,
}

impl Audits {
    /// Reads the audits beside a config; empty if there is no file.
    pub fn read(config: &Path) -> Result<Self, Vec<Diagnostic>> {
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

    /// Reads a text. `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let mut all = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        read_lists(file, text, |list, problems| match list.0 {
            "audits" => all.audits = problems.entries(list),
            "hints" => all.hints = problems.entries(list),
            "exemptions" => all.exemptions = problems.entries(list),
            "left_out" => all.left_out = problems.entries(list),
            "violations" => all.violations = Violations::new(file, problems.entries(list)),
            _ => all.suppressions = problems.entries(list),
        })?;
        Ok(all)
    }

    /// The audits, in the order of the file.
    pub fn audits(&self) -> impl ExactSizeIterator<Item = &Audit> {
        self.audits.iter().map(|placed| &placed.entry)
    }

    /// The confirmed hints, in the order of the file.
    pub fn hints(&self) -> impl ExactSizeIterator<Item = &HintAudit> {
        self.hints.iter().map(|placed| &placed.entry)
    }

    /// The suppressions, in the order of the file.
    pub fn suppressions(&self) -> impl ExactSizeIterator<Item = &Suppression> {
        self.suppressions.iter().map(|placed| &placed.entry)
    }

    /// The accepted parts that a lock leaves out, in the order of the file.
    pub fn left_out(&self) -> impl ExactSizeIterator<Item = &LeftOutAudit> {
        self.left_out.iter().map(|placed| &placed.entry)
    }

    /// The number of exemptions.
    pub fn exemptions_count(&self) -> usize {
        self.exemptions.len()
    }

    /// Whether an entry confirms the same hints for the same definition of the tool.
    pub fn has_hints(&self, entry: &HintAudit) -> bool {
        let mut known = self.hints.iter().map(|placed| &placed.entry);
        known.any(|one| {
            (&one.source, &one.tool) == (&entry.source, &entry.tool)
                && (&one.digest, &one.values) == (&entry.digest, &entry.values)
        })
    }

    /// Whether an entry accepts a part that a lock leaves out, or a violation refuses it.
    pub fn accept_left_out(&self, part: &LeftOutPart<'_>) -> bool {
        let mut accepted = self.left_out.iter();
        accepted.any(|one| one.entry.accepts(part)) || self.violations.settle(part)
    }

    /// The entries that refuse tools and sources.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// Whether a suppression covers this finding of the lint in exactly these bytes.
    pub fn suppresses(
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
