//! The part of the catalog that is served at a moment, without the withdrawn and the hidden tools. A view is immutable
//! and is replaced as a whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use broker_drift::Class;
use serde::Serialize;

use crate::Reply;
use crate::admission::AdmissionClass;
use crate::catalog::Catalog;
use crate::sources::reason::Reason;

/// The maximum bytes of composed replies that one view caches.
const MAX_CACHE_BYTES: usize = 8 << 20;

/// The state of the catalog at a moment.
#[derive(Debug, Default)]
pub(crate) struct View {
    withdrawn: BTreeMap<u32, Arc<Withdrawal>>,
    hidden: Arc<BTreeSet<u32>>,
    /// Nodes whose compiled replies do not apply, since a tool directly below differs from the compiled
    /// one.
    touched: BTreeSet<u32>,
    cache: Mutex<Cache>,
}

/// Why a tool is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawal {
    pub(crate) class: Class,
    pub(crate) rules: Vec<&'static str>,
    pub(crate) reason: Reason,
    /// RFC 3339.
    pub(crate) since: String,
    /// The live tool's digest; `None` if the server lists no such tool.
    pub(crate) found: Option<String>,
    /// `"withdrawn":{…}`, as replies contain it.
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

impl Withdrawal {
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

    /// Whether both are equal except for the time.
    pub(crate) fn same_reason(&self, other: &Self) -> bool {
        self.class == other.class
            && self.rules == other.rules
            && self.reason == other.reason
            && self.found == other.found
    }
}

impl View {
    /// Makes a view without withdrawals that hides the tools in `hidden`.
    pub(crate) fn new(catalog: &Catalog, hidden: BTreeSet<u32>) -> Self {
        Self {
            hidden: Arc::new(hidden),
            ..Self::default()
        }
        .with_touched(catalog)
    }

    /// Returns a copy with exactly these withdrawals among the tools of one source.
    pub(crate) fn with_source(
        &self,
        catalog: &Catalog,
        source: usize,
        withdrawn: BTreeMap<u32, Arc<Withdrawal>>,
    ) -> Self {
        let mut all = self.withdrawn.clone();
        all.retain(|tool, _| catalog.item(*tool).source as usize != source);
        all.extend(withdrawn);
        Self {
            withdrawn: all,
            hidden: self.hidden.clone(),
            ..Self::default()
        }
        .with_touched(catalog)
    }

    /// Returns a copy that hides exactly the tools in `hidden`.
    pub(crate) fn with_hidden(&self, catalog: &Catalog, hidden: BTreeSet<u32>) -> Self {
        Self {
            withdrawn: self.withdrawn.clone(),
            hidden: Arc::new(hidden),
            ..Self::default()
        }
        .with_touched(catalog)
    }

    /// Whether it hides exactly these tools.
    pub(crate) fn hides_exactly(&self, tools: &BTreeSet<u32>) -> bool {
        *self.hidden == *tools
    }

    fn with_touched(mut self, catalog: &Catalog) -> Self {
        let sources: BTreeSet<_> = self
            .withdrawn
            .keys()
            .chain(self.hidden.iter())
            .map(|tool| catalog.item(*tool).source)
            .collect();
        // A tool is always directly below the node of its source.
        self.touched = sources
            .into_iter()
            .filter_map(|source| catalog.find(catalog.sources[source as usize].path))
            .collect();
        self
    }

    /// Returns the reason why a tool is withdrawn, if it is.
    #[inline]
    pub(crate) fn withdrawn(&self, tool: u32) -> Option<&Arc<Withdrawal>> {
        self.withdrawn.get(&tool)
    }

    /// Returns the tools that are hidden.
    pub(crate) const fn hidden(&self) -> &Arc<BTreeSet<u32>> {
        &self.hidden
    }

    /// Whether a tool is hidden.
    pub(crate) fn is_hidden(&self, tool: u32) -> bool {
        self.hidden.contains(&tool)
    }

    /// Whether a tool is served: neither hidden nor withdrawn.
    pub(crate) fn is_served(&self, tool: u32) -> bool {
        !self.is_hidden(tool) && !self.withdrawn.contains_key(&tool)
    }

    /// Whether it serves the same tools as `other`, of `count` tools.
    pub(crate) fn serves_the_same(&self, other: &Self, count: usize) -> bool {
        (0..count as u32).all(|tool| self.is_served(tool) == other.is_served(tool))
    }

    /// Whether a node's compiled replies do not apply.
    pub(crate) fn is_touched(&self, entry: u32) -> bool {
        self.touched.contains(&entry)
    }

    /// Returns the cached reply for `key`, or one composed by `make`. The lock is not held while it is composed.
    pub(crate) fn cached(&self, key: Key, make: impl FnOnce() -> Reply) -> Reply {
        if let Some(reply) = self.cache().replies.get(&key) {
            return reply.clone();
        }
        let reply = make();
        let bytes = reply.body.len() + key.2.bytes();
        let mut cache = self.cache();
        if cache.bytes + bytes > MAX_CACHE_BYTES {
            // Classes of callers that are gone must not fill it.
            *cache = Cache::default();
        }
        if bytes <= MAX_CACHE_BYTES && cache.replies.insert(key, reply.clone()).is_none() {
            cache.bytes += bytes;
        }
        reply
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        // After a panic the cache may only contain fewer replies.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
