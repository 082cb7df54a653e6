//! The audit log as an observer: of listings, of changes of items and sources, and of keys and reloads.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use broker_audit::{
    Actor, AuditLog, AuditStatus, DriftFacts, Event, JobFacts, Lane, ReadFacts, ReloadOutcome,
    Target, Versions,
};
use broker_core::{
    CallCode, Change, ChangeObserver, ChangedItem, Identity, JobEnding, JobObserver, JobStep,
    RecordedItem, ReviewedVersions, Subject,
};
use broker_metrics::Method;

use crate::recorded_call::MAX_PATH_BYTES;

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

impl AuditPolicy {
    /// Whether a call has a line before it is sent. One without a known item may change something.
    pub(crate) fn has_begin_line(&self, item: Option<&RecordedItem>) -> bool {
        match self.intent {
            Intent::All => true,
            Intent::Writes => item.is_none_or(|item| !item.is_read_only),
        }
    }
}

/// An audit log, and what the config says of it.
#[derive(Debug)]
pub struct Audit {
    pub(crate) log: AuditLog,
    pub(crate) policy: AuditPolicy,
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

    /// Returns the last lines of the log, oldest first. It blocks for the disk.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or its lines have another form than the broker's own.
    pub fn last_lines(&self) -> std::io::Result<Vec<String>> {
        self.log.last_lines()
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

    /// Returns the facts of the line of a listing, a description or a search.
    pub(crate) fn read_facts(
        &self,
        read: &ReadRequest<'_>,
        reviewed: &ReviewedVersions,
    ) -> ReadFacts {
        let origin = read.identity.origin();
        ReadFacts {
            actor: self.actor(read.identity),
            via: origin.via.as_str().into(),
            peer: origin.peer,
            method: match read.method.meta_tool() {
                "" => read.method.as_str(),
                meta_tool => meta_tool,
            },
            paths: read.paths.iter().map(|path| start_of(path)).collect(),
            code: read.failed.map(CallCode::as_str),
            elapsed: read.elapsed,
            versions: self.versions(Some(reviewed)),
        }
    }

    /// Writes the line of a listing, a description or a search.
    pub(crate) fn write_read(&self, facts: ReadFacts) {
        self.log.read(facts);
    }

    /// Returns a caller as lines name it.
    pub(crate) fn actor(&self, identity: &Identity) -> Arc<Actor> {
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

    pub(crate) fn versions(&self, reviewed: Option<&ReviewedVersions>) -> Arc<Versions> {
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

/// Steps of jobs have lines of the same chain. The lines of their calls name the job as well.
impl JobObserver for Audit {
    fn claimed(&self, job: JobStep<'_>) {
        self.log.event(Event::JobClaimed(self.job_facts(job)));
    }

    fn ended(&self, job: JobStep<'_>, ending: JobEnding<'_>) {
        self.log.event(Event::JobEnded {
            job: self.job_facts(job),
            outcome: ending.state.as_str(),
            code: ending.code.map(|code| code.as_str().into()),
            maybe_executed: ending.maybe_executed,
        });
    }
}

impl Audit {
    fn job_facts(&self, job: JobStep<'_>) -> JobFacts {
        JobFacts {
            id: job.id.into(),
            actor: match job.caller {
                Some(identity) => self.actor(identity),
                None => self.actor(&Identity::anonymous()),
            },
            target: Target {
                path: job.path.to_owned().into(),
                kind: Some("tool".into()),
                digest: (!job.digest.is_empty()).then(|| job.digest.to_owned().into()),
                ..Target::default()
            },
        }
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
        lane: Lane::default(),
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
