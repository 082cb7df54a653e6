//! The parameters and results of core, apart from calls.

use broker_drift::Report;
use broker_memory::Account;
use bytes::Bytes;

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

/// A search: its query, its place, and how much it answers.
#[derive(Clone, Copy, Debug)]
pub struct SearchQuery<'a> {
    /// The words: 1 to 400 characters with a letter or digit.
    pub query: &'a str,
    /// The node above the searched tools; `None` for the topmost entry that the caller sees.
    pub path: Option<&'a str>,
    /// The maximum number of tools, from 1 to 50.
    pub limit: usize,
    /// What the answer has of each tool.
    pub detail: Detail,
    /// The account of the caller. Long searches take turns by it.
    pub account: &'a Account,
}

/// What the answer of a search has of each tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What listings show, also of withdrawn tools and of prompts and resources; and nodes of the best tools.
    Listing,
    /// What a call needs, of served tools: as many as `max_bytes` of descriptions and schemas hold, but at least one.
    Call {
        /// The maximum bytes of descriptions and schemas.
        max_bytes: usize,
    },
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
