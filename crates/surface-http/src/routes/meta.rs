//! The meta-tools.

use axum::http::StatusCode;
use axum::http::request::Parts;
use broker_core::{Broker, RequestId};
use broker_surface::meta::{self, BodyForm, MetaCaller, ReplyRoom};
use broker_surface::{ClientPlace, trace_of};
use broker_surface_mcp::http::joined_header;
use bytes::Bytes;

use super::table::MetaTool;
use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{Admitted, HttpReply, JSON, Refusal};

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
                    joined_header(&parts.headers, name)
                })
            }
            MetaTool::List(_) => None,
        };
        let (identity, account) = (&admitted.identity, &admitted.account);
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
        };
        let reply = match tool {
            MetaTool::List(listing) => asker.list(listing, body).await.and_then(|listed| {
                let reply = listed.into_reply(self.broker.services(), identity);
                meta::charged(reply, account)
            }),
            MetaTool::Call => {
                let outcome = asker.call(body).await;
                outcome.and_then(|outcome| meta::reply(&outcome, account))
            }
        };
        let reply = reply.map_err(|error| Refusal::from(error).for_caller(identity))?;
        Ok(HttpReply {
            status: StatusCode::OK,
            body: reply.body,
            media: JSON,
            etag: reply.etag,
        })
    }
}
