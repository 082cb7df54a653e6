//! A call in the audit log: it passes its gate right before it is sent, and its end has a line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use broker_audit::{
    ArgsFacts, AuditError, CallEndFacts, CallFacts, CallOutcome, OpenCall, ResultFacts, Target,
};
use broker_core::{
    CallCode, CallRecord, CoreError, Identity, RecordedItem, RequestId, Reserving, SendGate,
    SendGates, UnsentCall,
};
use broker_model::item::ItemKind;

use crate::audit::Audit;
use crate::recorded_call::{CallEnd, RecordedCall};
use crate::shown_args;

/// When a call may be made again after the log took no line.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The maximum bytes of arguments whose keyed hash is in a line: longer ones would keep the thread of the call.
const MAX_HASHED_BYTES: usize = 256 << 10;

/// A call whose end will have a line. It is kept for later calls, so that a call allocates no gate.
pub(crate) struct AuditedCall {
    gate: Arc<AuditGate>,
    gates: SendGates,
}

impl AuditedCall {
    pub(crate) fn new(audit: &Arc<Audit>) -> Self {
        let gate = Arc::new(AuditGate {
            audit: Arc::clone(audit),
            state: Mutex::default(),
        });
        let mut gates = SendGates::none();
        gates.push(gate.clone());
        Self { gate, gates }
    }

    /// Begins a call, and adds its gate. `job` is the job that makes the call.
    pub(crate) fn begin(
        &mut self,
        trace_id: Option<&str>,
        job: Option<Box<str>>,
        gates: &mut SendGates,
    ) {
        // The list and this value hold the gate, unless an earlier call does as well.
        if !self.gates.are_free() || Arc::strong_count(&self.gate) > 2 {
            *self = Self::new(&self.gate.audit);
        }
        *self.gate.state() = GateState {
            trace_id: trace_id.map(str::to_owned),
            job,
            line: LineState::Unsent,
        };
        if gates.is_empty() {
            gates.clone_from(&self.gates);
        } else {
            gates.push(self.gate.clone());
        }
    }

    /// Writes the line of the end.
    pub(crate) fn end(&self, call: &RecordedCall, end: CallEnd<'_>) {
        let AuditGate { audit, .. } = &*self.gate;
        let is_sent = call.facts().is_sent();
        let facts = end_facts(call, end, is_sent);
        let GateState {
            trace_id,
            job,
            line,
        } = std::mem::take(&mut *self.gate.state());
        match line {
            LineState::Open(open) => audit.log.end(open, facts),
            LineState::Missed => {}
            LineState::Unsent => {
                let called = Called {
                    identity: &call.identity,
                    request_id: call.request_id,
                    path: call.path.clone(),
                    record: Some(call.facts()),
                    trace_id,
                    job,
                };
                audit.log.refused(&audit.call_facts(called, None), facts);
            }
        }
    }
}

/// The gate of one call.
struct AuditGate {
    audit: Arc<Audit>,
    state: Mutex<GateState>,
}

#[derive(Default)]
struct GateState {
    trace_id: Option<String>,
    /// The job that makes the call.
    job: Option<Box<str>>,
    line: LineState,
}

/// The place of the end line of a call.
#[derive(Debug, Default)]
enum LineState {
    /// The call was not sent.
    #[default]
    Unsent,
    /// The log has a place for it.
    Open(OpenCall),
    /// The call was sent although the log took no line.
    Missed,
}

/// A call, as its lines name it.
struct Called<'a> {
    identity: &'a Identity,
    request_id: RequestId,
    path: Cow<'static, str>,
    record: Option<&'a CallRecord>,
    trace_id: Option<String>,
    job: Option<Box<str>>,
}

impl fmt::Debug for AuditGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditGate")
    }
}

impl SendGate for AuditGate {
    fn reserve<'a>(&'a self, call: UnsentCall<'a>) -> Reserving<'a> {
        let (audit, path) = (&self.audit, call.path);
        let (trace_id, job) = {
            let state = self.state();
            (state.trace_id.clone(), state.job.clone())
        };
        // The send of a job has a line, whatever it may change.
        let is_run = job.is_some();
        let called = Called {
            identity: call.identity,
            request_id: call.request_id,
            path: path.into(),
            record: call.record,
            trace_id,
            job,
        };
        let mut facts = Arc::new(audit.call_facts(called, Some(call.args)));
        let item = call.record.and_then(CallRecord::item);
        if is_run || audit.policy.has_begin_line(item) {
            return Reserving::Waiting(Box::pin(async move {
                self.open(audit.log.begin(facts).await, path)
            }));
        }
        match audit.log.admit_now(&mut facts).transpose() {
            Some(opened) => Reserving::Done(self.open(opened, path)),
            None => Reserving::Waiting(Box::pin(async move {
                self.open(audit.log.admit(facts).await, path)
            })),
        }
    }
}

