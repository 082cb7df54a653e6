//! The report of a verification, as text and as JSON.

use std::fmt;

use serde::Serialize;

use crate::settings::{CHECKPOINT_INTERVAL, CHECKPOINT_LINES};

/// The maximum number of findings and of open calls that a report lists.
pub(super) const MAX_LISTED: usize = 1000;

/// What happened to lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A line is not the one that was written.
    Changed,
    /// Lines are missing in the middle, or before the first one.
    Missing,
    /// A line comes again, or after a later one.
    Reordered,
    /// Lines at the end are missing.
    Cut,
    /// Lines of another stream follow.
    Joined,
}

/// What a finding was found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// The number or the hash of the line before.
    Chain,
    /// The signature of a checkpoint, or its absence.
    Checkpoint,
    /// The given head.
    Head,
}

/// A change of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What happened.
    pub kind: FindingKind,
    /// What found it.
    pub by: FoundBy,
    /// The number of the line at which it shows.
    pub seq: u64,
    /// The file and the line in the file.
    pub place: String,
    /// A sentence.
    pub text: String,
}

/// A call with a begin line and no end line: the tool may have run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOpen {
    /// The number of its begin line.
    pub seq: u64,
    /// The time of its begin line.
    pub at: String,
    /// The caller.
    pub subject: String,
    /// The path.
    pub path: String,
}

/// The line up to which a change is found even if every later hash was computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Anchor {
    /// The number of the line.
    pub seq: u64,
    /// A signed checkpoint, or the given head.
    pub by: FoundBy,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The number of files.
    pub files: usize,
    /// The number of lines.
    pub lines: u64,
    /// The stream of the first line.
    pub stream: String,
    /// The number of the first line.
    pub first_seq: u64,
    /// The number of the last line.
    pub last_seq: u64,
    /// The hash of the last line.
    pub last_hash: String,
    /// The anchor.
    pub anchor: Option<Anchor>,
    /// The lines after the anchor; all lines without one.
    pub unprotected_lines: u64,
    /// The changes, the first 1000 of them.
    pub findings: Vec<Finding>,
    /// The number of all changes.
    pub findings_count: u64,
    /// The calls that were left open, the first 1000 of them.
    pub left_open: Vec<LeftOpen>,
    /// The number of all calls that were left open.
    pub left_open_count: u64,
    /// What the log itself says is missing.
    pub notes: Vec<String>,
    /// What cannot be excluded.
    pub cannot_exclude: Vec<String>,
}

impl Report {
    /// Whether no change was found. Calls that were left open are not changes.
    pub const fn is_unchanged(&self) -> bool {
        self.findings_count == 0
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    pub(super) fn add(&mut self, finding: Finding) {
        self.findings_count += 1;
        if self.findings.len() < MAX_LISTED {
            self.findings.push(finding);
        }
    }

    pub(super) fn add_open(&mut self, call: LeftOpen) {
        self.left_open_count += 1;
        if self.left_open.len() < MAX_LISTED {
            self.left_open.push(call);
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < MAX_LISTED {
            self.notes.push(note);
        }
    }

    /// Says what the verification cannot exclude.
    pub(super) fn limit(&mut self, has_key: bool, has_head: bool) {
        let tail = format!(
            "a checkpoint follows at most {CHECKPOINT_LINES} lines or {} s after a line",
            CHECKPOINT_INTERVAL.as_secs()
        );
        let last = self.last_seq;
        let limits = &mut self.cannot_exclude;
        match self.anchor {
            Some(Anchor { seq, .. }) if seq < last => limits.push(format!(
                "that lines after {seq} were changed, added or removed, and every later hash computed again ({tail})"
            )),
            Some(_) => {}
            None => limits.push(format!(
                "that any line was changed, and every later hash computed again: no signed checkpoint was verified and no head was given ({tail})"
            )),
        }
        if !has_head {
            limits.push(format!(
                "that the log was cut behind line {last}, or that whole files behind it are missing: no head was given"
            ));
        }
        if has_key {
            limits.push("that the holder of the private key wrote another log".to_owned());
        }
    }
}

impl FindingKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Reordered => "reordered",
            Self::Cut => "cut",
            Self::Joined => "joined",
        }
    }
}

impl FoundBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Checkpoint => "checkpoint",
            Self::Head => "head",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            files,
            lines,
            first_seq,
            last_seq,
            last_hash,
            ..
        } = self;
        let noun = if *files == 1 { "file" } else { "files" };
        writeln!(
            f,
            "{lines} lines in {files} {noun}, {first_seq} to {last_seq}"
        )?;
        writeln!(f, "head: {last_seq}:{last_hash}")?;
        match self.anchor {
            Some(Anchor { seq, by }) => writeln!(
                f,
                "protected up to line {seq} by the {}; {} lines after it",
                by.as_str(),
                self.unprotected_lines
            )?,
            None => writeln!(f, "no line is protected by a checkpoint or a head")?,
        }
        for finding in &self.findings {
            let (kind, by) = (finding.kind.as_str(), finding.by.as_str());
            writeln!(f, "{kind} ({by}): {} ({})", finding.text, finding.place)?;
        }
        rest(f, self.findings_count, self.findings.len(), "changes")?;
        for call in &self.left_open {
            writeln!(
                f,
                "left open: line {}, {}, {} by {}: it may have run",
                call.seq, call.at, call.path, call.subject
            )?;
        }
        rest(f, self.left_open_count, self.left_open.len(), "open calls")?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        for limit in &self.cannot_exclude {
            writeln!(f, "cannot exclude {limit}")?;
        }
        let found = match self.findings_count {
            0 => "no change was found".to_owned(),
            1 => "1 change was found".to_owned(),
            count => format!("{count} changes were found"),
        };
        writeln!(f, "{found}")
    }
}

fn rest(f: &mut fmt::Formatter<'_>, all: u64, listed: usize, name: &str) -> fmt::Result {
    match all - listed as u64 {
        0 => Ok(()),
        more => writeln!(f, "and {more} more {name}"),
    }
}
