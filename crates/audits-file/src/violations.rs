//! Entries of the audits file that refuse tools and sources: verify, lock and build refuse what they match, whatever audits
//! and exemptions say.
//!
//! The globs are denies, so they match look-alikes of a name as well. An entry does not expire.

use std::path::Path;

use broker_model::digest::Digest;
use broker_model::filter::ToolFilter;
use broker_model::json::Position;
use broker_model::left_out::MAX_NAME_CHARS;
use broker_model::lock::{LeftOutPart, LockedSource};
use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode};
use serde::Deserialize;

use crate::fields;
use crate::file::{audits_file, text_of};
use crate::read::{FileEntry, read_lists};

/// Maximum number of problems that are reported one by one.
const MAX_REPORTED: usize = 20;

/// A person refused tools or a source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: `[[violations]]`")]
pub struct Violation {
    #[serde(deserialize_with = "fields::deny_glob")]
    source: ToolFilter,
    /// `None` for the whole source.
    #[serde(default, deserialize_with = "fields::optional_deny_glob")]
    tool: Option<ToolFilter>,
    /// The only bytes that it refuses; `None` for all.
    #[serde(default)]
    digest: Option<Digest>,
    #[serde(deserialize_with = "fields::text")]
    reason: String,
    #[serde(deserialize_with = "fields::text")]
    who: String,
    #[serde(deserialize_with = "fields::day")]
    date: String,
}

/// The entries of an audits file.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    /// The file as the user would name it.
    file: String,
    entries: Vec<FileEntry<Violation>>,
}

impl Violation {
    /// The author, the day and the reason.
    pub fn decision(&self) -> (&str, &str, &str) {
        (&self.who, &self.date, &self.reason)
    }

    fn is_of_source(&self, source: &str) -> bool {
        !self.source.admits(source)
    }

    fn is_of_bytes(&self, digest: &Digest) -> bool {
        self.digest.as_ref().is_none_or(|own| own == digest)
    }

    /// Whether it refuses a tool of a source that it names.
    fn refuses(&self, tool: &str, digest: &Digest) -> bool {
        self.tool.as_ref().is_none_or(|glob| !glob.admits(tool)) && self.is_of_bytes(digest)
    }

    /// Whether it refuses a source that it names, with all its tools: by its name, or by the bytes of its texts.
    fn refuses_source(&self, own: Option<&Digest>) -> bool {
        self.tool.is_none()
            && match &self.digest {
                None => true,
                Some(digest) => own == Some(digest),
            }
    }
}

impl Violations {
    /// Reads them beside a config. Other entries of the file are not checked.
    pub fn read(config: &Path) -> Result<Self, Vec<Diagnostic>> {
        let path = audits_file(config);
        let file = path.to_string_lossy().into_owned();
        let mut entries = Vec::new();
        if let Some(text) = text_of(&path)? {
            read_lists(&file, &text, |list, problems| {
                if list.0 == "violations" {
                    entries = problems.entries(list);
                }
            })?;
        }
        Ok(Self { file, entries })
    }

    /// Returns the violations of a file that was read.
    pub fn new(file: &str, entries: Vec<FileEntry<Violation>>) -> Self {
        Self {
            file: file.to_owned(),
            entries,
        }
    }

    /// The number of entries.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The first entry of this source that refuses something.
    fn first(
        &self,
        source: &str,
        refuses: impl Fn(&Violation) -> bool,
    ) -> Option<&FileEntry<Violation>> {
        let mut entries = self.entries.iter();
        entries.find(|one| one.entry.is_of_source(source) && refuses(&one.entry))
    }

    /// Returns the entry that refuses a source without a look at it.
    pub fn find_by_path(&self, source: &str) -> Option<&FileEntry<Violation>> {
        self.first(source, |one| one.refuses_source(None))
    }

    /// Returns the entry that refuses a locked source as a whole.
    pub fn find_by_source(&self, source: &LockedSource) -> Option<&FileEntry<Violation>> {
        let own = source.own_digest();
        let path = source.path.as_str();
        self.first(path, |one| one.refuses_source(Some(&own)))
    }

    /// Returns the entry that refuses a tool, by its source and the server's name.
    pub fn find_by_tool(
        &self,
        source: &str,
        tool: &str,
        digest: &Digest,
    ) -> Option<&FileEntry<Violation>> {
        self.first(source, |one| one.refuses(tool, digest))
    }

    /// Whether an entry refuses a part that the lock leaves out for that reason.
    pub fn settle(&self, part: &LeftOutPart<'_>) -> bool {
        part.code == LeftOutCode::Violation && self.entries.iter().any(|one| one.entry.fits(part))
    }

