//! The launched sources: their listings become sources of the draft, or parts that the lock leaves out.

use broker_build::left_out_audits::UNSTABLE_SOURCE;
use broker_config::Source;
use broker_doctor::start_warnings;
use broker_drift::SeenPackage;
use broker_mcp::EraHint;
use broker_model::item::ItemKind;
use broker_model::left_out::LeftOut;
use broker_model::lock::{Lock, LockedSource, Package};
use broker_model::text::{counted, shown_line};
use broker_model::trust::HiddenBy;
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode, NodePath, text};
use broker_process::ProcessSpec;
use broker_review::provenance;
use broker_wire::Era;

use super::draft::{CheckResult, Draft, LeaveOut, Part};
use crate::cli::LockArgs;
use crate::cli::input::Input;
use crate::cli::launch::live::{self, TooLarge};
use crate::cli::launch::snapshot_all::{
    Failure, SnapshotJob, SnapshotResult, Unstable, snapshot_all,
};
use crate::cli::output::{self, say};

/// Maximum number of tools of one source that are named because their names are sensitive.
const MAX_NAMED_HIDDEN: usize = 200;
/// Maximum number of places of an unstable source that a message names.
const MAX_POINTERS: usize = 5;

/// A source that was listed, for the line that reports it.
#[derive(Debug)]
pub(super) struct Listed {
    path: NodePath,
    /// Seconds.
    took: f64,
}

/// Launches the selected sources. Each is asked for the newest era first, since a server may have it since the last lock.
pub(super) async fn launch(
    args: &LockArgs,
    input: &Input,
    old: Option<&Lock>,
) -> Vec<SnapshotResult> {
    let jobs = input.specs.iter().map(|spec| {
        let source = input.config.source(&spec.source);
        let locked = old.and_then(|old| old.source(spec.source.as_str()));
        let known = source
            .zip(locked)
            .filter(|(source, locked)| locked.config_digest == source.digest())
            .and_then(|(_, locked)| Era::from_revision(&locked.protocol_version));
        let volatile = source.map(|source| source.volatile.iter().cloned().collect());
        SnapshotJob {
            spec: spec.clone(),
            era: EraHint::newest(known),
            volatile: volatile.unwrap_or_default(),
            twice: !args.once,
        }
    });
    snapshot_all(jobs.collect()).await
}

/// The source of one result, or the reason why it is left out; and what of a source is left out because two launches
/// differ. `old` is its last locked state.
pub(super) async fn take(
    input: &Input,
    result: SnapshotResult,
    old: Option<&LockedSource>,
) -> (Option<(LockedSource, Listed)>, CheckResult) {
    let is_stopped = result.is_stopped();
    let path = result.source;
    let took = result.took.as_secs_f64();
    let mut check = CheckResult::default();
    let Some(source) = input.config.source(&path) else {
        return (None, check);
    };
    if let Some(spec) = input.spec(&path) {
        let ending = result.ending.as_ref().filter(|_| !is_stopped);
        check.warnings = start_warnings(path.as_str(), &spec.start_hints, ending);
    }
    let (snapshot, pointers) = match result.outcome {
        Ok(snapshot) => (snapshot, Vec::new()),
        Err(Failure::Unstable(Unstable { snapshot, pointers })) => (*snapshot, pointers),
        Err(Failure::Source(failed)) => {
            let (notes, remedy) = failed.explained(input.spec(&path));
            let demands = failed.demands().map(|line| format!("    {line}"));
            let notes = demands.into_iter().chain(notes);
            let message = format!("`{path}` failed after {took:.1} s: {}", failed.message());
            let problem = Diagnostic::error(DiagnosticCode::SourceFailed, message);
            let problem = problem.notes(notes).help(remedy);
            check.left_out.push(not_started(source, old, problem));
            return (None, check);
        }
    };
    for warning in &snapshot.warnings {
        say(text!("{}: warning: {}", path, warning));
    }
    say_era(&path, old, &snapshot.protocol_version);
    let locked = live::locked(source, snapshot, &input.concurrency).await;
    let mut locked = match locked {
        Ok(locked) => locked,
        Err(too_large) => {
            let problem = Diagnostic::error(DiagnosticCode::SourceFailed, too_large.message());
            let code = LeftOutCode::TooLarge;
            check.left_out.push(LeaveOut::source(
                &path,
                None,
                (code, "", &too_large.message()),
                problem.help(TooLarge::HELP),
            ));
            return (None, check);
        }
    };
    check.left_out.extend(unstable(source, &pointers));
    let process = input.spec(&path).and_then(|spec| spec.endpoint.process());
    locked.url_path = result.url_path.map(str::to_owned);
    locked.package = process.and_then(|process| package(source, process));
    (Some((locked, Listed { path, took })), check)
}

