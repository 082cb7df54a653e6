//! Makes lines of facts.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::facts::{
    Actor, CallEndFacts, CallFacts, Event, JobFacts, MAX_NAMES, ReadFacts, ReloadOutcome, Versions,
};
use crate::line::{Kind, Line, Names, Nullable, Parent, VERSION};

/// The members that every line has.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) seq: u64,
    pub(crate) prev: String,
    pub(crate) at: String,
    pub(crate) stream: String,
    pub(crate) versions: Arc<Versions>,
}

/// Makes a line with the members that every line has.
pub(crate) fn plain<'a>(stamp: &'a Stamp, kind: Kind) -> Line<'a> {
    Line {
        v: VERSION,
        seq: stamp.seq,
        prev: stamp.prev.as_str().into(),
        at: stamp.at.as_str().into(),
        stream: stamp.stream.as_str().into(),
        kind,
        begin: None,
        method: None,
        paths: None,
        outcome: None,
        code: None,
        actor: None,
        via: None,
        peer: None,
        request_id: None,
        trace_id: None,
        parent: None,
        target: None,
        rule: None,
        args: None,
        result: None,
        ms: None,
        sent: None,
        maybe_executed: None,
        class: None,
        finding: None,
        found: None,
        names: None,
        count: None,
        torn: None,
        deleted: None,
        broker: None,
        lock: None,
        catalog: stamp.versions.catalog.as_str().into(),
        policy: stamp.versions.policy.as_str().into(),
        key_id: None,
        sig: None,
    }
}

/// Makes the begin line of a call.
pub(crate) fn call_begin<'a>(stamp: &'a Stamp, call: &'a CallFacts) -> Line<'a> {
    Line {
        actor: Some(Cow::Borrowed(&*call.actor)),
        via: Some(call.via.as_ref().into()),
        peer: call.peer.map(|peer| peer.to_string().into()),
        request_id: Some(call.request_id.as_str().into()),
        trace_id: call.trace_id.as_deref().map(Cow::from),
        parent: call.job.as_deref().map(parent),
        target: Some(Cow::Borrowed(&call.target)),
        rule: Some(Nullable(call.rule)),
        args: Some(Cow::Borrowed(&call.args)),
        catalog: call.versions.catalog.as_str().into(),
        policy: call.versions.policy.as_str().into(),
        ..plain(stamp, Kind::CallBegin)
    }
}

/// Makes the end line of a call.
pub(crate) fn call_end<'a>(
    stamp: &'a Stamp,
    call: &'a CallFacts,
    begin: Option<u64>,
    end: &'a CallEndFacts,
) -> Line<'a> {
    Line {
        kind: Kind::CallEnd,
        begin,
        outcome: Some(end.outcome.as_str().into()),
        code: Some(Nullable(end.code.map(Cow::from))),
        result: end.result,
        ms: Some(tenths(end.elapsed)),
        sent: Some(end.sent),
        maybe_executed: Some(end.maybe_executed),
        parent: end.job.as_deref().or(call.job.as_deref()).map(parent),
        ..call_begin(stamp, call)
    }
}

fn parent(job: &str) -> Parent<'_> {
    Parent { job: job.into() }
}

/// Makes the line of a step of a job.
fn job_line<'a>(stamp: &'a Stamp, kind: Kind, job: &'a JobFacts) -> Line<'a> {
    Line {
        actor: Some(Cow::Borrowed(&*job.actor)),
        parent: Some(parent(&job.id)),
        target: Some(Cow::Borrowed(&job.target)),
        ..plain(stamp, kind)
    }
}

/// Makes the line of a listing, a description or a search.
pub(crate) fn read<'a>(stamp: &'a Stamp, facts: &'a ReadFacts) -> Line<'a> {
    let is_refused = facts.code.is_some();
    Line {
        method: Some(facts.method.into()),
        outcome: Some(if is_refused { "refused" } else { "ok" }.into()),
        code: Some(Nullable(facts.code.map(Cow::from))),
        actor: Some(Cow::Borrowed(&*facts.actor)),
        via: Some(facts.via.as_ref().into()),
        peer: facts.peer.map(|peer| peer.to_string().into()),
        paths: Some(Cow::Borrowed(&facts.paths)),
        ms: Some(tenths(facts.elapsed)),
        catalog: facts.versions.catalog.as_str().into(),
        policy: facts.versions.policy.as_str().into(),
        ..plain(stamp, Kind::Read)
    }
}

