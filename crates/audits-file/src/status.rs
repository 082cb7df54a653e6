//! The audit status of a lock: what is audited, exempt, or missing, and why.

use std::fmt;

use broker_model::digest::Digest;
use broker_model::lock::{Lock, LockedSource};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use super::person::{Person, different};
use super::{Audit, Audits, Date, FileEntry, Subject, subject::source_digest, subjects};

/// The audit status of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditStatus {
    /// Enough people audited exactly these bytes.
    Audited,
    /// It needs no audit until the end of this day.
    Exempt(Date),
    /// Neither.
    Missing(AuditGap),
}

/// The reason why a subject has no valid audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditGap {
    /// It was never audited.
    Never,
    /// Too few people audited these bytes.
    TooFew { who: Vec<String>, needed: u8 },
    /// An audit has other bytes.
    Changed { who: String, date: Date },
    /// The audit of these bytes has expired.
    Ended { who: String, date: Date },
    /// It was never audited, and its exemption has expired.
    ExemptionEnded(Date),
}

/// A subject with neither audit nor exemption.
#[derive(Clone, Debug)]
pub struct Missing<'a> {
    pub subject: Subject<'a>,
    pub why: AuditGap,
}

impl Audits {
    /// Every subject of the lock that too few people audited and that has no exemption, in the lock's order.
    pub fn missing<'a>(&self, lock: &'a Lock, today: Date, needed: u8) -> Vec<Missing<'a>> {
        let missing = |subject: Subject<'a>| match self.status(&subject, today, needed) {
            AuditStatus::Missing(why) => Some(Missing { subject, why }),
            AuditStatus::Audited | AuditStatus::Exempt(_) => None,
        };
        subjects(lock).into_iter().filter_map(missing).collect()
    }

    /// The audits of exactly these bytes that hold on a day.
    pub fn valid<'s>(
        &'s self,
        subject: &'s Subject<'_>,
        today: Date,
    ) -> impl Iterator<Item = &'s Audit> {
        let audits = self.audits.iter().map(|placed| &placed.entry);
        audits.filter(move |audit| {
            is_of(audit, subject)
                && audit.digest == subject.digest
                && audit.expires.is_none_or(|last| today <= last)
        })
    }

    /// Whether a person accepted exactly these bytes.
    pub fn is_accepted_by(&self, subject: &Subject<'_>, who: &str, today: Date) -> bool {
        let who = Person::parse(who);
        self.valid(subject, today)
            .any(|audit| Person::parse(&audit.who).is_same(&who))
    }

    /// The audit status of one subject on a day, if this number of people must have audited it.
    pub fn status(&self, subject: &Subject<'_>, today: Date, needed: u8) -> AuditStatus {
        let of_it = || {
            let audits = self.audits.iter().map(|placed| &placed.entry);
            audits.filter(|audit| is_of(audit, subject))
        };
        let of_its_bytes = |audit: &&Audit| audit.digest == subject.digest;
        let people = different(self.valid(subject, today).map(|audit| audit.who.as_str()));
        if people.len() >= usize::from(needed.max(1)) {
            return AuditStatus::Audited;
        }
        let exempt = self.exempt_until(subject.source.path.as_str(), subject.tool_name());
        if let Some(until) = exempt.filter(|until| today <= *until) {
            return AuditStatus::Exempt(until);
        }
        if !people.is_empty() {
            let who = people.into_iter().map(str::to_owned).collect();
            return AuditStatus::Missing(AuditGap::TooFew { who, needed });
        }
        let ended = of_it()
            .filter(of_its_bytes)
            .filter_map(|audit| Some((audit.expires?, audit)))
            .max_by_key(|(date, _)| *date);
        let other = of_it().max_by_key(|audit| audit.date);
        AuditStatus::Missing(match (ended, other, exempt) {
            (Some((date, audit)), _, _) => AuditGap::Ended {
                who: audit.who.clone(),
                date,
            },
            (None, Some(audit), _) => AuditGap::Changed {
                who: audit.who.clone(),
                date: audit.date,
            },
            (None, None, Some(date)) => AuditGap::ExemptionEnded(date),
            (None, None, None) => AuditGap::Never,
        })
    }

    /// The last day on which a tool, or a source itself, needs no audit.
    pub fn exempt_until(&self, source: &str, tool: Option<&str>) -> Option<Date> {
        let exemptions = self.exemptions.iter().map(|placed| &placed.entry);
        let exemptions = exemptions.filter(|one| {
            let is_of_tool = match (&one.tool, tool) {
                (Some(glob), Some(name)) => glob.admits(name),
                (None, None) => true,
                _ => false,
            };
            is_of_tool && one.source.admits(source)
        });
        exemptions.map(|one| one.expires).max()
    }

    /// Whether these bytes were ever audited, expired or not.
    pub fn knows(&self, subject: &Subject<'_>) -> bool {
        let mut audits = self.audits.iter().map(|placed| &placed.entry);
        audits.any(|audit| is_of(audit, subject) && audit.digest == subject.digest)
    }

    /// Returns one warning about all entries without a match in the lock.
    pub fn stale(&self, lock: &Lock) -> Option<Diagnostic> {
        let audits = self.audits.iter().map(|FileEntry { line, entry }| {
            let fits = fits(lock, &entry.source, entry.tool.as_deref(), &entry.digest);
            (*line, fits)
        });
        let hints = self.hints.iter().map(|FileEntry { line, entry }| {
            let fits = fits(lock, &entry.source, Some(&entry.tool), &entry.digest);
            (*line, fits)
        });
        let suppressions = self.suppressions.iter().map(|FileEntry { line, entry }| {
            let fits = fits(lock, &entry.source, entry.tool.as_deref(), &entry.digest);
            (*line, fits)
        });
        let parts = lock.left_out_parts();
        let left_out = self.left_out.iter().map(|FileEntry { line, entry }| {
            let fits = parts.iter().any(|part| entry.accepts(part));
            (*line, fits)
        });
        let mut lines: Vec<usize> = audits
            .chain(hints)
            .chain(suppressions)
            .chain(left_out)
            .filter_map(|(line, fits)| (!fits).then_some(line))
            .collect();
        lines.sort_unstable();
        let first = *lines.first()?;
        let shown: Vec<_> = lines.iter().take(8).map(usize::to_string).collect();
        let more = match lines.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = match lines.len() {
            1 => "an entry matches nothing in the lock".to_owned(),
            many => format!(
                "{many} entries match nothing in the lock: lines {}{more}",
                shown.join(", ")
            ),
        };
        let mut warning =
            Diagnostic::warning(DiagnosticCode::AuditStale, message).in_file(&self.file);
        warning.position = Some(broker_model::json::Position {
            line: first,
            column: 1,
        });
        Some(warning)
    }
}

