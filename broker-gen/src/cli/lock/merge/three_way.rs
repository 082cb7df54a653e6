//! The merge of two locks, source by source. It is pure: it reads no file and starts no program.
//!
//! The state of a source is its locked content or its record as a source that is left out; a side may have neither.
//! The rules, in their order:
//!
//! | the states | the result |
//! |---|---|
//! | both sides have the same one | it |
//! | one side has that of the base | the other side's |
//! | one side only kept that of the base, since the source did not start | the other side's |
//! | one side says `not_locked` | the other side's |
//! | there is no base, and one side has none | the other side's |
//! | all others | a conflict, which names the source |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use broker_model::lock::{LeftOutSource, Lock, LockedSource};
use broker_model::{LeftOutCode, NodePath};

/// A side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Side {
    Ours,
    Theirs,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
        })
    }
}

/// The locks to merge.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Sides<'a> {
    /// The last common one, if it is known.
    pub(in crate::cli) base: Option<&'a Lock>,
    pub(in crate::cli) ours: &'a Lock,
    pub(in crate::cli) theirs: &'a Lock,
}

/// The state of a source in a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State<'a> {
    Locked(&'a LockedSource),
    LeftOut(&'a LeftOutSource),
}

/// The reason of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Clash {
    /// Both sides have another content than the base.
    BothChanged,
    /// Both sides have it, with different contents, and the base does not.
    BothAdded,
    /// This side removed it, and the other one changed it.
    Removed(Side),
}

/// A source that cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Conflict {
    pub(in crate::cli) path: NodePath,
    pub(in crate::cli) clash: Clash,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.clash {
            Clash::BothChanged => write!(f, "both sides changed the source `{path}`"),
            Clash::BothAdded => write!(f, "both sides have the source `{path}`, and it differs"),
            Clash::Removed(Side::Ours) => {
                write!(f, "ours removed the source `{path}`, and theirs changed it")
            }
            Clash::Removed(Side::Theirs) => {
                write!(f, "theirs removed the source `{path}`, and ours changed it")
            }
        }
    }
}

/// The merged sources, sorted by path. A source with a conflict has the state of ours.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct MergedSources {
    pub(in crate::cli) sources: Vec<LockedSource>,
    pub(in crate::cli) left_out: Vec<LeftOutSource>,
    pub(in crate::cli) conflicts: Vec<Conflict>,
}

/// Merges the sources. For those in `chosen` the side is given.
pub(in crate::cli) fn merge(sides: &Sides<'_>, chosen: &BTreeMap<NodePath, Side>) -> MergedSources {
    let mut merged = MergedSources::default();
    for path in paths(sides) {
        let base = sides.base.map(|lock| state(lock, path));
        let ours = state(sides.ours, path);
        let theirs = state(sides.theirs, path);
        let result = match chosen.get(path) {
            Some(Side::Ours) => ours,
            Some(Side::Theirs) => theirs,
            None => merge_states(base, ours, theirs).unwrap_or_else(|clash| {
                let path = path.clone();
                merged.conflicts.push(Conflict { path, clash });
                ours
            }),
        };
        match result {
            Some(State::Locked(source)) => merged.sources.push(source.clone()),
            Some(State::LeftOut(record)) => merged.left_out.push(record.clone()),
            None => {}
        }
    }
    merged
}

/// The paths of all sources, sorted.
fn paths<'a>(sides: &Sides<'a>) -> BTreeSet<&'a NodePath> {
    let locks = [sides.base, Some(sides.ours), Some(sides.theirs)];
    let locks = locks.into_iter().flatten();
    locks
        .flat_map(|lock| {
            let locked = lock.sources.iter().map(|source| &source.path);
            locked.chain(lock.left_out.iter().map(|source| &source.path))
        })
        .collect()
}

fn state<'a>(lock: &'a Lock, path: &NodePath) -> Option<State<'a>> {
    let locked = lock.source(path.as_str()).map(State::Locked);
    locked.or_else(|| lock.left_out_source(path).map(State::LeftOut))
}

/// The merged state. `base` is `None` if there is no base.
fn merge_states<'a>(
    base: Option<Option<State<'a>>>,
    ours: Option<State<'a>>,
    theirs: Option<State<'a>>,
) -> Result<Option<State<'a>>, Clash> {
    if are_same(ours, theirs) {
        // Version 2 repeats fields of the config; version 1 does not.
        return Ok(match theirs {
            Some(State::Locked(source)) if source.settings.is_some() => theirs,
            _ => ours,
        });
    }
    if let Some(base) = base {
        // The mark of a kept state counts as a change if the other side has no change; a new content of the other side
        // settles it.
        if are_same(base, theirs) {
            return Ok(ours);
        }
        if are_same(base, ours) {
            return Ok(theirs);
        }
        if only_keeps(theirs, base) {
            return Ok(ours);
        }
        if only_keeps(ours, base) {
            return Ok(theirs);
        }
    }
    if is_not_locked(ours) && theirs.is_some() {
        return Ok(theirs);
    }
    if is_not_locked(theirs) && ours.is_some() {
        return Ok(ours);
    }
    match (base.flatten(), ours, theirs) {
        (None, None, theirs) => Ok(theirs),
        (None, ours, None) => Ok(ours),
        (None, Some(_), Some(_)) => Err(Clash::BothAdded),
        (Some(_), None, _) => Err(Clash::Removed(Side::Ours)),
        (Some(_), _, None) => Err(Clash::Removed(Side::Theirs)),
        (Some(_), Some(_), Some(_)) => Err(Clash::BothChanged),
    }
}

fn is_not_locked(state: Option<State<'_>>) -> bool {
    match state {
        Some(State::LeftOut(record)) => record.code == LeftOutCode::NotLocked,
        Some(State::Locked(_)) | None => false,
    }
}

/// Whether the state is the state of the base with the mark that the source did not start or runs another package.
fn only_keeps(state: Option<State<'_>>, base: Option<State<'_>>) -> bool {
    let (Some(State::Locked(state)), Some(State::Locked(base))) = (state, base) else {
        return false;
    };
    let unmarked = LockedSource {
        kept: base.kept,
        ..state.clone()
    };
    state.kept.is_some() && is_same_source(&unmarked, base)
}

fn are_same(one: Option<State<'_>>, other: Option<State<'_>>) -> bool {
    match (one, other) {
        (Some(State::Locked(one)), Some(State::Locked(other))) => is_same_source(one, other),
        _ => one == other,
    }
}

/// Whether both have the same content. If one is of a lock of version 1, the members of later versions are not compared.
fn is_same_source(one: &LockedSource, other: &LockedSource) -> bool {
    if one.settings.is_some() == other.settings.is_some() {
        return one == other;
    }
    without_version_2(one) == without_version_2(other)
}

fn without_version_2(source: &LockedSource) -> LockedSource {
    let mut source = source.clone();
    (source.settings, source.sensitive_words) = (None, None);
    for tool in &mut source.exposed {
        tool.summary = None;
        tool.search_hints = Vec::new();
    }
    source
}
