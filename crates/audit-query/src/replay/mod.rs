//! Replays recorded calls against another lock and other rules: the calls that would be refused, hidden or narrowed.

mod report;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use broker_audit::{Actor, Kind, Line, Target, VerifyOptions, read_lines, verify};
use broker_config::Config;
use broker_model::access::Denied;
use broker_model::lock::Lock;
use serde::Serialize;

use crate::error::QueryError;
use crate::files::{read_config, read_lock, use_word_lists};
use crate::kept_args::{KeptArgs, Match};
use crate::tools::{Standing, Tools};

/// The maximum number of findings that a report lists.
const MAX_LISTED: usize = 1000;
/// The maximum number of calls without an end that are kept.
const MAX_OPEN: usize = 100_000;

/// The reason why a call of a tool that has changed is not decided.
const OTHER_VERSION: &str =
    "the lock has another version of the tool, and not all arguments were kept";

/// The files of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayFiles {
    /// The files of the log, in any order.
    pub logs: Vec<PathBuf>,
    /// The new config.
    pub config: PathBuf,
    /// Its lock; `None` for the one beside it.
    pub lock: Option<PathBuf>,
}

/// The answer for one recorded call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call would get an error: the tool does not exist, or the rules say `forbidden`.
    Refuse,
    /// The tool would not exist for the caller.
    Hide,
    /// The caller could call the tool with other arguments only.
    Narrow,
    /// It depends on a value that the log does not keep.
    Unknown,
    /// The same as before.
    Same,
}

/// Calls with the same answer for the same reason.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedCalls {
    /// The answer.
    pub verdict: Verdict,
    /// The path.
    pub path: String,
    /// The caller: its kind and subject.
    pub caller: String,
    /// The reason.
    pub reason: String,
    /// The number of calls.
    pub count: u64,
    /// The number of the first line.
    pub first: u64,
}

/// The answers for the calls of a log.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replay {
    /// The number of calls that were allowed when they were recorded.
    pub calls: u64,
    /// The number of these that would be refused.
    pub refuse: u64,
    /// The number of these whose tool would be hidden from the caller.
    pub hide: u64,
    /// The number of these that could be made with other arguments only.
    pub narrow: u64,
    /// The number of these whose answer depends on a value that the log does not keep.
    pub unknown: u64,
    /// The number of these without a difference.
    pub same: u64,
    /// The number of calls that were refused or denied when they were recorded. They are not replayed.
    pub refused_before: u64,
    /// The number of lines that cannot be read.
    pub unreadable: u64,
    /// The number of changes that the verification of the files found.
    pub changes: u64,
    /// The calls with a difference, the first 1000 groups.
    pub findings: Vec<ReplayedCalls>,
    /// The number of groups that are left out.
    pub findings_left_out: u64,
    /// The limits of the answers.
    pub notes: Vec<String>,
}

impl Replay {
    /// Whether no recorded call would be refused, hidden or narrowed, and no change of the files was found.
    pub const fn is_same(&self) -> bool {
        self.refuse + self.hide + self.narrow + self.changes == 0
    }
}

/// Replays the calls of a log.
///
/// # Errors
///
/// Every [`QueryError`].
pub fn replay(files: &ReplayFiles) -> Result<Replay, QueryError> {
    let report = verify(&files.logs, &VerifyOptions::default())?;
    let mut config = read_config(&files.config)?;
    let lock_file = files.lock.clone().unwrap_or_else(|| {
        let stem = files.config.file_stem().unwrap_or_default();
        let name = format!("{}.lock.json", stem.to_string_lossy());
        files.config.with_file_name(name)
    });
    let lock = read_lock(&lock_file)?;
    use_word_lists(&mut config, &lock.sources);
    let mut rules = NewRules::new(&config, &lock);
    let mut answer = Answer::default();
    answer.replay.changes = report.findings_count;
    if lock.config_digest != config.digest() {
        answer.replay.notes.push(format!(
            "the lock `{}` was made for another config: run `broker-gen lock`",
            lock_file.display()
        ));
    }
    let mut open = OpenCalls::default();
    read_lines(&files.logs, &mut |_, line| match line {
        Ok(line) => answer.add(&line, &mut rules, &mut open),
        Err(_) => answer.replay.unreadable += 1,
    })?;
    if open.left_out > 0 {
        let note = format!("{} calls without an end are not replayed", open.left_out);
        answer.replay.notes.push(note);
    }
    for (_, call) in open.calls {
        answer.count(call);
    }
    Ok(answer.finish())
}

/// Calls whose end was not read yet, by stream and number.
#[derive(Default)]
struct OpenCalls {
    calls: BTreeMap<(String, u64), ReplayedCalls>,
    left_out: u64,
}

/// The answers so far.
#[derive(Default)]
struct Answer {
    replay: Replay,
    /// By verdict, path, caller and reason.
    groups: HashMap<(Verdict, String, String, String), usize>,
}

