//! The audit log as an observer of calls: a call passes its gate right before it is sent, and its end has a line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use broker_audit::{
    Actor, ArgsFacts, AuditError, AuditLog, AuditStatus, CallEndFacts, CallFacts, CallOutcome,
    DriftFacts, Event, OpenCall, ReadFacts, ReloadOutcome, ResultFacts, Target, Versions,
};
use broker_core::{
    CallCode, CallRecord, Change, ChangeObserver, ChangedItem, CoreError, Identity, RecordedItem,
    RequestId, Reserving, ReviewedVersions, SendGate, Subject,
};
use broker_metrics::Method;
use broker_model::item::ItemKind;

use crate::recorded_call::{CallEnd, MAX_PATH_BYTES, RecordedCall};
use crate::shown_args;

/// When a call may be made again after the log took no line.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The maximum bytes of arguments whose keyed hash is in a line: longer ones would keep the thread of the call.
const MAX_HASHED_BYTES: usize = 256 << 10;

/// The calls that have a line before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Calls that may change something.
    Writes,
    /// Every call.
    All,
}

/// Which lines an audit log has.
#[derive(Clone, Copy, Debug)]
pub struct AuditPolicy {
    /// Whether no call is sent without its line.
    pub is_required: bool,
    /// Whether listings, descriptions and searches have lines.
    pub has_reads: bool,
    /// The calls that have a line before they are sent.
    pub intent: Intent,
}

/// An audit log, and what the config says of it.
#[derive(Debug)]
pub struct Audit {
    log: AuditLog,
    policy: AuditPolicy,
    /// The versions of the latest call: most calls have the same.
    versions: Mutex<Arc<Versions>>,
    /// The caller of the latest call: many calls in a row have the same.
    last_actor: Mutex<Option<KnownActor>>,
}

/// A caller as lines name it, and what it was made of.
#[derive(Debug)]
struct KnownActor {
    subject: Subject,
    actor: Arc<Actor>,
}

impl Audit {
    /// Makes the observer that writes to a log. `versions` are the digests in force.
    pub fn new(log: AuditLog, policy: AuditPolicy, versions: Arc<Versions>) -> Self {
        Self {
            log,
            policy,
            versions: Mutex::new(versions),
            last_actor: Mutex::default(),
        }
    }

    /// Returns the state of the log.
    pub fn status(&self) -> AuditStatus {
        self.log.status()
    }

    /// Notes that the credentials of a peer were refused.
    pub fn identify_failed(&self, peer: &str, reason: &'static str) {
        self.log.identify_failed(peer, reason);
    }

    /// Notes that the config or the lock was read again, with the digests that are in force now, or the code of the
    /// refusal.
    pub fn reloaded(&self, reviewed: ReviewedVersions, refused: Option<&'static str>) {
        let versions = self.versions(Some(&reviewed));
        self.log.set_versions(versions.clone());
        self.log.event(Event::Reload {
            outcome: match refused {
                None => ReloadOutcome::Done,
                Some(_) => ReloadOutcome::Refused,
            },
            code: refused.map(Cow::Borrowed),
            versions,
        });
    }

    /// Notes that the names of keys and issuers changed.
    pub fn keys_changed(&self, added: Vec<String>, removed: Vec<String>) {
        self.log.event(Event::KeysChanged { added, removed });
    }

    /// Opens the file again, after another program has moved it.
    pub fn reopen(&self) {
        self.log.reopen();
    }

    /// Writes what waits, and closes the file. It blocks.
    pub fn close(&self) {
        self.log.close();
    }

    /// Whether listings, descriptions and searches have lines.
    pub(crate) const fn has_reads(&self) -> bool {
        self.policy.has_reads
    }

