//! Makes a job of a call. The call passes all checks; at its gate, where it would be sent, the job is stored in its place.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use broker_core::{
    AcceptedJob, Broker, CallCode, CallMode, CoreError, Identity, ItemKind, JobDesk as _,
    JobRequest, Name, Operation, Outcome, Request, Reserving, SendGate, UnsentCall,
};
use broker_store::{Created, JobId, JobStart, NewJob};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use crate::caller;
use crate::errors;
use crate::keeper::Keeper;
use crate::settings::JobSettings;
use crate::view;

/// The number of events that a caller reads at once while it waits for the end of its job.
const EVENTS_AT_ONCE: usize = 100;

impl Keeper {
    /// Makes a job of a call, and waits for its end where the caller waits.
    pub(crate) async fn make(
        self: &Arc<Self>,
        inner: &impl Broker,
        mut request: Request,
        job: JobRequest,
    ) -> Result<Outcome, Box<CoreError>> {
        self.check(&request, &job)?;
        let (path, identity) = (request.path.to_string(), request.identity.clone());
        let keyed = keyed(inner, &request, &job);
        let gate = request.context.gates.push(CreationGate {
            keeper: Arc::clone(self),
            job: job.clone(),
            digest: digest_of(inner, &identity, &path),
            catalog: inner.services().catalog_digest(),
            meta: request.context.meta.take(),
            trace: request.context.trace.as_mut().and_then(|it| it.own.take()),
            args_sha256: keyed.as_ref().map(|keyed| keyed.args_sha256),
            is_entered: AtomicBool::new(false),
            made: Mutex::default(),
        });
        // A server gets these from the run of the job.
        request.context.events = None;
        let record = request.context.record.clone();
        let made = {
            let mut call = pin!(inner.call(request));
            tokio::select! {
                // The call first: at once it is decided whether its caller may make it.
                biased;
                checked = &mut call => Made::Checked(checked),
                // A source that is down does not hide the job that it has run.
                Some(earlier) = self.find_earlier(keyed) => match gate.is_entered() {
                    true => Made::Checked(call.await),
                    false => Made::Earlier(earlier),
                },
            }
        };
        let accepted = match made {
            Made::Earlier(earlier) => earlier?,
            Made::Checked(checked) => match gate.take() {
                Some(accepted) => accepted,
                None => return checked,
            },
        };
        if let Some(record) = record {
            record.become_job(&accepted.job.id);
        }
        self.wake.notify_one();
        match job.mode {
            CallMode::Sync => self.wait_for(&identity, accepted).await,
            CallMode::Async => self.accepted(accepted, &identity).await,
            CallMode::Auto => {
                let waiting = self.wait_for(&identity, accepted.clone());
                match timeout(self.settings.promote_after, waiting).await {
                    Ok(ended) => ended,
                    Err(_) => self.accepted(accepted, &identity).await,
                }
            }
        }
    }

    /// Returns the job of an earlier call with the same idempotency key, or the refusal of other arguments; `None` if there
    /// is not such a job.
    async fn find_earlier(
        &self,
        keyed: Option<KeyedCall>,
    ) -> Option<Result<AcceptedJob, Box<CoreError>>> {
        let keyed = keyed?;
        let store = self.store().ok()?;
        let (owner, path) = (keyed.owner, keyed.path.to_owned());
        // The creation of the job reports an error of the store.
        let found = store.find_key(owner, path, keyed.key.into()).await;
        let job = found.ok()??;
        Some(match job.args_sha256 == keyed.args_sha256 {
            true => Ok(AcceptedJob {
                job: view::job(&job, self.is_durable()),
                is_replayed: true,
            }),
            false => Err(errors::other_arguments(&job.id)),
        })
    }

    /// Refuses what cannot be a job.
    fn check(&self, request: &Request, job: &JobRequest) -> Result<(), Box<CoreError>> {
        self.store()?;
        if !matches!(request.operation, Operation::CallTool(_)) {
            let error = CoreError::new(CallCode::FieldInvalid, "only calls of tools can be jobs");
            return Err(Box::new(error.maybe_executed(false)));
        }
        if job.key.is_some() && !self.is_durable() {
            let message = "an idempotency key needs jobs that survive a restart: the config has no `jobs.store`";
            return Err(errors::not_durable(message));
        }
        if job.key.is_some() && !request.identity.is_authenticated() {
            let message = "an idempotency key needs a caller with a credential";
            return Err(errors::not_durable(message));
        }
        Ok(())
    }

