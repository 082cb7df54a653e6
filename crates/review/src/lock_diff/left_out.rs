//! The parts that a lock leaves out, compared with those that a new lock of the live sources would leave out.

use std::collections::{BTreeMap, BTreeSet};

use broker_build::left_out_audits::shown;
use broker_model::left_out::LeftOut;
use broker_model::lock::{LeftOutPart, LeftOutSource, Lock, LockedSource};
use broker_model::text::shown_line;
use broker_model::{LeftOutCode, NodePath};

/// Maximum number of characters of a shown name.
const MAX_NAME_CHARS: usize = 120;

/// Describes the changes of one source that was listed now, each in one sentence. `sources` are the live sources without the
/// parts that are not sound, and `left_out` the sources that are not sound as a whole.
pub fn describe_changes(
    lock: &Lock,
    (sources, left_out): (&[LockedSource], &[LeftOutSource]),
    path: &NodePath,
) -> Vec<String> {
    let now = sources.iter().find(|source| source.path == *path);
    let now_left_out = left_out.iter().find(|source| source.path == *path);
    if let Some(before) = lock.left_out_source(path) {
        return match (now, now_left_out) {
            (Some(_), _) if !is_seen_by_one_launch(before.code) => Vec::new(),
            (Some(_), _) => vec![format!(
                "the source `{path}`, left out of the lock as `{}`, is sound now",
                before.code
            )],
            (None, Some(now)) if !is_same_source(before, now) => vec![format!(
                "the source `{path}` is left out for another reason now: {}",
                now.reason
            )],
            (None, _) => Vec::new(),
        };
    }
    let Some((before, now)) = lock.source(path.as_str()).zip(now) else {
        return Vec::new();
    };
    let did_not_start = before.kept == Some(LeftOutCode::NotStarted);
    let kept = did_not_start
        .then(|| format!("the source `{path}` starts now; the lock has an older state of it"));
    let records = before
        .left_out
        .iter()
        .filter_map(|record| change(record, now));
    let mut changes: Vec<String> = kept.into_iter().chain(records).collect();
    if changes.is_empty() && before.more_left_out.is_some() && !has_same_rest(before, now) {
        changes.push(format!(
            "the parts of `{path}` that the lock leaves out and only counts are others now"
        ));
    }
    changes
}

/// The keys of the parts of a source that the lock leaves out and only counts, if they are the same now.
pub fn counted(lock: &Lock, sources: &[LockedSource], path: &NodePath) -> BTreeSet<String> {
    let now = sources.iter().find(|source| source.path == *path);
    match lock.source(path.as_str()).zip(now) {
        Some((before, now)) if before.more_left_out.is_some() && has_same_rest(before, now) => {
            let names = now.left_out.iter();
            let keys = names.filter_map(|one| Some(one.kind.key(one.name.as_deref()?)));
            keys.collect()
        }
        _ => BTreeSet::new(),
    }
}

/// Whether a lock of the live source would count the same parts. One launch does not show unstable tools.
fn has_same_rest(before: &LockedSource, now: &LockedSource) -> bool {
    let unstable = before.left_out.iter();
    let unstable = unstable.filter(|record| !is_seen_by_one_launch(record.code));
    let mut now = now.clone();
    now.leave_out(unstable.cloned());
    now.count_rest();
    now.more_left_out == before.more_left_out
}

/// The parts that only one of two locks leaves out, by source, each in one sentence.
pub fn between(old: &Lock, new: &Lock) -> BTreeMap<NodePath, Vec<String>> {
    let (before, now) = (old.left_out_parts(), new.left_out_parts());
    let mut changes: BTreeMap<NodePath, Vec<String>> = BTreeMap::new();
    let mut add = |part: &LeftOutPart<'_>, what: &str| {
        let message = format!("{} {what} ({})", shown(part), part.code);
        changes
            .entry(part.source.clone())
            .or_default()
            .push(message);
    };
    for part in before.iter().filter(|part| !now.contains(part)) {
        add(
            part,
            "was left out, kept or unvalidated before, or for another reason",
        );
    }
    for part in now.iter().filter(|part| !before.contains(part)) {
        add(part, part.state());
    }
    changes
}

/// Whether one launch shows that the reason is gone. Two are needed to see that a source is stable.
fn is_seen_by_one_launch(code: LeftOutCode) -> bool {
    code != LeftOutCode::Unstable
}

fn is_same_source(before: &LeftOutSource, now: &LeftOutSource) -> bool {
    before.code == now.code && before.digest == now.digest
}

/// The change of one part that the lock leaves out.
fn change(record: &LeftOut, now: &LockedSource) -> Option<String> {
    if now.left_out.contains(record) || !is_seen_by_one_launch(record.code) {
        return None;
    }
    let Some(name) = &record.name else {
        // Another object without a name cannot be compared with it.
        return Some(
            "an object without a name, left out of the lock, is not listed now".to_owned(),
        );
    };
    let key = record.kind.key(name);
    let shown = format!(
        "the {} `{}`, left out of the lock as `{}`,",
        record.kind.as_str(),
        shown_line(name, MAX_NAME_CHARS),
        record.code
    );
    let mut others = now.left_out.iter();
    let other = others.find(|other| other.kind == record.kind && other.name == record.name);
    let is_listed = now.exposed.iter().any(|tool| tool.upstream_name == key)
        || now.hidden.iter().any(|tool| tool.name == key);
    Some(match other {
        Some(other) => format!("{shown} has changed: {}", other.reason),
        None if is_listed => format!("{shown} is sound now"),
        None => format!("{shown} is not listed now"),
    })
}