impl Answer {
    fn add(&mut self, line: &Line<'_>, rules: &mut NewRules<'_>, open: &mut OpenCalls) {
        let (Some(actor), Some(target)) = (line.actor.as_deref(), line.target.as_deref()) else {
            return;
        };
        let call = || {
            let (verdict, reason) = rules.decide(line, actor, target);
            ReplayedCalls {
                verdict,
                path: target.path.as_ref().to_owned(),
                caller: match actor.subject.as_str() {
                    "" => actor.kind.as_ref().to_owned(),
                    subject => format!("{subject} ({})", actor.kind),
                },
                reason,
                count: 1,
                first: line.seq,
            }
        };
        match line.kind {
            Kind::CallBegin if open.calls.len() < MAX_OPEN => {
                let key = (line.stream.as_ref().to_owned(), line.seq);
                open.calls.insert(key, call());
            }
            Kind::CallBegin => open.left_out += 1,
            Kind::CallEnd => {
                if let Some(begin) = line.begin {
                    open.calls.remove(&(line.stream.as_ref().to_owned(), begin));
                }
                match line.outcome.as_deref() {
                    Some("denied" | "refused") => self.replay.refused_before += 1,
                    _ => self.count(call()),
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, call: ReplayedCalls) {
        let replay = &mut self.replay;
        replay.calls += 1;
        match call.verdict {
            Verdict::Refuse => replay.refuse += 1,
            Verdict::Hide => replay.hide += 1,
            Verdict::Narrow => replay.narrow += 1,
            Verdict::Unknown => replay.unknown += 1,
            Verdict::Same => {
                replay.same += 1;
                return;
            }
        }
        let key = (
            call.verdict,
            call.path.clone(),
            call.caller.clone(),
            call.reason.clone(),
        );
        match self.groups.get(&key) {
            Some(at) => replay.findings[*at].count += 1,
            None if replay.findings.len() < MAX_LISTED => {
                self.groups.insert(key, replay.findings.len());
                replay.findings.push(call);
            }
            None => replay.findings_left_out += 1,
        }
    }

    fn finish(mut self) -> Replay {
        let order = |one: &ReplayedCalls| (one.verdict, one.first);
        self.replay.findings.sort_by_key(order);
        self.replay
    }
}

/// The new lock and the new rules.
struct NewRules<'a> {
    config: &'a Config,
    lock: &'a Lock,
    tools: Tools<'a>,
    policy: String,
}

impl<'a> NewRules<'a> {
    fn new(config: &'a Config, lock: &'a Lock) -> Self {
        let policy = config.access_digest();
        Self {
            config,
            lock,
            tools: Tools::new(&lock.sources, Some(config)),
            policy: policy.map_or_else(String::new, |digest| digest.as_str().to_owned()),
        }
    }

    /// Returns the answer for a call, and the reason.
    fn decide(&self, line: &Line<'_>, actor: &Actor, target: &Target) -> (Verdict, String) {
        let Some(at) = self.tools.find(&target.path) else {
            return (Verdict::Refuse, self.missing(target));
        };
        let view = &self.tools.views[at];
        if !view.is_exposed(self.config) {
            let reason = "the config hides it by a filter or a trust level, or has no such source";
            return (Verdict::Refuse, reason.to_owned());
        }
        let is_same_bytes = target.digest.as_deref() == Some(view.tool.digest.as_str());
        // The call passed these rules, with its arguments, when it was made.
        if is_same_bytes && line.policy == self.policy {
            return (Verdict::Same, String::new());
        }
        let rule = self.tools.deciding_rule(at, actor);
        let rule = rule.map_or_else(
            || "no rule allows it".to_owned(),
            |(number, _)| format!("rule {number}"),
        );
        match self.tools.standing(at, actor) {
            Standing::Absent => {
                let denied = self.config.access.as_ref().map(|access| access.denied);
                match denied {
                    Some(Denied::Forbidden) => (Verdict::Refuse, format!("{rule}: `forbidden`")),
                    _ => (Verdict::Hide, rule),
                }
            }
            Standing::Narrowed => {
                let args = KeptArgs::new(line.args.as_deref());
                let matched = self
                    .tools
                    .narrowed_args(at, actor, |schema| args.matches(schema));
                match matched {
                    Match::No => (
                        Verdict::Narrow,
                        format!("{rule}: its arguments do not match, by the values that were kept"),
                    ),
                    Match::Yes if is_same_bytes => (Verdict::Same, String::new()),
                    Match::Yes => (Verdict::Unknown, OTHER_VERSION.to_owned()),
                    Match::Unknown => (
                        Verdict::Unknown,
                        format!("{rule}: it depends on an argument that was not kept"),
                    ),
                }
            }
            Standing::Unknown(reason) => (Verdict::Unknown, reason.to_owned()),
            Standing::Callable if is_same_bytes => (Verdict::Same, String::new()),
            Standing::Callable => (Verdict::Unknown, OTHER_VERSION.to_owned()),
        }
    }

    /// Returns why the new lock does not have an item.
    fn missing(&self, target: &Target) -> String {
        let parts = self.lock.left_out_parts();
        let left_out = parts.iter().find(|part| {
            Some(part.source.as_str()) == target.source.as_deref()
                && (part.is_source || part.tool.as_deref() == target.tool.as_deref())
        });
        match left_out {
            Some(part) => format!("the lock leaves it out: {}", part.code.as_str()),
            None => "the lock does not have it".to_owned(),
        }
    }
}
