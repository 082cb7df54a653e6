//! Explains a line: who called what, what the caller could see and call, and who had reviewed the tool.

mod history;
mod page;
mod review;

use broker_audit::{Actor, Kind, Line, Target, VerifyOptions, verify};
use broker_model::access::Hint;
use broker_model::text::shown_line;
use serde::Serialize;
use serde_json::Value;

use crate::error::QueryError;
use crate::files::{self, CompiledLock, ExplainFiles, FoundFiles};
use crate::tools::{Standing, Tools, find_source, groups_of, rule_text};
use history::History;
pub use history::PastLine;
pub use review::{Review, ReviewEntry};

/// The answer about a line.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The line.
    pub line: Value,
    /// The begin line of an end line, or the end line of a begin line.
    pub partner: Option<Value>,
    /// The number of changes that the verification of the files found.
    pub changes: u64,
    /// The first of them.
    pub first_change: Option<String>,
    /// The lock at the line.
    pub lock: LockState,
    /// The item of the line.
    pub item: Option<ItemState>,
    /// The reviews of the item by people.
    pub review: Option<Review>,
    /// The access rules at the line.
    pub access: AccessState,
    /// The lines before this one that withdrew or restored the item, or found a difference of it or of its source; the last
    /// ones.
    pub before: Vec<PastLine>,
    /// The number of such lines that are left out.
    pub before_left_out: u64,
    /// The unknown facts, each with its reason.
    pub unknown: Vec<String>,
}

/// The lock at a line.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockState {
    /// The digest of the catalog.
    pub catalog: String,
    /// The root digest, if a line of the log names it.
    pub digest: Option<String>,
    /// Its place, if it was found.
    pub place: Option<String>,
    /// Whether the found lock is the one of the line; `None` if that is not known.
    pub is_same: Option<bool>,
}

/// The item of a line in the lock.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ItemState {
    /// The path.
    pub path: String,
    /// Whether the lock has the item with the digest of the line; `None` without a lock.
    pub is_locked: Option<bool>,
    /// The begin of its reviewed description.
    pub description: Option<String>,
    /// Its reviewed hints.
    pub hints: Vec<(&'static str, bool)>,
    /// The line that withdrew it, if it was withdrawn at this line.
    pub withdrawn_since: Option<u64>,
}

/// The access rules at a line.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccessState {
    /// The digest of the rules; empty without rules.
    pub policy: String,
    /// The place of the config with the rules, if one was found.
    pub place: Option<String>,
    /// Whether these are the rules of the line.
    pub is_same: Option<bool>,
    /// The groups of the caller.
    pub groups: Vec<String>,
    /// The rule that decided.
    pub rule: Option<RuleState>,
    /// Whether the item exists for the caller: `callable`, `narrowed`, `absent` or `unknown`.
    pub item: Option<&'static str>,
    /// The items that the caller could see; `None` without lock, rules or caller.
    pub visible: Option<Vec<Visible>>,
    /// The number of all items of the lock.
    pub items: usize,
}

/// An access rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleState {
    /// Its number in the line.
    pub number: u32,
    /// Its text in the found config.
    pub text: Option<String>,
}

/// An item that a caller could see.
#[derive(Clone, Debug, Serialize)]
pub struct Visible {
    /// The path.
    pub path: String,
    /// `callable`, `narrowed` or `unknown`.
    pub standing: &'static str,
    /// The line that withdrew it, if it was withdrawn.
    pub withdrawn_since: Option<u64>,
}

/// Explains the line with a number.
///
/// # Errors
///
/// Every [`QueryError`]. A lock, config or audits file that is not found is part of the answer.
pub fn explain(
    seq: u64,
    files: &ExplainFiles,
    compiled: Option<&CompiledLock>,
) -> Result<Explanation, QueryError> {
    let report = verify(&files.logs, &VerifyOptions::default())?;
    let history = History::read(seq, &files.logs)?;
    let line = history
        .line()
        .map_err(|error| QueryError::Argument(format!("line {seq} cannot be read: {error}")))?;
    let versions = history.versions(&line);
    let found = files::find(files, &versions, compiled)?;
    let mut answer = Explanation {
        partner: history.partner(),
        changes: report.findings_count,
        first_change: report.findings.first().map(|one| one.text.clone()),
        lock: LockState {
            catalog: line.catalog.as_ref().to_owned(),
            digest: versions.lock.clone(),
            place: found.lock.as_ref().ok().map(|lock| lock.place.clone()),
            is_same: found.lock.as_ref().ok().and_then(|lock| lock.is_same),
        },
        item: None,
        review: None,
        access: AccessState {
            policy: line.policy.as_ref().to_owned(),
            ..AccessState::default()
        },
        before: history.before(),
        before_left_out: history.before_left_out(),
        unknown: unknowns(&line, &found),
        line: history.value(),
    };
    join(&mut answer, &line, &found, &history);
    Ok(answer)
}

