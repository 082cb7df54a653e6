//! The entries of a source for the new path of its node: each keeps its author and its date, and says who moved it.

use broker_model::NodePath;
use broker_model::lock::{LeftOutPart, LockedSource};
use broker_model::text::shown_line;

use crate::status::is_in;
use crate::{
    Audit, Audits, Date, Decision, HintAudit, HintValues, LeftOutAudit, Subject, Suppression,
};

/// A node that was moved, and the content of its source.
#[expect(missing_debug_implementations, reason = "it contains a closure")]
pub struct Move<'a> {
    pub old: &'a NodePath,
    pub new: &'a NodePath,
    /// The author of the move.
    pub who: &'a str,
    /// The content that an entry must match.
    pub locked: Option<&'a LockedSource>,
    /// The parts of the source that the lock leaves out.
    pub left_out: &'a [LeftOutPart<'a>],
    /// The hints that the config sets for a tool of the new path.
    pub hints: &'a dyn Fn(&str) -> Option<HintValues>,
}

/// The entries for the new path.
#[derive(Debug, Default)]
pub struct Carried {
    /// The number of entries of the old path that are for bytes of the new one.
    pub matching: usize,
    /// Those that the file does not have yet.
    pub new: Vec<Decision>,
}

impl Carried {
    fn add(&mut self, is_known: bool, decision: Decision) {
        self.matching += 1;
        if !is_known {
            self.new.push(decision);
        }
    }
}

impl Audits {
    /// Whether an entry that is bound to bytes is of this source.
    pub fn name_source(&self, source: &NodePath) -> bool {
        let audits = self.audits.iter().map(|placed| &placed.entry.source);
        let hints = self.hints.iter().map(|placed| &placed.entry.source);
        let suppressions = self.suppressions.iter().map(|placed| &placed.entry.source);
        let left_out = self.left_out.iter().map(|placed| &placed.entry.source);
        let mut all = audits.chain(hints).chain(suppressions).chain(left_out);
        all.any(|known| known == source)
    }

    /// The audits of the bytes of a subject at other paths that have not expired: of the same tool.
    pub fn at_other_paths(
        &self,
        subject: &Subject<'_>,
        today: Date,
    ) -> impl Iterator<Item = &Audit> {
        let audits = self.audits.iter().map(|placed| &placed.entry);
        audits.filter(move |audit| {
            audit.source != subject.source.path
                && audit.tool.as_deref() == subject.tool_name()
                && audit.digest == subject.digest
                && audit.expires.is_none_or(|last| today <= last)
        })
    }

    /// The entries of the old path of a node for its new path.
    pub fn moved(&self, moved: &Move<'_>) -> Carried {
        let mut carried = Carried::default();
        let is_locked = |tool: Option<&str>, digest| {
            let locked = moved.locked;
            locked.is_some_and(|locked| is_in(locked, tool, digest))
        };
        let of_old = |source: &NodePath| source == moved.old;
        let today = Date::today();
        for audit in self.audits.iter().map(|placed| &placed.entry) {
            let holds = audit.expires.is_none_or(|last| today <= last);
            if !of_old(&audit.source) || !holds || !is_locked(audit.tool.as_deref(), &audit.digest)
            {
                continue;
            }
            let new = Audit {
                source: moved.new.clone(),
                notes: Some(moved.note(audit.notes.as_deref())),
                ..audit.clone()
            };
            carried.add(self.has_audit(&new), Decision::Audit(new));
        }
        for audit in self.hints.iter().map(|placed| &placed.entry) {
            let is_set = (moved.hints)(&audit.tool).is_some_and(|set| set == audit.values);
            if !of_old(&audit.source) || !is_set || !is_locked(Some(&audit.tool), &audit.digest) {
                continue;
            }
            let new = HintAudit {
                source: moved.new.clone(),
                notes: Some(moved.note(audit.notes.as_deref())),
                ..audit.clone()
            };
            carried.add(self.has_hints(&new), Decision::Hints(new));
        }
        for one in self.suppressions.iter().map(|placed| &placed.entry) {
            if !of_old(&one.source) || !is_locked(one.tool.as_deref(), &one.digest) {
                continue;
            }
            let new = Suppression {
                source: moved.new.clone(),
                reason: moved.note(Some(&one.reason)),
                ..one.clone()
            };
            let (source, tool) = (moved.new.as_str(), one.tool.as_deref());
            let is_known = self.suppresses(&one.rule, source, tool, &one.digest);
            carried.add(is_known, Decision::Suppression(new));
        }
        for one in self.left_out.iter().map(|placed| &placed.entry) {
            let is_same = |part: &LeftOutPart<'_>| {
                part.tool == one.tool
                    && part.code.as_str() == one.reason
                    && part.digest == one.digest
            };
            if !of_old(&one.source) || !moved.left_out.iter().any(is_same) {
                continue;
            }
            let new = LeftOutAudit {
                source: moved.new.clone(),
                notes: Some(moved.note(one.notes.as_deref())),
                ..one.clone()
            };
            carried.add(self.has_left_out(&new), Decision::LeftOut(new));
        }
        carried
    }

    /// Whether an audit of the same bytes by the same person has the same end.
    fn has_audit(&self, new: &Audit) -> bool {
        let mut known = self.audits.iter().map(|placed| &placed.entry);
        known.any(|one| {
            (&one.source, &one.tool, &one.digest) == (&new.source, &new.tool, &new.digest)
                && (&one.who, one.expires) == (&new.who, new.expires)
        })
    }

    fn has_left_out(&self, new: &LeftOutAudit) -> bool {
        let mut known = self.left_out.iter().map(|placed| &placed.entry);
        known.any(|one| {
            (&one.source, &one.tool) == (&new.source, &new.tool)
                && (&one.digest, &one.reason) == (&new.digest, &new.reason)
        })
    }
}

impl Move<'_> {
    /// The text of an entry with the note of the move.
    fn note(&self, before: Option<&str>) -> String {
        let who = shown_line(self.who, 200);
        let note = format!("moved from {} by {who}", self.old);
        match before {
            Some(before) => format!("{before}; {note}"),
            None => note,
        }
    }
}
