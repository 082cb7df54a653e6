//! Jobs of callers: their state, their end, their results, and streams of their events.

mod artifacts;
mod feed;
mod open_streams;
mod query;
pub(super) mod socket;
mod stream;
mod stream_ends;

pub(crate) use open_streams::OpenStreams;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use broker_core::{Broker, Charge, JobDesk, JobQuery, JobState, Reply, memory_error_for_result};
use broker_model::CallCode;
use broker_surface::{CallerShare, job_json, meta};
use std::sync::Arc;

use crate::HttpSurface;
use crate::pipeline::{Admitted, HttpReply, JSON, Refusal, ReplyContent};
use artifacts::Artifacts;
use feed::{Feed, Kinds};
use query::Query;
use stream_ends::StreamEnds;

/// The number of jobs in a page whose request names none, and the maximum.
const PAGE_JOBS: usize = 50;
const MAX_PAGE_JOBS: usize = 100;
/// The memory that reading the parts of a result takes, as a multiple of its length.
const RESULT_COPIES: usize = 4;
/// The event after which a stream goes on, as clients of Server-Sent Events send it.
const LAST_EVENT_ID: &str = "last-event-id";

/// A route of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobRoute {
    /// The jobs of the caller.
    List,
    /// One job, or its cancellation.
    Job,
    /// The parts of the result.
    Manifest,
    /// The result, or one part of it.
    Download,
    /// The events, as Server-Sent Events.
    Events,
    /// The state at intervals, as Server-Sent Events, for simple clients.
    Progress,
}

impl<B: Broker> HttpSurface<B> {
    /// Answers a route of jobs.
    pub(super) async fn jobs(
        &self,
        route: JobRoute,
        parts: &Parts,
        admitted: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        let identity = &admitted.identity;
        let answered = self.answer_jobs(route, parts, admitted).await;
        answered.map_err(|refusal| refusal.for_caller(identity))
    }

    async fn answer_jobs(
        &self,
        route: JobRoute,
        parts: &Parts,
        admitted: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        let identity = &admitted.identity;
        let desk = self.broker.jobs().ok_or_else(jobs_are_off)?;
        let id = job_id(parts.uri.path());
        let query = Query::read(parts.uri.query());
        match route {
            JobRoute::List => {
                let page = desk.list(identity, list_query(&query)?).await?;
                Ok(json(job_json::page(&page)))
            }
            JobRoute::Job => {
                let job = match parts.method {
                    Method::DELETE => desk.cancel(identity, id).await?,
                    _ => desk.show(identity, id).await?,
                };
                Ok(json(job_json::job(&job)))
            }
            JobRoute::Manifest => {
                let result = desk.result(identity, id).await?;
                let id = id.to_owned();
                let length = result.result.len();
                let read = move || Artifacts::read(&result.result).manifest(&id).to_string();
                Ok(json(self.read_result(length, admitted, read).await?))
            }
            JobRoute::Download => self.download(&**desk, id, &query, admitted).await,
            JobRoute::Events => {
                let after = match query.number("after", u64::MAX)? {
                    Some(after) => after,
                    None => last_event_id(&parts.headers)?,
                };
                // An unknown job has an error in place of a stream.
                desk.events_may_be_read(identity, id).await?;
                let feed = Feed {
                    desk: Arc::clone(desk),
                    identity: identity.clone(),
                    account: admitted.account.clone(),
                    id: id.to_owned(),
                    after,
                    kinds: Kinds::read(&query)?,
                };
                self.stream(admitted, |ends| stream::events(feed, ends))
            }
            JobRoute::Progress => {
                let ticks = stream::Ticks::read(&query)?;
                desk.events_may_be_read(identity, id).await?;
                self.stream(admitted, |ends| {
                    stream::progress(Arc::clone(desk), identity, id, ticks, ends)
                })
            }
        }
    }