/// Adds what lock, config and audits say.
fn join(answer: &mut Explanation, line: &Line<'_>, found: &FoundFiles, history: &History) {
    let config = found.config.as_ref().ok();
    let lock = found.lock.as_ref().ok();
    let sources = lock.map_or(&[][..], |lock| &lock.value.sources);
    let tools = Tools::new(sources, config.map(|config| &config.value));
    let access = config.and_then(|config| config.value.access.as_ref());
    if let Some(target) = line.target.as_deref() {
        let at = tools.find(&target.path);
        answer.item = Some(item(target, &tools, at, lock.is_some(), history));
        let needed = config.map_or(0, |config| config.value.audits_required);
        answer.review = Some(review::review(target, &line.at, found, needed));
        if let (Some(actor), Some(at)) = (line.actor.as_deref(), at)
            && let Some(standing) = standing(&tools, at, actor, answer, config.is_some())
        {
            answer.access.item = Some(standing.as_str());
            if let Standing::Unknown(reason) = standing {
                answer
                    .unknown
                    .push(format!("whether the item existed for the caller: {reason}"));
            }
        }
    }
    answer.access.place = config.map(|config| config.place.clone());
    answer.access.is_same = config.and_then(|config| config.is_same);
    answer.access.items = tools.views.len();
    let Some(actor) = line.actor.as_deref() else {
        return;
    };
    answer.access.groups = match access {
        Some(access) => {
            let names = access.names(groups_of(access, actor));
            names.map(str::to_owned).collect()
        }
        None => actor.groups.clone(),
    };
    if let Some(number) = line.rule.as_ref().and_then(|rule| rule.0) {
        let at = line.target.as_deref().and_then(|one| tools.find(&one.path));
        let rule = at.and_then(|at| tools.deciding_rule(at, actor));
        let text = match (access, rule) {
            (Some(access), Some((own, rule))) if own == number as usize => {
                Some(rule_text(access, rule))
            }
            _ => None,
        };
        if text.is_none() && access.is_some() {
            answer.unknown.push(format!(
                "the text of rule {number}: the found rules have another one in its place"
            ));
        }
        answer.access.rule = Some(RuleState { number, text });
    }
    // A config that is only found may differ in its filters.
    let named = config.filter(|_| found.is_config_named);
    let can_list = lock.is_some() && (config.is_some() || line.policy.is_empty());
    if can_list {
        let views = 0..tools.views.len();
        let visible = views.filter_map(|at| {
            let standing = tools.standing(at, actor);
            let path = &tools.views[at].path;
            let is_hidden = named.is_some_and(|config| !tools.views[at].is_exposed(&config.value));
            (standing != Standing::Absent && !is_hidden).then(|| Visible {
                path: path.clone(),
                standing: standing.as_str(),
                withdrawn_since: history.withdrawn_since(path),
            })
        });
        answer.access.visible = Some(visible.collect());
    }
}

/// Returns whether the item existed for the caller; `None` if there are rules that were not found.
fn standing(
    tools: &Tools<'_>,
    at: usize,
    actor: &Actor,
    answer: &Explanation,
    has_config: bool,
) -> Option<Standing> {
    (has_config || answer.access.policy.is_empty()).then(|| tools.standing(at, actor))
}

fn item(
    target: &Target,
    tools: &Tools<'_>,
    at: Option<usize>,
    has_lock: bool,
    history: &History,
) -> ItemState {
    let view = at.map(|at| &tools.views[at]);
    let is_same = |digest: &str| view.is_some_and(|view| view.tool.digest.as_str() == digest);
    let description = view.and_then(|view| view.tool.raw.get("description"));
    ItemState {
        path: target.path.as_ref().to_owned(),
        is_locked: (has_lock && target.digest.is_some())
            .then(|| target.digest.as_deref().is_some_and(is_same)),
        description: description
            .and_then(Value::as_str)
            .map(|text| shown_line(text, 200)),
        hints: view.map_or_else(Vec::new, |view| {
            let hints = Hint::ALL.into_iter();
            hints
                .map(|hint| (hint.key(), view.hints.get(hint)))
                .collect()
        }),
        withdrawn_since: history.withdrawn_since(&target.path),
    }
}

/// Returns what is not known about a line.
fn unknowns(line: &Line<'_>, found: &FoundFiles) -> Vec<String> {
    let mut unknown = Vec::new();
    match &found.lock {
        Err(reason) => unknown.push(format!("the lock is missing: {reason}")),
        Ok(lock) if lock.is_same == Some(false) => unknown.push(format!(
            "the lock `{}` is not the one of this line: its root digest is {}",
            lock.place, lock.value.root_digest
        )),
        Ok(lock) if lock.is_same.is_none() => unknown.push(format!(
            "whether the lock `{}` is the one of this line: no line names its digest",
            lock.place
        )),
        Ok(_) => {}
    }
    match &found.config {
        Err(_) if line.policy.is_empty() => {}
        Err(reason) => unknown.push(format!("the access rules are missing: {reason}")),
        Ok(config) if config.is_same == Some(false) => unknown.push(format!(
            "the access rules of `{}` have another digest than this line; name the config of that time with `--config`",
            config.place
        )),
        Ok(_) => {}
    }
    if let Err(reason) = &found.audits
        && line.target.is_some()
    {
        unknown.push(format!("the reviews are missing: {reason}"));
    }
    if let (Ok(lock), Ok(config)) = (&found.lock, &found.config) {
        let sources = lock.value.sources.iter();
        let gone = sources.filter(|source| find_source(&config.value, source).is_none());
        let gone = gone.count();
        if gone > 0 {
            unknown.push(format!(
                "{gone} sources of the lock are not in the config `{}`",
                config.place
            ));
        }
    }
    let is_call = line.kind == Kind::CallBegin || line.kind == Kind::CallEnd;
    if is_call && !found.is_config_named {
        unknown.push(
            "whether a config that was given at the start hid more tools: name it with `--config`"
                .to_owned(),
        );
    }
    unknown
}
