//! Descriptions of entries as values, with the JSON that the build compiled in where it applies.

use std::borrow::Cow;
use std::sync::Arc;

use broker_model::CallCode;
use broker_model::digest::etag;
use bytes::Bytes;

use crate::MAX_DESCRIBED;
use crate::catalog::{Catalog, EntryKind};
use crate::errors::error::CoreError;
use crate::listing::entry::ListedEntry;
use crate::listing::nearest::{Budget, MAX_UNKNOWN};
use crate::listing::paths;
use crate::listing::scope::Scope;
use crate::snapshot::Snapshot;
use crate::types::Reply;

/// Entries that are compared with unknown paths on a thread of the runtime.
const MAX_INLINE_LOOKUPS: usize = 5_000;

/// The description of one entry, or the reason why it has none.
pub type Described = Result<Description, Box<CoreError>>;

/// What a caller has to know of an entry before it lists or calls it.
#[derive(Clone, Debug)]
pub struct Description {
    path: &'static str,
    text: Cow<'static, str>,
    /// The text with the reason why the item cannot be called now, if there is one. It comes and goes with the state of
    /// the source, so it is not part of the tag.
    unavailable_text: Option<String>,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    /// An entry of the catalog; the tag of its text, if it is compiled in.
    Catalog(Seen, u32, Option<&'static str>),
    /// A node that a layer changed, and the members before its children.
    Changed(Box<ListedEntry>, &'static str),
}

/// The catalog as the caller of a description saw it.
#[derive(Clone, Debug)]
enum Seen {
    /// Of one description.
    Once(Snapshot),
    /// Of several ones.
    Shared(Arc<Snapshot>),
}

impl Seen {
    fn snapshot(&self) -> &Snapshot {
        match self {
            Self::Once(snapshot) => snapshot,
            Self::Shared(snapshot) => snapshot,
        }
    }

    fn scope(&self) -> Scope<'_> {
        self.snapshot().scope()
    }
}

impl Description {
    /// Describes entries, each for itself.
    ///
    /// # Errors
    ///
    /// `field_invalid` for more than [`MAX_DESCRIBED`] paths.
    pub(crate) fn all(
        snapshot: Snapshot,
        names: &[impl AsRef<str>],
    ) -> Result<Vec<Described>, Box<CoreError>> {
        if names.len() > MAX_DESCRIBED {
            let message = format!(
                "`paths` has {} items, at most {MAX_DESCRIBED} are allowed",
                names.len()
            );
            return Err(Box::new(CoreError::new(CallCode::FieldInvalid, message)));
        }
        let mut budget = Budget::default();
        let mut find = |snapshot: &Snapshot, path: &str| {
            paths::resolve_within(snapshot.scope(), path, &mut budget)
        };
        if let [path] = names {
            let found = find(&snapshot, path.as_ref());
            return Ok(vec![found.map(|at| Self::new(Seen::Once(snapshot), at))]);
        }
        let snapshot = Arc::new(snapshot);
        let described = names.iter().map(|path| {
            let at = find(&snapshot, path.as_ref())?;
            Ok(Self::new(Seen::Shared(Arc::clone(&snapshot)), at))
        });
        Ok(described.collect())
    }

    fn new(seen: Seen, at: u32) -> Self {
        let scope = seen.scope();
        let entry = scope.catalog.entry(at);
        let (text, tag) = match scope.changed_description(at, entry) {
            Some(text) => (Cow::Owned(text), None),
            None => (
                Cow::Borrowed(scope.catalog.text(entry.desc)),
                Some(entry.desc_etag),
            ),
        };
        let unavailable_text = match entry.kind {
            EntryKind::Item(item) => unavailable_text(&seen, item, &text),
            EntryKind::Node { .. } => None,
        };
        Self {
            path: entry.path,
            text,
            unavailable_text,
            origin: Origin::Catalog(seen, at, tag),
        }
    }

    /// Returns the path of the entry.
    pub const fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the description as one JSON object.
    pub fn json(&self) -> &str {
        self.unavailable_text.as_deref().unwrap_or(&self.text)
    }

    /// Returns the description without the state of its source, from which entity tags are made.
    pub fn stable_json(&self) -> &str {
        &self.text
    }

    /// Whether it does not have the state of its source.
    pub fn is_stable(&self) -> bool {
        self.unavailable_text.is_none()
    }

    /// Returns the node with the entries directly below it; `None` for an item.
    pub fn node(&self) -> Option<ListedEntry> {
        match &self.origin {
            Origin::Changed(node, _) => Some((**node).clone()),
            Origin::Catalog(snapshot, at, _) => {
                let scope = snapshot.scope();
                match scope.catalog.entry(*at).kind {
                    EntryKind::Node { .. } => Some(scope.listed_entry(*at, 1)),
                    EntryKind::Item(_) => None,
                }
            }
        }
    }

    /// Returns the description of the node with another head and other children. An item is unchanged.
    #[must_use]
    pub fn with_node(self, node: ListedEntry) -> Self {
        let members = match &self.origin {
            Origin::Changed(_, members) => members,
            Origin::Catalog(snapshot, at, _) => {
                let scope = snapshot.scope();
                match scope.catalog.entry(*at).kind {
                    EntryKind::Node { .. } => scope.node_members(*at),
                    EntryKind::Item(_) => return self,
                }
            }
        };
        let mut text = String::with_capacity(1024);
        node.push_with(members, &mut text);
        Self {
            path: node.path,
            text: Cow::Owned(text),
            unavailable_text: None,
            origin: Origin::Changed(Box::new(node), members),
        }
    }

    /// Returns the JSON of the description, with an entity tag unless a layer changed it.
    pub fn into_reply(self) -> Reply {
        let etag = match &self.origin {
            Origin::Changed(..) => None,
            Origin::Catalog(snapshot, _, tag) => {
                let tag = tag.map_or_else(|| etag(self.text.as_bytes()), str::to_owned);
                Some(snapshot.scope().etag_of(tag))
            }
        };
        let body = match (self.unavailable_text, self.text) {
            (Some(text), _) | (None, Cow::Owned(text)) => Bytes::from(text),
            (None, Cow::Borrowed(text)) => Bytes::from_static(text.as_bytes()),
        };
        Reply { body, etag }
    }
}

/// Returns the description of an item with the reason why it cannot be called now, if there is one. A withdrawn item says
/// why by itself.
fn unavailable_text(seen: &Seen, item: u32, text: &str) -> Option<String> {
    let snapshot = seen.snapshot();
    let source = snapshot.core.catalog.item(item).source as usize;
    let unavailable = snapshot.core.fleet.unavailable(source)?;
    if snapshot.scope().view.withdrawn(item).is_some() {
        return None;
    }
    let open = text.strip_suffix('}')?;
    Some(format!("{open},{}}}", unavailable.member()))
}

/// Whether suggestions for the unknown ones of these paths take long.
pub(crate) fn is_long_lookup(catalog: &Catalog, paths: &[&str]) -> bool {
    // Nearly every catalog is so small that no path needs to be looked up for this.
    if MAX_UNKNOWN * catalog.entries.len() <= MAX_INLINE_LOOKUPS {
        return false;
    }
    let unknown = paths.iter().filter(|path| catalog.find(path).is_none());
    unknown.take(MAX_UNKNOWN).count() * catalog.entries.len() > MAX_INLINE_LOOKUPS
}