impl AuditGate {
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the place that the log gave, or refuses the call.
    fn open(&self, opened: Result<OpenCall, AuditError>, path: &str) -> Result<(), Box<CoreError>> {
        let line = match opened {
            Ok(open) => LineState::Open(open),
            Err(error) if self.audit.policy.is_required => {
                return Err(Box::new(unavailable(&error, path)));
            }
            Err(_) => {
                self.audit.log.missed();
                LineState::Missed
            }
        };
        self.state().line = line;
        Ok(())
    }
}

impl Audit {
    fn call_facts(&self, called: Called<'_>, args: Option<&[u8]>) -> CallFacts {
        let Called {
            identity, record, ..
        } = called;
        let origin = identity.origin();
        let item = record.and_then(CallRecord::item);
        let shown = args.zip(record.and_then(CallRecord::shown_args));
        CallFacts {
            actor: self.actor(identity),
            via: origin.via.as_str().into(),
            peer: origin.peer,
            request_id: called.request_id,
            trace_id: called.trace_id,
            target: match item {
                Some(item) => target(item),
                None => Target {
                    path: called.path,
                    ..Target::default()
                },
            },
            rule: item.and_then(|item| item.rule).map(|rule| rule as u32),
            args: ArgsFacts {
                bytes: record.and_then(CallRecord::args_bytes).unwrap_or_default() as u64,
                hmac: args
                    .filter(|args| args.len() <= MAX_HASHED_BYTES)
                    .and_then(|args| self.log.hmac(args)),
                shown: match shown {
                    Some((args, shown)) => shown_args::values(args, shown),
                    None => BTreeMap::new(),
                },
            },
            versions: self.versions(record.and_then(CallRecord::reviewed)),
            job: called.job,
        }
    }
}

fn end_facts(call: &RecordedCall, end: CallEnd<'_>, is_sent: bool) -> CallEndFacts {
    let is_denied = call.denied_item().is_some();
    let (outcome, code, result, maybe_executed) = match end {
        CallEnd::Answered {
            result_bytes,
            is_error,
        } => {
            let result = ResultFacts {
                bytes: result_bytes as u64,
                is_error,
            };
            let outcome = match is_error {
                true => CallOutcome::ToolError,
                false => CallOutcome::Ok,
            };
            (outcome, None, Some(result), false)
        }
        CallEnd::Accepted => (CallOutcome::Accepted, None, None, false),
        CallEnd::Failed(error) => {
            let maybe_executed = error.maybe_executed == Some(true);
            let outcome = match is_sent && error.maybe_executed != Some(false) {
                true => CallOutcome::Failed,
                false if is_denied || error.code == CallCode::Forbidden => CallOutcome::Denied,
                false => CallOutcome::Refused,
            };
            (outcome, Some(error.code.as_str()), None, maybe_executed)
        }
        CallEnd::Abandoned => (CallOutcome::Cancelled, None, None, is_sent),
    };
    CallEndFacts {
        outcome,
        code,
        result,
        elapsed: call.elapsed(),
        sent: is_sent
            && !matches!(end, CallEnd::Failed(error) if error.maybe_executed == Some(false)),
        maybe_executed,
        job: call.facts().job().map(Box::from),
    }
}

fn unavailable(error: &AuditError, path: &str) -> CoreError {
    // The reason names a file, and is in the log.
    tracing::debug!(%error, "a call was not sent: the audit log took no line");
    let message = "the audit log took no line for this call, so that it was not sent";
    CoreError::new(CallCode::AuditUnavailable, message)
        .path(path)
        .retry_after(RETRY_DELAY)
        .maybe_executed(false)
}

fn target(item: &RecordedItem) -> Target {
    Target {
        path: item.path.into(),
        source: Some(item.source.into()),
        tool: Some(item.id.into()),
        kind: Some(kind_name(item.kind).into()),
        digest: Some(item.digest.into()),
    }
}

const fn kind_name(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "tool",
        ItemKind::Prompt => "prompt",
        ItemKind::Template => "template",
        ItemKind::Resource => "resource",
    }
}
