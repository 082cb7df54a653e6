//! Reads the body of a meta-tool and calls core: in place if the body is short, otherwise on the pool
//! and charged to the caller.

use std::borrow::Cow;
use std::pin::pin;

use broker_model::CallCode;
use broker_model::access::CallSafety;
use broker_model::json;
use bytes::Bytes;
use serde_json::json;
use tokio::time::Instant;

use super::asked_job::AskedJob;
use super::call_body::{CallBody, LongArgs, LongCallBody, ShortArgs};
use super::fields::{BodyForm, DescBody, DescRequest, TreeBody, TreeRequest};
use super::listed::{DescriptionForm, Listed, ListingAnswer};
use super::members::{json_invalid, utf8};
use super::reply::chars_around;
use broker_core::{
    Account, Args, Broker, CallContext, CallEvents, CallMode, CallTrace, CoreError, Detail,
    Identity, JobRequest, Name, Operation, Outcome, Request, RequestId, ResultForm, ResultLimit,
    SMALL_BYTES, SearchQuery,
};

/// The caller of a request.
#[derive(Clone, Copy, Debug)]
pub struct MetaCaller<'a, B> {
    pub broker: &'a B,
    pub identity: &'a Identity,
    pub request_id: RequestId,
    pub account: &'a Account,
    pub reply: ReplyRoom,
    pub form: BodyForm,
    /// The `_meta` of the request that goes to the server: what `caller_meta::to_forward` returned. `meta` in
    /// the body of a call replaces it.
    pub meta: Option<&'a str>,
    /// The only tools that may be called; `None` for all.
    pub only: Option<SplitCall>,
    /// The trace context of the request that brings a call.
    pub trace: Option<&'a CallTrace>,
    /// Takes the events of a call.
    pub events: Option<&'a CallEvents>,
    /// What a call asks of jobs that does not say so itself; `None` for a caller that waits for the result.
    pub job: Option<&'a JobRequest>,
    /// Whether the call becomes a job, whatever mode its body names.
    pub is_job: bool,
    /// The surface decides on results of more bytes than these ([`CallContext::decided_above`]).
    pub decided_above: u32,
}

/// One of the three tools that call others, each for what the called tool may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitCall {
    /// The beginning of the names of the three tools.
    pub prefix: &'static str,
    pub safety: CallSafety,
}

impl SplitCall {
    /// The endings of the names, in the order of lists.
    pub const ALL: [(CallSafety, &'static str); 3] = [
        (CallSafety::Read, "read"),
        (CallSafety::Write, "write"),
        (CallSafety::Destructive, "destructive"),
    ];

    /// Refuses a tool that another one of the three calls.
    fn check(self, path: &str, safety: CallSafety) -> Result<(), Box<CoreError>> {
        if safety == self.safety {
            return Ok(());
        }
        let name = |safety| {
            let ending = Self::ALL.iter().find(|(known, _)| *known == safety);
            format!("{}_{}", self.prefix, ending.map_or("", |(_, name)| name))
        };
        let right = name(safety);
        let message = format!("`{path}` is not a tool for `{}`", name(self.safety));
        let error = CoreError::new(CallCode::FieldInvalid, message)
            .path(path)
            .hint(format!("Call it by `{right}` with the same arguments."))
            .details(json!({ "call_by": right }))
            .maybe_executed(false);
        Err(Box::new(error))
    }
}

/// The characters of a reply of `meta_call` that are not the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyRoom {
    /// The characters around it, without the characters of the HTTP reply.
    pub around: usize,
    /// The characters of a note on a result that was cut.
    pub note: usize,
    /// The limit of a result if the config does not set one.
    pub limit: ResultLimit,
    /// Whether the whole of a result that was cut is kept.
    pub keeps_whole: bool,
}

/// The kind of listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Tree,
    Desc,
}

/// The body of a listing.
enum ListingBody {
    Tree(TreeBody),
    Desc(DescRequest),
}

impl ListingBody {
    fn parse(what: Listing, form: BodyForm, body: &[u8]) -> Result<Self, Box<CoreError>> {
        let text = utf8(body)?;
        match what {
            Listing::Tree => TreeBody::parse(text).map(Self::Tree),
            Listing::Desc => DescRequest::parse(text, form).map(Self::Desc),
        }
    }
}

