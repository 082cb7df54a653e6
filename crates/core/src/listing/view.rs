//! What of the catalog is served at a moment: which tools are withdrawn, which are left out. A view
//! never changes; another takes its place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use broker_drift::Class;
use serde::Serialize;

use crate::Reply;
use crate::catalog::Catalog;
use crate::identity::AdmissionClass;
use crate::sources::reason::Reason;

/// Composed replies that one view keeps, in bytes of their bodies.
const MAX_CACHE_BYTES: usize = 8 << 20;

/// The catalog as it is served now.
#[derive(Debug, Default)]
pub(crate) struct View {
    withdrawn: BTreeMap<u32, Arc<Withdrawn>>,
    hidden: Arc<BTreeSet<u32>>,
    /// Nodes whose compiled replies no longer hold, since a tool right below is not as compiled.
    touched: BTreeSet<u32>,
    cache: Mutex<Cache>,
}

/// Why a tool is out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    pub(crate) class: Class,
    pub(crate) rules: Vec<&'static str>,
    pub(crate) reason: Reason,
    /// RFC 3339.
    pub(crate) since: String,
    /// The live tool's digest; `None` where there is no live tool.
    pub(crate) found: Option<String>,
    /// `"withdrawn":{…}`, as it stands in replies.
    pub(crate) member: String,
}

/// The key of a composed reply: the entry, the depth, and the class of the caller, since another class may
/// see other entries.
type Key = (u32, u8, AdmissionClass);

#[derive(Debug, Default)]
struct Cache {
    replies: HashMap<Key, Reply>,
    bytes: usize,
}

#[derive(Serialize)]
struct Member<'a> {
    class: &'a str,
    rules: &'a [&'static str],
    message: &'a str,
    since: &'a str,
}

impl Withdrawn {
    pub(crate) fn new(
        class: Class,
        rules: Vec<&'static str>,
        reason: Reason,
        since: String,
        found: Option<String>,
    ) -> Self {
        let member = Member {
            class: class.as_str(),
            rules: &rules,
            message: &reason.public,
            since: &since,
        };
        let member = format!(
            "\"withdrawn\":{}",
            serde_json::to_string(&member).expect("strings always serialize")
        );
        Self {
            class,
            rules,
            reason,
            since,
            found,
            member,
        }
    }

    /// Whether it says the same but for the time.
    pub(crate) fn same_reason(&self, other: &Self) -> bool {
        self.class == other.class
            && self.rules == other.rules
            && self.reason == other.reason
            && self.found == other.found
    }
}

impl View {
    /// A view without withdrawals that leaves out the tools in `hidden`.
    pub(crate) fn new(catalog: &Catalog, hidden: BTreeSet<u32>) -> Self {
        Self {
            hidden: Arc::new(hidden),
            ..Self::default()
        }
        .with_touched(catalog)
    }

    /// The same, with exactly these withdrawals among the tools of one source.
    pub(crate) fn with_source(
        &self,
        catalog: &Catalog,
        source: usize,
        withdrawn: BTreeMap<u32, Arc<Withdrawn>>,
    ) -> Self {
        let mut all = self.withdrawn.clone();
        all.retain(|tool, _| catalog.tool(*tool).source as usize != source);
        all.extend(withdrawn);
        Self {
            withdrawn: all,
            hidden: self.hidden.clone(),
            ..Self::default()
        }
        .with_touched(catalog)
    }

    /// The same, leaving out the tools in `hidden` and no others.
    pub(crate) fn with_hidden(&self, catalog: &Catalog, hidden: BTreeSet<u32>) -> Self {
        Self {
            withdrawn: self.withdrawn.clone(),
            hidden: Arc::new(hidden),
            ..Self::default()
        }
        .with_touched(catalog)
    }

    /// Whether it leaves out these tools and no others.
    pub(crate) fn hides_exactly(&self, tools: &BTreeSet<u32>) -> bool {
        *self.hidden == *tools
    }

    fn with_touched(mut self, catalog: &Catalog) -> Self {
        let sources: BTreeSet<_> = self
            .withdrawn
            .keys()
            .chain(self.hidden.iter())
            .map(|tool| catalog.tool(*tool).source)
            .collect();
        // A tool always stands right below the node of its source.
        self.touched = sources
            .into_iter()
            .filter_map(|source| catalog.find(catalog.sources[source as usize].path))
            .collect();
        self
    }

    /// Why a tool is out of service, where it is.
    pub(crate) fn withdrawn(&self, tool: u32) -> Option<&Arc<Withdrawn>> {
        self.withdrawn.get(&tool)
    }

    /// Whether a tool is left out of everything.
    pub(crate) fn is_hidden(&self, tool: u32) -> bool {
        self.hidden.contains(&tool)
    }

    /// Whether a node's compiled replies do not hold.
    pub(crate) fn is_touched(&self, entry: u32) -> bool {
        self.touched.contains(&entry)
    }

    /// The reply under `key`, composed by `make` unless it was kept. The lock is not held meanwhile.
    pub(crate) fn cached(&self, key: Key, make: impl FnOnce() -> Reply) -> Reply {
        if let Some(reply) = self.cache().replies.get(&key) {
            return reply.clone();
        }
        let reply = make();
        let mut cache = self.cache();
        let bytes = cache.bytes + reply.body.len();
        if bytes <= MAX_CACHE_BYTES && cache.replies.insert(key, reply.clone()).is_none() {
            cache.bytes = bytes;
        }
        reply
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        // What a panic could leave behind is a cache that holds less.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