    /// Waits for the end of a job, and returns its result like the result of a call.
    async fn wait_for(
        &self,
        identity: &Identity,
        accepted: AcceptedJob,
    ) -> Result<Outcome, Box<CoreError>> {
        let id = accepted.job.id.clone();
        let mut after = accepted.job.last_event;
        while !self.show(identity, &id).await?.state.is_finished() {
            let events = self.events(identity, &id, after, EVENTS_AT_ONCE).await?;
            after = events.events.last().map_or(after, |event| event.number);
        }
        let mut outcome = self.ended(identity, &id).await?;
        // The caller of a first call has its result as without a job.
        if accepted.is_replayed {
            outcome.job = Some(Box::new(AcceptedJob {
                job: self.show(identity, &id).await?,
                is_replayed: true,
            }));
        }
        Ok(outcome)
    }

    /// Returns a job as the outcome of its call; a repeated call of a job that has ended has its result.
    async fn accepted(
        &self,
        accepted: AcceptedJob,
        identity: &Identity,
    ) -> Result<Outcome, Box<CoreError>> {
        let is_ended = accepted.is_replayed && accepted.job.state.is_finished();
        let mut outcome = match is_ended {
            true => self.ended(identity, &accepted.job.id).await?,
            false => self.empty_outcome(&accepted.job.path)?,
        };
        outcome.job = Some(Box::new(accepted));
        Ok(outcome)
    }

    /// Returns the outcome of a job that has ended.
    async fn ended(&self, identity: &Identity, id: &str) -> Result<Outcome, Box<CoreError>> {
        let result = self.result(identity, id).await?;
        let path = self.show(identity, id).await?.path;
        let outcome = self.empty_outcome(&path)?;
        Ok(Outcome {
            result: result.result,
            is_error: result.is_error,
            ..outcome
        })
    }

    /// Returns an outcome without a result.
    pub(crate) fn empty_outcome(&self, path: &str) -> Result<Outcome, Box<CoreError>> {
        let known = self.runner.services().known_path(path);
        let path = known.ok_or_else(|| {
            let message = "the tool of the job is no longer in the catalog";
            Box::new(CoreError::new(CallCode::ToolWithdrawn, message).path(path))
        })?;
        Ok(Outcome {
            path,
            kind: ItemKind::Tool,
            result: Bytes::new(),
            is_error: false,
            cut: None,
            warnings: Vec::new(),
            job: None,
            receipt: None,
        })
    }
}

/// Returns the digest under which a tool was reviewed; empty if the caller does not see it.
pub(crate) fn digest_of(broker: &impl Broker, identity: &Identity, path: &str) -> &'static str {
    let found = broker.look_up(identity, Name::Path(path));
    found.map_or("", |found| found.digest)
}

/// The outcome of the checks of a call.
enum Made {
    /// Its checks have ended, with a job at its gate if they passed.
    Checked(Result<Outcome, Box<CoreError>>),
    /// An earlier call had its idempotency key.
    Earlier(Result<AcceptedJob, Box<CoreError>>),
}

/// The parts of a call with an idempotency key that name its job.
struct KeyedCall {
    owner: String,
    path: &'static str,
    key: Box<str>,
    args_sha256: [u8; 32],
}

/// Returns what names the job of a call with an idempotency key. A path that the caller does not see names none.
fn keyed(broker: &impl Broker, request: &Request, job: &JobRequest) -> Option<KeyedCall> {
    let key = job.key.clone()?;
    let owner = caller::owner(&request.identity)?;
    let found = broker
        .look_up(&request.identity, Name::Path(&request.path))
        .ok()?;
    let Operation::CallTool(args) = &request.operation else {
        return None;
    };
    Some(KeyedCall {
        owner,
        path: found.item.path,
        key,
        args_sha256: Sha256::digest(args.text()).into(),
    })
}

