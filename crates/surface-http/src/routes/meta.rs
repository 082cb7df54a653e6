//! The meta-tools.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use broker_core::{Broker, JobRequest, Outcome, RequestId};
use broker_model::CallCode;
use broker_surface::meta::{self, BodyForm, MetaCaller, ReplyRoom};
use broker_surface::{ClientPlace, trace_of};
use broker_surface::{idempotency_key, job_json};
use broker_surface_mcp::http::trace_header;
use bytes::Bytes;

use super::table::MetaTool;
use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{Admitted, HttpReply, JSON, Refusal};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl<B: Broker> HttpSurface<B> {
    /// Answers a request for a meta-tool.
    pub(super) async fn meta(
        &self,
        tool: MetaTool,
        body: Bytes,
        (parts, admitted, caller): (&Parts, &Admitted, &Caller),
        request_id: RequestId,
    ) -> Result<HttpReply, Refusal> {
        let trace = match tool {
            MetaTool::Call => {
                let client = ClientPlace {
                    address: admitted.address,
                    peer: caller.address,
                    port: caller.port,
                };
                trace_of(&self.broker, client, |name| {
                    trace_header(&parts.headers, name)
                })
            }
            MetaTool::List(_) => None,
        };
        let (identity, account) = (&admitted.identity, &admitted.account);
        let job = key_of_call(&parts.headers)?.map(|key| {
            Box::new(JobRequest {
                key: Some(key.into()),
                ..JobRequest::default()
            })
        });
        let asker = MetaCaller {
            only: None,
            broker: &self.broker,
            identity,
            request_id,
            account,
            reply: ReplyRoom::default(),
            form: BodyForm::Http,
            meta: None,
            trace: trace.as_deref(),
            events: None,
            job: job.as_deref(),
            is_job: false,
            decided_above: u32::MAX,
        };
        let reply = match tool {
            MetaTool::List(listing) => asker.list(listing, body).await.and_then(|listed| {
                let reply = listed.into_reply(self.broker.services(), identity);
                meta::charged(reply, account)
            }),
            MetaTool::Call => match asker.call(body).await {
                Ok(outcome) if is_accepted(&outcome) => return Ok(accepted(&outcome)),
                outcome => outcome.and_then(|outcome| meta::reply(&outcome, account)),
            },
        };
        let reply = reply.map_err(|error| Refusal::from(error).for_caller(identity))?;
        Ok(HttpReply {
            status: StatusCode::OK,
            body: reply.body.into(),
            media: JSON,
            etag: reply.etag,
        })
    }
}

/// Whether a call became a job that has not ended.
#[inline]
fn is_accepted(outcome: &Outcome) -> bool {
    outcome.job.is_some() && outcome.result.is_empty()
}

/// Returns the reply to a call that became a job.
#[cold]
fn accepted(outcome: &Outcome) -> HttpReply {
    let body = outcome.job.as_ref().map(|job| job_json::accepted(job));
    HttpReply {
        status: StatusCode::ACCEPTED,
        body: body.unwrap_or_default().into(),
        media: JSON,
        etag: None,
    }
}

/// Returns the idempotency key of a call.
#[inline]
fn key_of_call(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let Some(value) = headers.get(&IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let text = value.to_str().ok();
    let text = text.filter(|text| idempotency_key::is_valid(text));
    let message = "`Idempotency-Key` must have 1 to 255 visible ASCII characters";
    let refusal = || Refusal::new(CallCode::HeaderInvalid, message);
    text.map(Some).ok_or_else(refusal)
}