/// Makes the line for credentials of a peer that were refused.
pub(crate) fn identify_failed<'a>(
    stamp: &'a Stamp,
    peer: &'a str,
    reason: &'a str,
    count: u64,
) -> Line<'a> {
    Line {
        code: Some(Nullable(Some(reason.into()))),
        peer: Some(peer.into()),
        count: Some(count),
        ..plain(stamp, Kind::IdentifyFailed)
    }
}

/// Makes the line for refused calls of a caller that have no line.
pub(crate) fn limited<'a>(stamp: &'a Stamp, actor: &'a Actor, count: u64) -> Line<'a> {
    Line {
        actor: Some(Cow::Borrowed(actor)),
        count: Some(count),
        ..plain(stamp, Kind::Limited)
    }
}

/// Makes the line of an event.
pub(crate) fn event_line<'a>(stamp: &'a Stamp, event: &'a Event) -> Line<'a> {
    match event {
        Event::Withdrawn { target, code } => Line {
            code: Some(Nullable(Some(code.as_ref().into()))),
            target: Some(Cow::Borrowed(target)),
            ..plain(stamp, Kind::Withdrawn)
        },
        Event::Restored { target } => Line {
            target: Some(Cow::Borrowed(target)),
            ..plain(stamp, Kind::Restored)
        },
        Event::SourceDown { target, code } => Line {
            code: Some(Nullable(Some(code.as_ref().into()))),
            target: Some(Cow::Borrowed(target)),
            ..plain(stamp, Kind::SourceDown)
        },
        Event::SourceUp { target } => Line {
            target: Some(Cow::Borrowed(target)),
            ..plain(stamp, Kind::SourceUp)
        },
        Event::Drift(drift) => Line {
            target: Some(Cow::Borrowed(&drift.target)),
            class: Some(drift.class.as_ref().into()),
            finding: Some(drift.finding.as_ref().into()),
            found: drift.found.as_deref().map(Cow::from),
            ..plain(stamp, Kind::Drift)
        },
        Event::Reload {
            outcome,
            code,
            versions,
        } => Line {
            outcome: Some(Cow::from(match outcome {
                ReloadOutcome::Done => "ok",
                ReloadOutcome::Refused => "refused",
            })),
            code: Some(Nullable(code.as_deref().map(Cow::from))),
            lock: lock_member(versions),
            catalog: versions.catalog.as_str().into(),
            policy: versions.policy.as_str().into(),
            ..plain(stamp, Kind::Reload)
        },
        Event::JobClaimed(job) => job_line(stamp, Kind::JobClaimed, job),
        Event::JobEnded {
            job,
            outcome,
            code,
            maybe_executed,
        } => Line {
            outcome: Some((*outcome).into()),
            code: Some(Nullable(code.as_deref().map(Cow::from))),
            maybe_executed: Some(*maybe_executed),
            ..job_line(stamp, Kind::JobEnded, job)
        },
        Event::KeysChanged { added, removed } => Line {
            names: Some(Names {
                added: added.iter().take(MAX_NAMES).cloned().collect(),
                removed: removed.iter().take(MAX_NAMES).cloned().collect(),
            }),
            count: Some((added.len() + removed.len()) as u64),
            ..plain(stamp, Kind::KeysChanged)
        },
    }
}

/// Returns the member `lock`: with it the lock of a catalog is found later.
pub(crate) fn lock_member(versions: &Versions) -> Option<Cow<'_, str>> {
    (!versions.lock.is_empty()).then(|| versions.lock.as_str().into())
}

/// Returns milliseconds with one decimal: more digits have no meaning.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}