    /// Writes the line of a listing, a description or a search.
    pub(crate) fn read(&self, read: &ReadRequest<'_>, reviewed: &ReviewedVersions) {
        let origin = read.identity.origin();
        self.log.read(ReadFacts {
            actor: self.actor(read.identity),
            via: origin.via.as_str().into(),
            peer: origin.peer.map(|peer| peer.to_string()),
            method: match read.method.meta_tool() {
                "" => read.method.as_str(),
                meta_tool => meta_tool,
            },
            paths: read.paths.iter().map(|path| start_of(path)).collect(),
            code: read.failed.map(CallCode::as_str),
            elapsed: read.elapsed,
            versions: self.versions(Some(reviewed)),
        });
    }

    /// Begins the record of a call.
    pub(crate) fn begin(self: &Arc<Self>, call: &RecordedCall) -> AuditCall {
        AuditCall {
            audit: Arc::clone(self),
            identity: call.identity.clone(),
            request_id: call.request_id,
            path: call.path.clone(),
            trace_id: call.trace_id.clone(),
            state: Mutex::default(),
        }
    }

    /// Returns a caller as lines name it.
    fn actor(&self, identity: &Identity) -> Arc<Actor> {
        let mut last = self
            .last_actor
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*last
            && known.subject == *identity.subject()
            && known.actor.groups == identity.groups()
        {
            return Arc::clone(&known.actor);
        }
        let actor = Arc::new(actor(identity));
        *last = Some(KnownActor {
            subject: identity.subject().clone(),
            actor: Arc::clone(&actor),
        });
        actor
    }

    fn versions(&self, reviewed: Option<&ReviewedVersions>) -> Arc<Versions> {
        let mut last = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reviewed) = reviewed
            && (last.catalog != reviewed.catalog || *last.policy != *reviewed.policy)
        {
            *last = Arc::new(Versions {
                catalog: reviewed.catalog.to_owned(),
                policy: reviewed.policy.as_ref().to_owned(),
                lock: reviewed.lock.to_owned(),
            });
        }
        Arc::clone(&last)
    }
}

/// Changes of items and sources have lines of the same chain.
impl ChangeObserver for Audit {
    fn observe(&self, change: &Change<'_>) {
        self.log.event(match change {
            Change::Withdrawn { item, class, .. } => Event::Withdrawn {
                target: changed_target(item),
                code: class.as_str().into(),
            },
            Change::Restored { item } => Event::Restored {
                target: changed_target(item),
            },
            Change::Differs {
                source,
                path,
                class,
                rule,
            } => Event::Drift(DriftFacts {
                target: Target {
                    path: (*path).to_owned().into(),
                    source: Some((*source).to_owned().into()),
                    ..Target::default()
                },
                class: class.as_str().into(),
                finding: (*rule).into(),
                found: None,
            }),
            Change::SourceDown { source, cause } => Event::SourceDown {
                target: source_target(source),
                code: cause.as_str().into(),
            },
            Change::SourceUp { source } => Event::SourceUp {
                target: source_target(source),
            },
        });
    }
}

/// A call whose end will have a line.
pub(crate) struct AuditCall {
    audit: Arc<Audit>,
    identity: Identity,
    request_id: RequestId,
    path: Cow<'static, str>,
    trace_id: Option<Box<str>>,
    state: Mutex<LineState>,
}

/// A listing, a description or a search that has ended.
pub(crate) struct ReadRequest<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) method: Method,
    /// The paths that the caller named.
    pub(crate) paths: &'a [&'a str],
    pub(crate) failed: Option<CallCode>,
    pub(crate) elapsed: Duration,
}

