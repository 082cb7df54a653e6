//! What a layer above can record of a call and only the call path knows.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use broker_model::item::ItemKind;
use broker_model::redact::Redactor;
use tokio::time::Instant;

use crate::catalog::EntryKind;
use crate::snapshot::Snapshot;

/// The facts that the call path fills in along the way.
#[derive(Debug, Default)]
pub struct CallRecord {
    reviewed: OnceLock<ReviewedVersions>,
    item: OnceLock<RecordedItem>,
    args_bytes: OnceLock<usize>,
    shown_args: OnceLock<ShownArgs>,
    sent: OnceLock<Instant>,
    server_revision: OnceLock<&'static str>,
    answered: OnceLock<Instant>,
    job: OnceLock<Box<str>>,
}

/// The versions under which a call is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewedVersions {
    /// The digest of the catalog.
    pub catalog: &'static str,
    /// The root digest of its lock.
    pub lock: &'static str,
    /// The digest of the access rules; empty without rules.
    pub policy: Arc<str>,
}

/// The item of a call, under the version that was reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedItem {
    /// Its index in the catalog's items.
    pub at: u32,
    /// Its path.
    pub path: &'static str,
    /// Its kind.
    pub kind: ItemKind,
    /// The server's identifier for it.
    pub id: &'static str,
    /// The path of its source.
    pub source: &'static str,
    /// The digest that was reviewed.
    pub digest: &'static str,
    /// Whether it changes nothing, by its kind or its reviewed hints.
    pub is_read_only: bool,
    /// Whether the rules deny it to the caller, so that it does not exist for the caller.
    pub is_denied: bool,
    /// The index of the access rule that decided, if there is one.
    pub rule: Option<usize>,
}

/// The arguments of a call that its record may show.
#[derive(Debug)]
pub struct ShownArgs {
    /// Their JSON pointers; each names a scalar.
    pub pointers: &'static [&'static str],
    /// Masks the secrets of the sources in their values.
    pub redactor: Redactor,
}

impl CallRecord {
    /// Returns the versions under which the call is decided, once it has begun.
    #[inline]
    pub fn reviewed(&self) -> Option<&ReviewedVersions> {
        self.reviewed.get()
    }

    /// Returns the item, if the path of the call names one.
    #[inline]
    pub fn item(&self) -> Option<&RecordedItem> {
        self.item.get()
    }

    /// Returns the bytes of the arguments, once they were checked.
    #[inline]
    pub fn args_bytes(&self) -> Option<usize> {
        self.args_bytes.get().copied()
    }

    /// Returns the arguments that the record may show; `None` if the tool has none.
    #[inline]
    pub fn shown_args(&self) -> Option<&ShownArgs> {
        self.shown_args.get()
    }

    /// Whether the call was given to a session of its source.
    #[inline]
    pub fn is_sent(&self) -> bool {
        self.sent.get().is_some()
    }

    /// Returns when the call was given to a session of its source.
    pub fn sent_at(&self) -> Option<Instant> {
        self.sent.get().copied()
    }

    /// Returns the time from sending the call to its answer or failure.
    #[inline]
    pub fn server_time(&self) -> Option<Duration> {
        let (sent, answered) = self.sent.get().zip(self.answered.get())?;
        Some(answered.duration_since(*sent))
    }

    /// Returns the id of the job that the call became.
    pub fn job(&self) -> Option<&str> {
        self.job.get().map(AsRef::as_ref)
    }

    /// Records the job that the call became.
    pub fn become_job(&self, id: &str) {
        self.job.get_or_init(|| id.into());
    }

    /// Records what is in force as the call begins.
    pub(super) fn begin(&self, begun: &Snapshot) {
        self.reviewed.get_or_init(|| ReviewedVersions {
            catalog: begun.core.catalog.catalog_digest,
            lock: begun.core.catalog.root_digest,
            policy: begun.terms.policy.digest().clone(),
        });
    }

    /// Records the item of a call. A call has one, so a second one is ignored.
    pub(super) fn resolve(&self, begun: &Snapshot, at: u32) {
        self.item.get_or_init(|| item(begun, at, false));
        let pointers = begun.core.catalog.item(at).audit;
        if !pointers.is_empty() {
            self.shown_args.get_or_init(|| ShownArgs {
                pointers,
                redactor: begun.core.redactor(),
            });
        }
    }

    /// Records an item that the rules deny to the caller.
    pub(super) fn deny(&self, begun: &Snapshot, path: &str) {
        let catalog = begun.core.catalog;
        if let Some(found) = catalog.find(path)
            && let EntryKind::Item(at) = catalog.entry(found).kind
        {
            self.item.get_or_init(|| item(begun, at, true));
        }
    }

    /// Records the bytes of arguments that were checked.
    #[inline]
    pub(super) fn check(&self, args: &[u8]) {
        self.args_bytes.get_or_init(|| args.len());
    }

    /// Returns the revision of MCP in which a traced call was sent.
    pub fn server_revision(&self) -> Option<&'static str> {
        self.server_revision.get().copied()
    }

    /// Records the revision of the session that a traced call is given to.
    pub(super) fn send_in(&self, revision: &'static str) {
        self.server_revision.get_or_init(|| revision);
    }

    /// Records that the call is given to a session.
    #[inline]
    pub(super) fn send(&self) {
        self.sent.get_or_init(Instant::now);
    }

    /// Records that the session has answered or failed; returns when.
    #[inline]
    pub(super) fn answer(&self) -> Instant {
        *self.answered.get_or_init(Instant::now)
    }
}

fn item(begun: &Snapshot, at: u32, is_denied: bool) -> RecordedItem {
    let (catalog, policy) = (begun.core.catalog, &begun.terms.policy);
    let item = catalog.item(at);
    RecordedItem {
        at,
        path: catalog.entry(item.entry).path,
        kind: item.kind,
        id: item.id,
        source: catalog.sources[item.source as usize].path,
        digest: item.digest,
        is_read_only: item.kind != ItemKind::Tool || policy.is_read_only(catalog, at),
        is_denied,
        rule: begun.caller.deciding_rule(catalog, at),
    }
}
