//! The parts of a source's latest listing that are not used, and what was odd about it: for the log, the health routes
//! and a diagnosis.

use std::sync::Arc;

use arc_swap::ArcSwap;
use broker_model::Snapshot;
use broker_model::left_out::LeftOut;
use broker_model::trust::Exposure;
use serde::Serialize;

/// Maximum number of parts and of warnings that are shown or logged; more are counted.
const MAX_SHOWN: usize = 20;

/// The notes on one listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingNotes {
    left_out: Vec<LeftOut>,
    warnings: Vec<String>,
}

/// One part that is left out, as `/sources` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownLeftOut<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    code: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    place: &'a str,
    reason: &'a str,
    remedy: &'static str,
}

impl ListingNotes {
    /// Makes the notes on a snapshot, without parts that the config hides.
    pub(crate) fn new(snapshot: &Snapshot, exposure: &Exposure) -> Self {
        let is_shown = |part: &&LeftOut| {
            let name = part.name.as_ref();
            name.is_none_or(|name| exposure.exposes(&part.kind.key(name)))
        };
        Self {
            left_out: snapshot.left_out.iter().filter(is_shown).cloned().collect(),
            warnings: snapshot.warnings.clone(),
        }
    }

    /// Returns the number of parts that are left out.
    pub fn left_out_count(&self) -> usize {
        self.left_out.len()
    }

    /// Returns the first parts that are left out.
    pub fn left_out(&self) -> impl Iterator<Item = ShownLeftOut<'_>> {
        self.left_out
            .iter()
            .take(MAX_SHOWN)
            .map(|part| ShownLeftOut {
                kind: part.kind.as_str(),
                name: part.name.as_deref(),
                code: part.code.as_str(),
                place: &part.place,
                reason: &part.reason,
                remedy: part.code.remedy(),
            })
    }

    /// Returns the first parts that are left out, each in one line with its remedy.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().take(MAX_SHOWN).map(LeftOut::line)
    }

    /// Returns the first warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings[..self.warnings.len().min(MAX_SHOWN)]
    }

    /// Logs these new notes.
    fn log(&self, source: &str) {
        for part in self.left_out.iter().take(MAX_SHOWN) {
            tracing::warn!(
                source,
                kind = part.kind.as_str(),
                name = part.name.as_deref(),
                code = part.code.as_str(),
                place = part.place,
                reason = part.reason,
                "left out of the listing"
            );
        }
        if let Some(more @ 1..) = self.left_out.len().checked_sub(MAX_SHOWN) {
            tracing::warn!(source, more, "more is left out of the listing");
        }
        for reason in self.warnings() {
            tracing::warn!(source, reason, "the listing is odd");
        }
    }
}

/// The notes on the latest listing of every source.
#[derive(Debug)]
pub(crate) struct AllListingNotes(Box<[ArcSwap<ListingNotes>]>);

impl AllListingNotes {
    /// Makes the state without notes on any source.
    pub(crate) fn new(sources: usize) -> Self {
        Self((0..sources).map(|_| ArcSwap::default()).collect())
    }

    /// Returns the notes on the latest listing of a source.
    pub(crate) fn get(&self, source: usize) -> Arc<ListingNotes> {
        self.0[source].load_full()
    }

    /// Replaces the notes on a source, and logs them if they changed.
    pub(crate) fn store(&self, source: usize, path: &str, notes: Arc<ListingNotes>) {
        let before = self.0[source].swap(notes.clone());
        if before != notes {
            notes.log(path);
        }
    }
}