/// Returns the begin of a path, of which the record keeps no more.
fn start_of(path: &str) -> String {
    path[..path.floor_char_boundary(MAX_PATH_BYTES)].to_owned()
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

impl fmt::Debug for AuditCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditCall")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl SendGate for AuditCall {
    fn reserve<'a>(&'a self, call: &'a CallRecord, args: &'a [u8]) -> Reserving<'a> {
        Box::pin(async move {
            let log = &self.audit.log;
            let facts = self.facts(call, Some(args));
            let has_begin = match self.audit.policy.intent {
                Intent::All => true,
                Intent::Writes => call.item().is_none_or(|item| !item.is_read_only),
            };
            let opened = match has_begin {
                true => log.begin(facts).await,
                false => log.admit(facts).await,
            };
            let state = match opened {
                Ok(open) => LineState::Open(open),
                Err(error) if self.audit.policy.is_required => {
                    return Err(Box::new(unavailable(&error, &self.path)));
                }
                Err(_) => {
                    log.missed();
                    LineState::Missed
                }
            };
            *self.state() = state;
            Ok(())
        })
    }
}

impl AuditCall {
    fn state(&self) -> std::sync::MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the line of the end.
    pub(crate) fn end(&self, call: &RecordedCall, end: CallEnd<'_>) {
        let is_sent = call.facts().is_sent();
        let facts = end_facts(call, end, is_sent);
        match std::mem::take(&mut *self.state()) {
            LineState::Open(open) => self.audit.log.end(open, facts),
            LineState::Missed => {}
            LineState::Unsent => {
                let before = self.facts(call.facts(), None);
                self.audit.log.refused(&before, facts);
            }
        }
    }

    fn facts(&self, call: &CallRecord, args: Option<&[u8]>) -> CallFacts {
        let origin = self.identity.origin();
        let item = call.item();
        CallFacts {
            actor: self.audit.actor(&self.identity),
            via: origin.via.as_str().into(),
            peer: origin.peer.map(|peer| peer.to_string()),
            request_id: self.request_id.as_str().to_owned(),
            trace_id: self.trace_id.as_deref().map(str::to_owned),
            target: match item {
                Some(item) => target(item),
                None => Target {
                    path: self.path.clone(),
                    ..Target::default()
                },
            },
            rule: item.and_then(|item| item.rule).map(|rule| rule as u32),
            args: ArgsFacts {
                bytes: call.args_bytes().unwrap_or_default() as u64,
                hmac: args
                    .filter(|args| args.len() <= MAX_HASHED_BYTES)
                    .and_then(|args| self.audit.log.hmac(args)),
                shown: match args.zip(call.shown_args()) {
                    Some((args, shown)) => shown_args::values(args, shown),
                    None => BTreeMap::new(),
                },
            },
            versions: self.audit.versions(call.reviewed()),
        }
    }
}

fn end_facts(call: &RecordedCall, end: CallEnd<'_>, is_sent: bool) -> CallEndFacts {
    let is_denied = call.denied_item().is_some();
    let (outcome, code, result, maybe_executed) = match end {
        CallEnd::Answered { outcome, is_error } => {
            let result = ResultFacts {
                bytes: outcome.result.len() as u64,
                is_error,
            };
            let outcome = match is_error {
                true => CallOutcome::ToolError,
                false => CallOutcome::Ok,
            };
            (outcome, None, Some(result), false)
        }
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

/// Returns a caller as lines name it.
fn actor(identity: &Identity) -> Actor {
    let (subject, kind, key) = match identity.subject() {
        Subject::Anonymous => (String::new(), "anonymous", None),
        Subject::Secret => (String::new(), "secret", None),
        Subject::Local => (String::new(), "local", None),
        Subject::Key { name } => (name.as_ref().to_owned(), "key", Some(name.as_ref())),
        Subject::Token { issuer, subject } => (format!("{issuer}|{subject}"), "jwt", None),
    };
    Actor {
        subject,
        kind: kind.into(),
        groups: identity.groups().to_vec(),
        key: key.map(str::to_owned),
        act: Vec::new(),
    }
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

fn source_target(source: &str) -> Target {
    Target {
        path: source.to_owned().into(),
        source: Some(source.to_owned().into()),
        ..Target::default()
    }
}

fn changed_target(item: &ChangedItem) -> Target {
    Target {
        path: item.path.into(),
        source: Some(item.source.into()),
        tool: Some(item.id.into()),
        kind: None,
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