    /// Returns a warning for each entry without a match in the lock, including the parts that it leaves out.
    pub fn unmatched(&self, lock: &broker_model::lock::Lock) -> Vec<Diagnostic> {
        let parts = lock.left_out_parts();
        let is_used = |one: &Violation| {
            let mut sources = lock.sources.iter();
            parts.iter().any(|part| one.fits(part)) || sources.any(|source| one.is_in(source))
        };
        let unused = self.entries.iter().filter(|one| !is_used(&one.entry));
        let warning = |one: &FileEntry<Violation>| {
            let reason = shown_line(&one.entry.reason, 200);
            let message = format!(
                "a violation matches nothing in the lock and nothing that it leaves out: {reason}"
            );
            let warning = Diagnostic::warning(DiagnosticCode::ViolationUnmatched, message);
            self.place(one, warning)
        };
        unused.take(MAX_REPORTED).map(warning).collect()
    }

    /// A warning for each entry that names a source by its old path and not by its new one.
    pub fn left_behind(&self, old: &str, new: &str) -> Vec<Diagnostic> {
        let is_left = |one: &Violation| one.is_of_source(old) && !one.is_of_source(new);
        let left = self.entries.iter().filter(|one| is_left(&one.entry));
        let warning = |one: &FileEntry<Violation>| {
            let reason = shown_line(&one.entry.reason, 200);
            let message = format!("a violation names `{old}` and not `{new}`: {reason}");
            let warning = Diagnostic::warning(DiagnosticCode::ViolationUnmatched, message);
            let help = "Give it the new path, if the reason is still valid.";
            self.place(one, warning.help(help))
        };
        left.take(MAX_REPORTED).map(warning).collect()
    }

    /// The error for what an entry refuses.
    pub fn problem(&self, what: &str, one: &FileEntry<Violation>, config: &str) -> Diagnostic {
        let Violation {
            reason, who, date, ..
        } = &one.entry;
        let message = format!(
            "{what} is refused by the violation of {} on {date}: {}",
            shown_line(who, 80),
            shown_line(reason, 300)
        );
        let help = format!(
            "Run `broker-gen lock --config {}`, which leaves it out.",
            shell_word(config)
        );
        let problem = Diagnostic::error(DiagnosticCode::Violation, message).help(help);
        self.place(one, problem)
    }

    fn place(&self, one: &FileEntry<Violation>, mut problem: Diagnostic) -> Diagnostic {
        problem = problem.in_file(&self.file);
        problem.position = Some(Position {
            line: one.line,
            column: 1,
        });
        problem
    }

    /// An error for each tool and source of a lock that an entry refuses.
    pub fn refused<'l>(
        &self,
        sources: impl IntoIterator<Item = &'l LockedSource>,
        config: &str,
    ) -> Vec<Diagnostic> {
        let (mut problems, mut more) = (Vec::new(), 0);
        let mut add = |what: &dyn Fn() -> String, one| match problems.len() < MAX_REPORTED {
            true => problems.push(self.problem(&what(), one, config)),
            false => more += 1,
        };
        for source in sources {
            let path = &source.path;
            if let Some(one) = self.find_by_source(source) {
                add(&|| shown_source(path.as_str()), one);
                continue;
            }
            for tool in &source.exposed {
                let name = tool.upstream_name.as_str();
                if let Some(one) = self.find_by_tool(path.as_str(), name, &tool.digest) {
                    add(&|| shown_tool(name, path.as_str()), one);
                }
            }
        }
        if more > 0 {
            let message = format!("{more} more tools of the lock are refused by violations");
            problems.push(Diagnostic::error(DiagnosticCode::Violation, message));
        }
        problems
    }
}

impl Violation {
    /// Whether it is about something in a locked source, also if the source hides it.
    fn is_in(&self, source: &LockedSource) -> bool {
        let mut exposed = source.exposed.iter();
        let mut hidden = source.hidden.iter();
        self.is_of_source(source.path.as_str())
            && (self.refuses_source(Some(&source.own_digest()))
                || exposed.any(|tool| self.refuses(&tool.upstream_name, &tool.digest))
                || hidden.any(|tool| self.refuses(&tool.name, &tool.digest)))
    }

    /// Whether it is about a part that a lock leaves out.
    fn fits(&self, part: &LeftOutPart<'_>) -> bool {
        if !self.is_of_source(part.source.as_str()) {
            return false;
        }
        match &part.tool {
            // The record has only the begin of a long name.
            Some(tool) if tool.chars().count() >= MAX_NAME_CHARS => self.is_of_bytes(&part.digest),
            Some(tool) => self.refuses(tool, &part.digest),
            None => self.refuses_source(Some(&part.digest)),
        }
    }
}

/// A source in a message.
pub fn shown_source(path: &str) -> String {
    format!("the source `{path}`")
}

/// A tool of a source in a message.
pub fn shown_tool(name: &str, source: &str) -> String {
    format!("`{}` of `{source}`", shown_line(name, MAX_NAME_CHARS))
}

impl Violations {
    /// An error for each tool and source that an entry beside the config refuses, or the problems of these entries. `shown` is
    /// the name of the config in commands.
    pub fn check<'l>(
        sources: impl IntoIterator<Item = &'l LockedSource>,
        config: &Path,
        shown: &str,
    ) -> Vec<Diagnostic> {
        match Violations::read(config) {
            Ok(violations) => violations.refused(sources, shown),
            Err(problems) => problems,
        }
    }
}