fn is_of(audit: &Audit, subject: &Subject<'_>) -> bool {
    audit.source == subject.source.path && audit.tool.as_deref() == subject.tool_name()
}

/// Whether the lock has exactly these bytes there.
fn fits(lock: &Lock, source: &NodePath, tool: Option<&str>, digest: &Digest) -> bool {
    let locked = lock.source(source.as_str());
    locked.is_some_and(|locked| is_in(locked, tool, digest))
}

/// Whether a source has exactly these bytes.
pub(super) fn is_in(source: &LockedSource, tool: Option<&str>, digest: &Digest) -> bool {
    match tool {
        None => source_digest(source) == *digest,
        Some(name) => source
            .exposed
            .iter()
            .any(|tool| tool.upstream_name == name && tool.digest == *digest),
    }
}

/// The text follows "has no valid audit:".
impl fmt::Display for AuditGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("it was never audited"),
            Self::TooFew { who, needed } => {
                let shown: Vec<_> = who.iter().map(|who| shown_line(who, 80)).collect();
                let (count, shown) = (who.len(), shown.join(", "));
                write!(f, "{count} of {needed} people accepted it ({shown})")
            }
            Self::Changed { who, date } => {
                let who = shown_line(who, 80);
                write!(f, "it has changed since the audit of {who} on {date}")
            }
            Self::Ended { who, date } => {
                write!(f, "the audit of {} expired on {date}", shown_line(who, 80))
            }
            Self::ExemptionEnded(date) => {
                write!(
                    f,
                    "it was never audited, and its exemption expired on {date}"
                )
            }
        }
    }
}