    /// Returns a result, or one part of it. Its memory is charged to the caller until it was sent.
    async fn download(
        &self,
        desk: &dyn JobDesk,
        id: &str,
        query: &Query,
        admitted: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        let part = query.number("part", u64::MAX)?;
        let result = desk.result(&admitted.identity, id).await?;
        let Some(part) = part else {
            let whole = Reply {
                body: result.result,
                etag: None,
            };
            let charged = meta::charged(whole, &admitted.account)?;
            return Ok(HttpReply {
                status: StatusCode::OK,
                body: charged.body.into(),
                media: JSON,
                etag: None,
            });
        };
        let length = result.result.len();
        let read = move || Artifacts::read(&result.result).part(part);
        let found = self.read_result(length, admitted, read).await?;
        let artifact = found.ok_or_else(|| {
            let message = format!("the result has no part {part}; the manifest lists the parts");
            Refusal::new(CallCode::FieldInvalid, message)
        })?;
        Ok(HttpReply {
            status: StatusCode::OK,
            body: artifact.bytes.into(),
            // The media type of a server is data for the caller, never a page of the broker.
            media: HeaderValue::from_static("application/octet-stream"),
            etag: None,
        })
    }

    /// Reads the parts of a result of `length` bytes, off the runtime's threads, and charged to the caller.
    async fn read_result<T: Send + 'static>(
        &self,
        length: usize,
        admitted: &Admitted,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let account = &admitted.account;
        let mut charge = Charge::default();
        charge
            .cover(account, RESULT_COPIES * length)
            .map_err(|full| Box::new(memory_error_for_result(full)))?;
        let value = self.broker.services().shape_long(account, read).await;
        drop(charge);
        Ok(value)
    }

    /// Returns a stream as a reply. It ends with the right of its caller and with the drain.
    fn stream(
        &self,
        admitted: &Admitted,
        begin: impl FnOnce(StreamEnds) -> Body,
    ) -> Result<HttpReply, Refusal> {
        let share = CallerShare::new(&admitted.identity, admitted.address);
        let open = self.job_streams.open(share)?;
        let body = begin(StreamEnds::new(self.broker.services().clone(), open));
        Ok(HttpReply {
            status: StatusCode::OK,
            body: ReplyContent::Stream(body),
            media: HeaderValue::from_static("text/event-stream"),
            etag: None,
        })
    }
}

/// Returns the refusal of a route of jobs where there are none.
fn jobs_are_off() -> Refusal {
    let message = "jobs are off: the config has no `jobs`";
    Refusal::new(CallCode::RouteNotFound, message)
}

fn list_query(query: &Query) -> Result<JobQuery, Refusal> {
    let state = query.text("status").map(|name| {
        JobState::parse(name).ok_or_else(|| {
            let names = JobState::ALL.map(JobState::as_str).join(", ");
            Refusal::new(
                CallCode::FieldInvalid,
                format!("`status` must be one of {names}"),
            )
        })
    });
    let limit = query.number("limit", MAX_PAGE_JOBS as u64)?;
    Ok(JobQuery {
        state: state.transpose()?,
        limit: limit.map_or(PAGE_JOBS, |limit| (limit as usize).max(1)),
        cursor: query.text("cursor").map(str::to_owned),
        is_own_only: false,
    })
}

fn json(text: String) -> HttpReply {
    HttpReply {
        status: StatusCode::OK,
        body: ReplyContent::Whole(text.into()),
        media: JSON,
        etag: None,
    }
}

/// Returns the id in the path of a route of jobs.
fn job_id(path: &str) -> &str {
    let segments: Vec<&str> = path.split('/').collect();
    // A path before the routes may have such a segment as well.
    let before = segments
        .windows(2)
        .rposition(|pair| ["jobs", "progress"].contains(&pair[0]));
    before.map_or("", |at| segments[at + 1])
}

/// Returns the number in `Last-Event-ID`; 0 without the header.
fn last_event_id(headers: &HeaderMap) -> Result<u64, Refusal> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(0);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        let message = "`Last-Event-ID` must be the number of an event";
        Refusal::new(CallCode::HeaderInvalid, message)
    })
}
