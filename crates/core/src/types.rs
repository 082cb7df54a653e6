//! What core is asked and what it answers, apart from calls.

use std::path::Path;

use broker_drift::Report;
use broker_mcp::Environment;
use broker_model::config::Config;
use bytes::Bytes;

use crate::catalog::Catalog;

/// What a broker is made of.
#[derive(Debug)]
pub struct Setup<'a> {
    /// What was compiled in.
    pub catalog: &'static Catalog,
    /// The config it runs with; already found to fit the catalog. Tools that its filters do not admit
    /// are left out of everything.
    pub config: &'a Config,
    /// Where variables are looked up.
    pub environment: &'a Environment,
    /// What relative paths resolve against.
    pub base: &'a Path,
    /// How it starts.
    pub mode: Mode,
}

/// How a broker starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is called before every required source was compared with the lock, and any difference
    /// refuses the start.
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

/// What is to be described.
#[derive(Clone, Copy, Debug)]
pub enum Describe<'a> {
    /// One entry; the reply is the entry.
    One(&'a str),
    /// At most 50 entries; the reply is `{"entries":[…]}` in this order.
    Many(&'a [String]),
}

/// The top of the tree for a caller, for texts that introduce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AreaRef {
    /// The path of an entry directly below the root.
    pub path: &'static str,
    /// Its summary as plain text.
    pub summary: &'static str,
}

/// What a path names, found without invoking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRef {
    /// Its path.
    pub path: &'static str,
    /// For a tool, the digest that was reviewed; `None` for a node.
    pub digest: Option<&'static str>,
    /// Whether it is a tool that was withdrawn.
    pub withdrawn: bool,
}

/// How a start went, once every required source was judged or failed.
#[derive(Clone, Debug)]
pub struct StartOutcome {
    /// Everything that differs, over all required sources.
    pub report: Report,
    /// Why it must be refused; never with [`Mode::Tolerant`].
    pub refuse: Option<RefuseExit>,
}

/// Why a start is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseExit {
    /// A source differs from the lock.
    Drift,
    /// A source could not be started or listed.
    Unchecked,
}