impl<B: Broker> MetaCaller<'_, B> {
    /// `meta_call`.
    pub async fn call(&self, body: Bytes) -> Result<Outcome, Box<CoreError>> {
        if body.len() > SMALL_BYTES {
            // Boxed, so that short calls do not carry its size.
            return Box::pin(self.long_call(body)).await;
        }
        let read = utf8(&body).and_then(CallBody::parse)?;
        let args = match read.args {
            Some(ShortArgs { text, value }) => {
                let text = match text {
                    Cow::Borrowed(part) => body.slice_ref(part.as_bytes()),
                    Cow::Owned(text) => Bytes::from(text),
                };
                Args::Read { text, value }
            }
            None => Args::empty(),
        };
        let path = self.path(&read.path);
        let about = (self.meta_of(read.meta), self.asked_job(read.job)?);
        self.check_split(&path)?;
        // Pinned here: `await` would copy it twice, and a call is long.
        let asked = pin!(self.ask(path, args, about, None));
        asked.await
    }

    async fn long_call(&self, body: Bytes) -> Result<Outcome, Box<CoreError>> {
        let received = Some(Instant::now());
        let text = body.clone();
        let account = self.account.clone();
        let read = move || LongCallBody::parse(utf8(&text)?, &account);
        let read = self
            .broker
            .services()
            .read_long(self.account, read)
            .await??;
        let args = match read.args {
            Some(LongArgs::Within(at)) => Args::Unread { body, at },
            Some(LongArgs::Unquoted(args)) => {
                let at = 0..args.len();
                Args::Unread { body: args, at }
            }
            None => Args::empty(),
        };
        let about = (self.meta_of(read.meta), self.asked_job(read.job)?);
        self.check_split(&read.path)?;
        self.ask(read.path.into(), args, about, received).await
    }

    /// Returns a path without a copy of it, if the catalog has it.
    pub(super) fn path(&self, path: &str) -> Cow<'static, str> {
        match self.broker.services().known_path(path) {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(path.to_owned()),
        }
    }

    /// Returns the `_meta` of a call whose body may have its own.
    fn meta_of(&self, body: Option<Option<String>>) -> Option<Box<str>> {
        match body {
            Some(meta) => meta.map(Box::from),
            None => self.meta.map(Box::from),
        }
    }

    /// Calls the tool at `path`, whose arguments are one JSON object.
    pub async fn call_tool(
        &self,
        path: Cow<'static, str>,
        arguments: Bytes,
    ) -> Result<Outcome, Box<CoreError>> {
        let (args, received) = read_args(arguments)?;
        self.check_split(&path)?;
        let about = (
            self.meta.map(Box::from),
            self.asked_job(AskedJob::default())?,
        );
        self.ask(path, args, about, received).await
    }

    /// Refuses a tool that another one of the three tools calls.
    fn check_split(&self, path: &str) -> Result<(), Box<CoreError>> {
        let Some(only) = self.only else {
            return Ok(());
        };
        // The call has the error of a path that names no item.
        let found = self.broker.look_up(self.identity, Name::Path(path));
        found.map_or(Ok(()), |found| only.check(path, found.safety()))
    }

    /// Calls an entry of any kind, with a result in the form of the config. Not an `async fn`, since that would have
    /// room for the request twice. `about` is the `_meta` for the server and what the call asks of jobs.
    fn ask(
        &self,
        path: Cow<'static, str>,
        args: Args,
        about: (Option<Box<str>>, Option<Box<JobRequest>>),
        received: Option<Instant>,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        let form = ResultForm::Configured {
            reserved_chars: chars_around(&path).max(self.reply.around),
            note_chars: self.reply.note,
            limit: self.reply.limit,
            keeps_whole: self.reply.keeps_whole,
        };
        let operation = Operation::CallTool(args);
        self.make(path, operation, form, about, received)
    }

    /// Returns what a call asks of jobs; `None` for a call whose caller waits for the result.
    fn asked_job(&self, asked: AskedJob) -> Result<Option<Box<JobRequest>>, Box<CoreError>> {
        let own = self.job;
        let own_mode = own.map(|job| job.mode);
        let mode = match self.is_job {
            true => own_mode,
            false => asked.mode.or(own_mode),
        };
        let mode = mode.unwrap_or_default();
        let key = own.and_then(|job| job.key.as_deref());
        if mode == CallMode::Sync && key.is_none() {
            return Ok(None);
        }
        if self.broker.jobs().is_none() {
            let message = match (mode, key) {
                (_, Some(_)) => "an idempotency key needs jobs, which are off here",
                (CallMode::Async, None) => "the call asks for a job, and jobs are off here",
                (CallMode::Sync | CallMode::Auto, None) => return Ok(None),
            };
            let error = CoreError::new(CallCode::NotDurable, message);
            return Err(Box::new(error.maybe_executed(false)));
        }
        Ok(Some(Box::new(JobRequest {
            mode,
            ttl: asked.ttl.or(own.and_then(|job| job.ttl)),
            key: key.map(Box::from),
            run: None,
        })))
    }

    /// Begins a call of a prompt, template or resource, whose result is returned whole.
    pub fn call_item(
        &self,
        path: &'static str,
        operation: Operation,
        received: Option<Instant>,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        let meta = self.meta.map(Box::from);
        let form = ResultForm::Whole;
        self.make(path.into(), operation, form, (meta, None), received)
    }

    fn make(
        &self,
        path: Cow<'static, str>,
        operation: Operation,
        form: ResultForm,
        (meta, job): (Option<Box<str>>, Option<Box<JobRequest>>),
        received: Option<Instant>,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        self.broker.call(Request {
            identity: self.identity.clone(),
            context: CallContext {
                meta,
                job,
                events: self.events.cloned(),
                received,
                decided_above: self.decided_above,
                trace: self.trace.map(|trace| Box::new(trace.clone())),
                ..CallContext::new(self.request_id, self.account.clone(), form)
            },
            path,
            operation,
        })
    }

    /// `meta_tree` and `meta_desc`.
    pub async fn list(&self, what: Listing, body: Bytes) -> Result<Listed, Box<CoreError>> {
        let (form, mut charge) = (self.form, None);
        let read = if body.len() > SMALL_BYTES {
            // A body longer than fifty paths is nearly always refused.
            let (services, account) = (self.broker.services().clone(), self.account.clone());
            let read = move || {
                let charge = services.charge_parsed(&account, &body)?;
                ListingBody::parse(what, form, &body).map(|read| (read, charge))
            };
            let read = self.broker.services().read_long(self.account, read);
            let (read, parsed) = read.await??;
            charge = Some(parsed);
            read
        } else {
            ListingBody::parse(what, form, &body)?
        };
        let listed = match read {
            ListingBody::Tree(body) => self.tree(body).await,
            ListingBody::Desc(request) => self.describe(request).await,
        };
        drop(charge);
        listed
    }

    async fn tree(&self, body: TreeBody) -> Result<Listed, Box<CoreError>> {
        let path = body.path.as_deref().map(|path| self.form.path(path));
        let answer = match body.what {
            TreeRequest::List { depth } => {
                let path = path.unwrap_or_else(|| self.identity.root());
                let listing = self.broker.list(self.identity, path, depth)?;
                ListingAnswer::Tree(listing)
            }
            TreeRequest::Search { query, limit } => {
                let what = SearchQuery {
                    query: &query,
                    path,
                    limit,
                    detail: Detail::Listing,
                    account: self.account,
                };
                // Boxed, so that other requests do not carry its size.
                let found = Box::pin(self.broker.search(self.identity, what)).await?;
                ListingAnswer::Found(query, found)
            }
        };
        Ok(Listed {
            answer,
            warnings: body.warnings,
        })
    }

    async fn describe(&self, request: DescRequest) -> Result<Listed, Box<CoreError>> {
        let DescRequest {
            what,
            is_full,
            warnings,
        } = request;
        let form = match is_full {
            true => DescriptionForm::Full,
            false => DescriptionForm::Short,
        };
        let (broker, identity, account) = (self.broker, self.identity, self.account);
        let answer = match what {
            DescBody::One(path) => {
                let mut described = broker.describe(identity, &[&path], account).await?;
                let one = described.pop().ok_or_else(|| unanswered(&path))??;
                ListingAnswer::One(one, form)
            }
            DescBody::Many(paths) => {
                let names: Vec<&str> = paths.iter().map(String::as_str).collect();
                let described = broker.describe(identity, &names, account).await?;
                ListingAnswer::Many(paths, described, form)
            }
        };
        Ok(Listed { answer, warnings })
    }
}

/// Returns the error of a path for which a layer returned no description.
fn unanswered(path: &str) -> Box<CoreError> {
    let error = CoreError::new(CallCode::Internal, "the entry was not described");
    Box::new(error.path(path))
}

/// Reads arguments, and returns the time of their arrival if core has to read them. They are one JSON object.
pub fn read_args(arguments: Bytes) -> Result<(Args, Option<Instant>), Box<CoreError>> {
    if arguments.len() > SMALL_BYTES {
        let at = 0..arguments.len();
        let body = arguments;
        return Ok((Args::Unread { body, at }, Some(Instant::now())));
    }
    let text = utf8(&arguments)?;
    let value = json::parse(text).map_err(|error| json_invalid(text, 0, text, &error))?;
    let text = arguments;
    Ok((Args::Read { text, value }, None))
}