/// Reports that a server speaks another protocol era than at the time of its lock.
fn say_era(path: &NodePath, old: Option<&LockedSource>, revision: &str) {
    let Some(old) = old.map(|old| old.protocol_version.as_str()) else {
        return;
    };
    let eras = (Era::from_revision(old), Era::from_revision(revision));
    if let (Some(was), Some(is)) = eras
        && was != is
    {
        say(text!(
            "{}: it was locked with MCP {}, and answers MCP {} now",
            path,
            shown_line(old, 40),
            shown_line(revision, 40)
        ));
    }
}

/// A source that cannot be started here, since a variable is not set.
pub(super) fn unresolved(
    input: &Input,
    path: &NodePath,
    problems: &[Diagnostic],
    old: Option<&LockedSource>,
) -> CheckResult {
    let mut check = CheckResult::default();
    if let Some(source) = input.config.source(path) {
        let problems = problems.iter().cloned();
        let left_out = problems.map(|problem| not_started(source, old, problem));
        check.left_out.extend(left_out);
    }
    check
}

/// A source that did not start: its last locked state is kept if its config is the same.
fn not_started(source: &Source, old: Option<&LockedSource>, problem: Diagnostic) -> LeaveOut {
    let code = LeftOutCode::NotStarted;
    match old.filter(|old| old.config_digest == source.digest()) {
        Some(old) => LeaveOut {
            source: source.path.clone(),
            part: Part::Current {
                code,
                locked: Box::new(old.clone()),
            },
            problem,
        },
        None => LeaveOut::source(&source.path, None, (code, "", code.cause()), problem),
    }
}

/// Returns the tools that differ between two launches, or the source if it differs elsewhere. Two runs may see other
/// values at other places, so the records have neither.
fn unstable(source: &Source, pointers: &[String]) -> Vec<LeaveOut> {
    if pointers.is_empty() {
        return Vec::new();
    }
    let path = &source.path;
    let code = LeftOutCode::Unstable;
    let message = |pointers: &[String]| {
        format!(
            "two launches of `{path}` gave different answers at {}",
            shown_pointers(pointers)
        )
    };
    let problem = |pointers: &[String], help: String| {
        Diagnostic::error(DiagnosticCode::SourceUnstable, message(pointers)).help(help)
    };
    let keys: Option<Vec<String>> = pointers.iter().map(|pointer| tool_of(pointer)).collect();
    let Some(mut keys) = keys else {
        return vec![LeaveOut::source(
            path,
            None,
            (code, "", code.cause()),
            problem(pointers, UNSTABLE_SOURCE.to_owned()),
        )];
    };
    keys.sort_unstable();
    keys.dedup();
    let of_key = |key: &String| {
        let own: Vec<String> = pointers
            .iter()
            .filter(|pointer| tool_of(pointer).as_ref() == Some(key))
            .cloned()
            .collect();
        // Hiding the tool does not help: the lock has digests of hidden tools as well.
        let help = match own.iter().all(|pointer| pointer.matches('/').count() > 2) {
            true => format!("Name them in `volatile` of `{path}`."),
            false => "Make the server list the same tools at every start.".to_owned(),
        };
        let digest = LeftOut::digest_of(key);
        LeaveOut::tool(
            path,
            key,
            digest,
            (code, "", code.cause()),
            problem(&own, help),
        )
    };
    keys.iter().map(of_key).collect()
}

/// Returns the key of the tool that contains the place of a pointer.
fn tool_of(pointer: &str) -> Option<String> {
    let key = pointer.strip_prefix("/tools/")?.split('/').next()?;
    Some(key.replace("~1", "/").replace("~0", "~"))
}

/// One line for each source that was listed, with the counts of its part of the draft.
pub(super) fn report(input: &Input, draft: &Draft, listed: &[Listed], old: Option<&Lock>) {
    for Listed { path, took } in listed {
        let source = input.config.source(path);
        let locked = draft.sources.iter().find(|locked| locked.path == *path);
        let Some((source, locked)) = source.zip(locked) else {
            continue;
        };
        let process = input.spec(path).and_then(|spec| spec.endpoint.process());
        let how = if process.is_some_and(|process| process.shell) {
            ", run by /bin/sh"
        } else {
            ""
        };
        let more = locked.more_left_out.as_ref().map_or(0, |more| more.count);
        let left_out = match locked.left_out.len() as u64 + more {
            0 => String::new(),
            count => format!(", {count} left out"),
        };
        say(text!(
            "{}: {} exposed, {} hidden{} (MCP {}, {} s{})",
            path,
            counted_kinds(locked),
            locked.hidden.len(),
            left_out,
            locked.protocol_version,
            format!("{took:.1}"),
            how
        ));
        if let Some(answered) = &locked.url_path {
            say(text!(
                "{}: it answers at `{}`, and not at its URL as written",
                path,
                answered
            ));
        }
        if let Some(package) = &locked.package {
            say(text!("{}: runs the {}", path, package));
        }
        say_sensitive(source, locked);
        let before = old.and_then(|old| old.source(path.as_str()));
        say_newly_hidden(source, before, locked);
    }
}

