//! A draft of the lock: the sources that are sound so far, and what was left out of it.

use broker_config::Config;
use broker_model::digest::Digest;
use broker_model::item::ItemKind;
use broker_model::left_out::{LeftOut, MAX_NAME_CHARS};
use broker_model::lock::{LOCK_VERSION, LeftOutSource, Lock, LockedSource};
use broker_model::{Diagnostic, LeftOutCode, NodePath};

/// The result of one check.
#[derive(Debug, Default)]
pub(in crate::cli) struct CheckResult {
    /// The parts that the lock leaves out.
    pub(in crate::cli) left_out: Vec<LeaveOut>,
    /// Problems without an effect on the lock.
    pub(in crate::cli) warnings: Vec<Diagnostic>,
    /// Errors of the config file, of `access` or of the command line: there is no lock.
    pub(in crate::cli) refused: Vec<Diagnostic>,
}

/// A part to leave out.
#[derive(Debug)]
pub(in crate::cli) struct LeaveOut {
    /// Its source.
    pub(in crate::cli) source: NodePath,
    /// The part.
    pub(in crate::cli) part: Part,
    /// The reason as an error, for `--all-or-nothing`, with the remedy.
    pub(in crate::cli) problem: Diagnostic,
}

/// A part of a source.
#[derive(Debug)]
pub(in crate::cli) enum Part {
    /// A tool or item, by its record.
    Tool(LeftOut),
    /// The whole source.
    Source {
        code: LeftOutCode,
        /// The JSON pointer of the place in the listing.
        place: String,
        reason: String,
        /// The digest of what was seen.
        digest: Option<Digest>,
    },
    /// The current state of the source; this locked one is kept in its place.
    Current {
        code: LeftOutCode,
        locked: Box<LockedSource>,
    },
}

impl LeaveOut {
    /// Leaves out one tool or item with this digest in the draft.
    pub(in crate::cli) fn tool(
        source: &NodePath,
        key: &str,
        digest: Digest,
        reason: (LeftOutCode, &str, &str),
        problem: Diagnostic,
    ) -> Self {
        let (kind, id) = ItemKind::parse_key(key);
        let (code, place, reason) = reason;
        Self {
            source: source.clone(),
            part: Part::Tool(LeftOut {
                kind,
                name: Some(id.chars().take(MAX_NAME_CHARS).collect()),
                code,
                place: place.to_owned(),
                reason: reason.to_owned(),
                digest,
            }),
            problem,
        }
    }

    /// Whether it is about one of the tools with these keys.
    pub(in crate::cli) fn is_of_tools(&self, keys: &[String]) -> bool {
        match &self.part {
            Part::Tool(record) => {
                let key = record.name.as_deref().map(|name| record.kind.key(name));
                key.is_some_and(|key| keys.contains(&key))
            }
            Part::Source { .. } | Part::Current { .. } => false,
        }
    }

    /// Leaves out a whole source.
    pub(in crate::cli) fn source(
        source: &NodePath,
        digest: Option<Digest>,
        reason: (LeftOutCode, &str, &str),
        problem: Diagnostic,
    ) -> Self {
        let (code, place, reason) = reason;
        Self {
            source: source.clone(),
            part: Part::Source {
                code,
                place: place.to_owned(),
                reason: reason.to_owned(),
                digest,
            },
            problem,
        }
    }
}

/// The sources that are sound so far, and the parts that are not.
#[derive(Debug, Default)]
pub(in crate::cli) struct Draft {
    /// Sorted by path. The records of what is left out of them have no limit yet.
    pub(in crate::cli) sources: Vec<LockedSource>,
    /// Sources that are left out, sorted by path.
    pub(in crate::cli) left_out: Vec<LeftOutSource>,
    /// Every reason, as an error with its remedy.
    pub(in crate::cli) problems: Vec<(NodePath, LeftOutOf)>,
    /// Errors that prevent a lock.
    pub(in crate::cli) refused: Vec<Diagnostic>,
}

/// A problem, and the digest of the tool that it is about.
#[derive(Debug)]
pub(in crate::cli) struct LeftOutOf {
    pub(in crate::cli) tool: Option<Digest>,
    /// The name of the check that found it.
    pub(in crate::cli) check: &'static str,
    pub(in crate::cli) problem: Diagnostic,
}

impl Draft {
    /// Adds a source.
    pub(in crate::cli) fn add(&mut self, source: LockedSource) {
        self.sources.push(source);
        self.sources.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Takes the parts out that the check of this name found, and notes what it refuses.
    pub(in crate::cli) fn apply(
        &mut self,
        check: &'static str,
        result: CheckResult,
        config: &Config,
    ) {
        self.refused.extend(result.refused);
        for one in result.left_out {
            let source = one.source;
            let tool = match &one.part {
                Part::Tool(record) => Some(record.digest.clone()),
                Part::Source { .. } | Part::Current { .. } => None,
            };
            match one.part {
                Part::Tool(record) => self.leave_out_tool(&source, record),
                Part::Source {
                    code,
                    place,
                    reason,
                    digest,
                } => {
                    let Some(in_config) = config.source(&source) else {
                        continue;
                    };
                    self.leave_out_source(LeftOutSource {
                        path: source.clone(),
                        code,
                        place,
                        reason,
                        config_digest: in_config.digest(),
                        digest,
                    });
                }
                Part::Current { code, locked } => {
                    self.sources.retain(|known| known.path != source);
                    let kept = LockedSource {
                        kept: Some(code),
                        ..*locked
                    };
                    self.add(kept);
                }
            }
            let problem = one.problem;
            self.problems.push((
                source,
                LeftOutOf {
                    tool,
                    check,
                    problem,
                },
            ));
        }
    }

    fn leave_out_tool(&mut self, source: &NodePath, record: LeftOut) {
        let mut sources = self.sources.iter_mut();
        let Some(source) = sources.find(|known| known.path == *source) else {
            return;
        };
        let key = record.name.as_deref().map(|name| record.kind.key(name));
        source.exposed.retain(|tool| {
            let is_it = tool.digest == record.digest && tool.kind() == record.kind;
            !is_it && Some(&tool.upstream_name) != key.as_ref()
        });
        source.leave_out([record]);
    }

    fn leave_out_source(&mut self, record: LeftOutSource) {
        self.sources.retain(|known| known.path != record.path);
        self.left_out.retain(|known| known.path != record.path);
        self.left_out.push(record);
        self.left_out.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Makes a new lock of the parts; the digests come from its config.
    pub(in crate::cli) fn into_lock(
        mut self,
        config_digest: Digest,
        access_digest: Option<Digest>,
    ) -> Lock {
        self.sources.iter_mut().for_each(LockedSource::count_rest);
        let mut lock = Lock {
            version: LOCK_VERSION,
            config_digest,
            access_digest,
            generator: concat!("broker-gen ", env!("CARGO_PKG_VERSION")).to_owned(),
            sources: self.sources,
            left_out: self.left_out,
        };
        lock.version = lock.new_version();
        lock
    }
}