/// Stores a job in place of the call that it is made of.
struct CreationGate {
    keeper: Arc<Keeper>,
    job: JobRequest,
    /// The digest under which the tool was reviewed.
    digest: &'static str,
    catalog: &'static str,
    meta: Option<Box<str>>,
    /// The span of the call.
    trace: Option<Box<str>>,
    /// The digest of the arguments as the caller sent them, of a call with an idempotency key.
    args_sha256: Option<[u8; 32]>,
    /// Whether the call has passed its checks.
    is_entered: AtomicBool,
    made: Mutex<Option<AcceptedJob>>,
}

impl fmt::Debug for CreationGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CreationGate")
    }
}

impl SendGate for CreationGate {
    fn reserve<'a>(&'a self, call: UnsentCall<'a>) -> Reserving<'a> {
        self.is_entered.store(true, Ordering::Relaxed);
        Reserving::Waiting(Box::pin(async move {
            let accepted = self.store(call).await?;
            *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(accepted);
            // The call ends here; its caller never sees this error.
            Err(Box::new(CoreError::new(
                CallCode::Internal,
                "the call is a job",
            )))
        }))
    }
}

impl CreationGate {
    fn is_entered(&self) -> bool {
        self.is_entered.load(Ordering::Relaxed)
    }

    fn take(&self) -> Option<AcceptedJob> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.take()
    }

    async fn store(&self, call: UnsentCall<'_>) -> Result<AcceptedJob, Box<CoreError>> {
        let keeper = &self.keeper;
        let mut new = new_job(
            call.identity,
            call.path,
            Bytes::copy_from_slice(call.args),
            JobFacts {
                job: &self.job,
                digest: self.digest,
                catalog: self.catalog,
                meta: self.meta.as_deref(),
                trace: self.trace.as_deref(),
                settings: &keeper.settings,
            },
        )?;
        if let Some(args_sha256) = self.args_sha256 {
            new.args_sha256 = args_sha256;
        }
        let id = new.id.clone();
        // Kept before the job can be claimed.
        keeper.keep_caller(&id, call.identity.clone());
        let created = keeper.store()?.create(new).await;
        let (job, is_replayed) = match created {
            Ok(Created::New(job)) => (job, false),
            Ok(Created::Replayed(job)) => {
                keeper.forget_caller(&id);
                (job, true)
            }
            Ok(Created::OtherArguments(other)) => {
                keeper.forget_caller(&id);
                return Err(errors::other_arguments(&other));
            }
            Err(error) => {
                keeper.forget_caller(&id);
                return Err(errors::store_error(&error));
            }
        };
        Ok(AcceptedJob {
            job: view::job(&job, keeper.is_durable()),
            is_replayed,
        })
    }
}

/// The facts of a new job apart from its caller and its call.
pub(crate) struct JobFacts<'a> {
    pub(crate) job: &'a JobRequest,
    pub(crate) digest: &'static str,
    pub(crate) catalog: &'static str,
    pub(crate) meta: Option<&'a str>,
    pub(crate) trace: Option<&'a str>,
    pub(crate) settings: &'a JobSettings,
}

/// Makes a job that waits.
pub(crate) fn new_job(
    identity: &Identity,
    path: &str,
    args: Bytes,
    facts: JobFacts<'_>,
) -> Result<NewJob, Box<CoreError>> {
    let id = JobId::random().map_err(|error| {
        tracing::error!(%error, "a job has no id");
        Box::new(CoreError::new(CallCode::Internal, "the job has no id"))
    })?;
    let ttl = facts.job.ttl.unwrap_or(facts.settings.ttl);
    Ok(NewJob {
        id,
        owner: caller::owner(identity),
        path: path.to_owned(),
        tool_digest: facts.digest.to_owned(),
        catalog_digest: facts.catalog.to_owned(),
        args_sha256: Sha256::digest(&args).into(),
        args,
        meta: facts.meta.map(str::to_owned),
        key: facts.job.key.as_deref().map(str::to_owned),
        caller: caller::to_text(identity),
        trace: facts.trace.map(str::to_owned),
        ttl: ttl.min(JobSettings::MAX_TTL),
        start: JobStart::Queued,
    })
}