/// Returns the number of exposed tools, then the number of each other exposed kind.
fn counted_kinds(locked: &LockedSource) -> String {
    let count = |kind| {
        let of_kind = locked.exposed.iter().filter(|tool| tool.kind() == kind);
        counted(of_kind.count(), kind.as_str())
    };
    let is_exposed = |kind: &ItemKind| locked.exposed.iter().any(|tool| tool.kind() == *kind);
    let others = ItemKind::PREFIXED.into_iter().filter(is_exposed);
    let all: Vec<String> = [ItemKind::Tool]
        .into_iter()
        .chain(others)
        .map(count)
        .collect();
    all.join(", ")
}

/// The tools that are hidden only because their names are sensitive.
fn say_sensitive(source: &Source, locked: &LockedSource) {
    let hidden = locked.hidden.iter().filter_map(|tool| {
        let by = source.exposure.hidden_by(&tool.name)?;
        matches!(by, HiddenBy::Word(_)).then_some((&tool.name, by))
    });
    let hidden: Vec<_> = hidden.collect();
    for (name, by) in hidden.iter().take(MAX_NAMED_HIDDEN) {
        say(text!(
            "{}: `{}` is {}",
            source.path,
            shown_line(name, 100),
            by
        ));
    }
    if hidden.is_empty() {
        return;
    }
    if let Some(more @ 1..) = hidden.len().checked_sub(MAX_NAMED_HIDDEN) {
        say(text!(
            "{}: and {} for such a word; `broker-gen tree --hidden` shows all of a lock",
            source.path,
            counted(more, "more tool")
        ));
    }
    let beside = match source.exposure.filter().has_positive() {
        true => "",
        // A filter whose only pattern is a name exposes only that tool.
        false => ", beside `*` for the other tools",
    };
    say(text!(
        "{}: to expose such a tool, write its name in `tool_filter`{}",
        source.path,
        beside
    ));
}

/// The tools that a newer list of sensitive words hides, of those that were exposed.
fn say_newly_hidden(source: &Source, old: Option<&LockedSource>, locked: &LockedSource) {
    let Some((old, before)) = old.and_then(|old| Some((old, old.word_list()?))) else {
        return;
    };
    let sensitive = source.exposure.sensitive();
    let (now, older) = (sensitive.version(), sensitive.in_version(before));
    if before >= now {
        return;
    }
    let was_exposed = |name: &str| old.exposed.iter().any(|tool| tool.upstream_name == name);
    let hidden = locked.hidden.iter().map(|tool| tool.name.as_str());
    let hidden: Vec<&str> = hidden
        .filter(|name| was_exposed(name) && older.find(name).is_none())
        .filter(|name| {
            let by = source.exposure.hidden_by(name);
            matches!(by, Some(HiddenBy::Word(_)))
        })
        .collect();
    if hidden.is_empty() {
        return;
    }
    let names = hidden.iter().take(MAX_NAMED_HIDDEN);
    let names: Vec<_> = names
        .map(|name| format!("`{}`", shown_line(name, 100)))
        .collect();
    let more = match hidden.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    say(text!(
        "{}: version {} of the sensitive words hides {}, which version {} exposed: {}{}",
        source.path,
        now.number(),
        counted(hidden.len(), "tool"),
        before.number(),
        names.join(", "),
        more
    ));
}

/// The package that a source ran. One that cannot be inspected does not fail the lock.
fn package(source: &Source, process: &ProcessSpec) -> Option<Package> {
    match provenance::look(source, process) {
        SeenPackage::Found(package) => Some(package),
        SeenPackage::Nothing => None,
        SeenPackage::Unseen(why) => {
            output::diagnostics(provenance::unseen(source, process, &why).as_slice());
            None
        }
    }
}

fn shown_pointers(pointers: &[String]) -> String {
    let shown: Vec<_> = pointers
        .iter()
        .take(MAX_POINTERS)
        .map(|pointer| format!("`{}`", shown_line(pointer, 200)))
        .collect();
    match pointers.len().saturating_sub(MAX_POINTERS) {
        0 => shown.join(", "),
        more => format!("{} and {more} more places", shown.join(", ")),
    }
}
