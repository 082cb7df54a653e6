//! Sources whose part of the lock is stale, in a lock that is sound for the others.

use broker_config::{Config, Source};
use broker_model::lock::{Lock, LockedAccess};
use broker_model::{Diagnostic, DiagnosticCode, NodePath, Snapshot};

use super::check_fresh;

/// A source whose part of the lock is stale.
#[derive(Clone, Debug)]
pub struct StaleSource {
    /// Its path.
    pub path: NodePath,
    /// What differs.
    pub problem: Diagnostic,
}

/// The sources whose part of the lock is stale, and the problems of parts of the lock that no source has. A source that
/// the lock does not have gets an empty part.
///
/// # Errors
///
/// The lock as a whole is stale: a trust level or the section `access` has changed, or the config has such a section and
/// the lock does not record it, so that its rules may not be those that were reviewed.
pub fn stale_sources(
    config: &Config,
    lock: &mut Lock,
) -> Result<(Vec<StaleSource>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Err(problems) = check_fresh(config, lock) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let has_other_level = |source: &Source| {
        lock.source(source.path.as_str())
            .is_some_and(|locked| locked.trust_level() != source.exposure.level())
    };
    // A lock that does not record the rules does not record rules that are gone either.
    let has_same_access = match (lock.access(), config.access_digest()) {
        (LockedAccess::NotRecorded | LockedAccess::Absent, access) => access.is_none(),
        (LockedAccess::Rules(locked), access) => access.as_ref() == Some(locked),
    };
    if !has_same_access || config.sources().any(has_other_level) {
        return Err(problems);
    }
    let (mut stale, mut orphans) = (Vec::new(), Vec::new());
    for problem in &problems {
        let source = config
            .sources()
            .find(|source| problem.pointer.as_ref() == Some(&source.pointer));
        let is_stale = problem.code == DiagnosticCode::LockStale;
        let is_orphan = problem.code == DiagnosticCode::LockOrphan;
        match source {
            Some(source) if is_stale => stale.push(StaleSource {
                path: source.path.clone(),
                problem: problem.clone(),
            }),
            None if is_orphan => orphans.push(problem.clone()),
            Some(_) | None => return Err(problems),
        }
    }
    let is_stale = |path: &NodePath| stale.iter().any(|stale| stale.path == *path);
    for source in config.sources().filter(|source| is_stale(&source.path)) {
        if lock.source(source.path.as_str()).is_none() {
            lock.left_out
                .retain(|left_out| left_out.path != source.path);
            lock.sources.push(source.to_locked(&Snapshot::empty()));
        }
    }
    lock.sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((stale, orphans))
}
