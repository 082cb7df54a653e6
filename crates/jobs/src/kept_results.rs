//! The results that callers got in part: kept in memory for some time, so that their rest can be read. They are never in the
//! store.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use broker_core::MAX_KEPT_BYTES;
use broker_store::JobId;
use bytes::Bytes;
use tokio::time::Instant;

/// The maximum bytes of all results of one owner. Callers without a credential are one owner.
const MAX_OWNER_BYTES: usize = 16 << 20;
/// The maximum bytes of all results.
const MAX_BYTES: usize = 128 << 20;
/// The bytes that a result counts for at least: its place in the list.
const MIN_BYTES: usize = 512;
/// The time for which a result is kept.
const MAX_AGE: Duration = Duration::from_secs(600);
/// The begin of an id. It differs from the ids of jobs.
const PREFIX: &str = "r_";

/// Kept results, the oldest first.
#[derive(Default)]
pub(crate) struct KeptResults(Mutex<VecDeque<Entry>>);

/// One kept result.
struct Entry {
    id: JobId,
    owner: Option<String>,
    since: Instant,
    kept: KeptResult,
}

/// A result, and the path of its tool.
#[derive(Clone, Debug)]
pub(crate) struct KeptResult {
    pub(crate) path: Box<str>,
    pub(crate) result: Bytes,
}

impl fmt::Debug for KeptResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptResults")
    }
}

impl Entry {
    /// Returns the bytes that it counts for.
    fn bytes(&self) -> usize {
        self.kept.result.len().max(MIN_BYTES)
    }
}

impl KeptResults {
    /// Whether an id has the form of the id of a kept result.
    pub(crate) fn has_form(id: &str) -> bool {
        id.starts_with(PREFIX)
    }

    /// Keeps a copy of a result. The oldest results of the same owner make room, then the oldest of all. Returns its id;
    /// `None` for a result that is too long.
    pub(crate) fn keep(
        &self,
        owner: Option<String>,
        path: &str,
        result: &[u8],
    ) -> Option<Box<str>> {
        if result.len() > MAX_KEPT_BYTES {
            return None;
        }
        let entry = Entry {
            id: JobId::random().ok()?,
            owner,
            since: Instant::now(),
            kept: KeptResult {
                path: path.into(),
                result: Bytes::copy_from_slice(result),
            },
        };
        let shown = shown_id(&entry.id);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.since.elapsed() < MAX_AGE);
        let needed = entry.bytes();
        make_room(&mut all, MAX_OWNER_BYTES - needed, |one| {
            one.owner == entry.owner
        });
        make_room(&mut all, MAX_BYTES - needed, |_| true);
        all.push_back(entry);
        Some(shown)
    }

    /// Returns the result with this id, if it belongs to the owner.
    pub(crate) fn find(&self, owner: Option<&str>, id: &str) -> Option<KeptResult> {
        let id = JobId::parse(&format!("j_{}", id.strip_prefix(PREFIX)?))?;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all
            .iter()
            .filter(|one| one.since.elapsed() < MAX_AGE)
            .find(|one| one.owner.as_deref() == owner && one.id == id)?;
        Some(found.kept.clone())
    }
}

/// Removes the oldest results that `counts` until the others have at most `most` bytes.
fn make_room(all: &mut VecDeque<Entry>, most: usize, counts: impl Fn(&Entry) -> bool) {
    let mut used: usize = all.iter().filter(|one| counts(one)).map(Entry::bytes).sum();
    all.retain(|one| {
        let is_removed = used > most && counts(one);
        if is_removed {
            used -= one.bytes();
        }
        !is_removed
    });
}

fn shown_id(id: &JobId) -> Box<str> {
    let random = id.as_str().strip_prefix("j_").unwrap_or_default();
    format!("{PREFIX}{random}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn kept_result_belongs_to_its_owner_for_ten_minutes() {
        let results = KeptResults::default();
        let id = results
            .keep(owner("a"), "/a/t", b"{}")
            .expect("it has room");
        assert!(KeptResults::has_form(&id));
        let found = results.find(Some("a"), &id).expect("it is kept");
        assert_eq!((&*found.path, &found.result[..]), ("/a/t", &b"{}"[..]));
        for (other, id) in [(Some("b"), &*id), (None, &*id), (Some("a"), "r_x")] {
            assert!(results.find(other, id).is_none(), "{other:?} {id}");
        }
        tokio::time::advance(MAX_AGE).await;
        assert!(results.find(Some("a"), &id).is_none());
    }

    #[test]
    fn oldest_results_of_an_owner_make_room_and_others_keep_theirs() {
        let results = KeptResults::default();
        let mebibyte = vec![b'x'; MAX_KEPT_BYTES];
        assert!(
            results
                .keep(owner("a"), "/t", &[0; MAX_KEPT_BYTES + 1])
                .is_none()
        );
        let other = results.keep(owner("b"), "/t", b"{}").expect("an id");
        let ids: Vec<_> = (0..17)
            .map(|_| results.keep(owner("a"), "/t", &mebibyte).expect("an id"))
            .collect();
        assert!(results.find(Some("a"), &ids[0]).is_none());
        assert!(
            ids[1..]
                .iter()
                .all(|id| results.find(Some("a"), id).is_some())
        );
        assert!(results.find(Some("b"), &other).is_some());
        // All owners together.
        for name in 0..8 {
            for _ in 0..16 {
                results.keep(owner(&format!("c{name}")), "/t", &mebibyte);
            }
        }
        assert!(results.find(Some("a"), &ids[16]).is_none());
        let all = results.0.lock().expect("no panic");
        assert!(all.iter().map(Entry::bytes).sum::<usize>() <= MAX_BYTES);
    }
}
