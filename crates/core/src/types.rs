//! The parameters and results of core, apart from calls.

use std::borrow::Cow;

use broker_drift::Report;
use bytes::Bytes;

use crate::listing::query_vector::QueryVector;

/// The mode of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// No call is admitted before every required source was compared with the lock, and any difference
    /// refuses the start. For a source with `on_unreachable: serve` the start waits only a limited time.
    Plain,
    /// Each source is admitted at its own verdict; tools that do not match are withdrawn.
    Tolerant,
}

/// A listing or a description.
#[derive(Clone, Debug)]
pub struct Reply {
    /// One JSON object.
    pub body: Bytes,
    /// Its entity tag, with quotes, where it has one.
    pub etag: Option<String>,
}

/// Where a search looks and how much it answers.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions<'a> {
    /// The node above the searched tools; `None` for the topmost entry that the caller sees.
    pub path: Option<&'a str>,
    /// The maximum number of tools, from 1 to 50.
    pub limit: usize,
    /// The vector of the query, from [`Core::query_vector`](crate::Core::query_vector); without it words answer, and the
    /// table unless the config leaves it out.
    pub vector: Option<&'a QueryVector>,
}

impl Default for SearchOptions<'_> {
    /// Returns the options for five tools of the whole tree.
    fn default() -> Self {
        Self {
            path: None,
            limit: broker_search::DEFAULT_HITS,
            vector: None,
        }
    }
}

/// The entries to describe.
#[derive(Clone, Copy, Debug)]
pub enum Describe<'a> {
    /// One entry; the reply is the entry.
    One(&'a str),
    /// At most 50 entries; the reply is `{"entries":[…]}` in this order.
    Many(&'a [String]),
}

/// An entry directly below the topmost one that the caller sees, for texts that introduce the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AreaRef {
    /// Its path.
    pub path: &'static str,
    /// Its summary as plain text.
    pub summary: Cow<'static, str>,
    /// Whether it is a node.
    pub is_node: bool,
}

/// The entry at a path, found without invoking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRef {
    /// Its path.
    pub path: &'static str,
    /// For a tool, the digest that was reviewed; `None` for a node.
    pub digest: Option<&'static str>,
    /// Whether it is a tool that was withdrawn.
    pub withdrawn: bool,
}

/// The outcome of a start, once no source is awaited any longer.
#[derive(Clone, Debug)]
pub struct StartOutcome {
    /// Everything that differs, over all required sources, also those that could not be compared.
    pub report: Report,
    /// Why it must be refused; never with [`StartMode::Tolerant`].
    pub refuse: Option<RefusalCause>,
}

/// Why a start is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// A source differs from the lock.
    Drift,
    /// A source that the start needs could not be started or listed.
    Unchecked,
}

/// The sources that a start may leave out, so that the others are served.
#[derive(Clone, Debug, Default)]
pub struct PartialStart {
    /// Whether a source with a variable that is not set fails alone, with the cause `env_missing`.
    pub allows_missing_variables: bool,
    /// The command that examines the sources, if callers may know it: over stdio the client is the operator's own. Then
    /// calls of a source with a missing variable name the variable and this command.
    pub doctor: Option<String>,
    /// The sources whose part of the lock is stale. They are not started.
    pub stale: Vec<StaleSource>,
}

/// A source whose part of the lock is stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleSource {
    /// Its path.
    pub path: String,
    /// The difference, and the command that corrects it: a lowercase fragment for callers.
    pub message: String,
}
