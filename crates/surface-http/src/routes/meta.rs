//! The meta-tools.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::request::Parts;
use broker_core::{Broker, RequestId};
use broker_surface::meta::{self, BodyForm, MetaCaller, ReplyRoom};

use super::table::MetaTool;
use crate::listener::Caller;
use crate::pipeline::{Admitted, HttpReply, Refusal, body};
use crate::{HttpSettings, HttpSurface};

impl<B: Broker> HttpSurface<B> {
    /// Answers a request for a meta-tool.
    pub(super) async fn meta(
        &self,
        tool: MetaTool,
        parts: &Parts,
        body: &mut Option<Body>,
        request_id: RequestId,
        (caller, settings): (&Caller, &HttpSettings),
    ) -> Result<HttpReply, Refusal> {
        let Admitted {
            identity, account, ..
        } = self.admit(parts, caller, &settings.callers).await?;
        let account = &account;
        body::check_type(&parts.headers)?;
        let bytes = body::read(body, settings.body_bytes, account).await?;
        let asker = MetaCaller {
            only: None,
            broker: &self.broker,
            identity: &identity,
            request_id,
            account,
            reply: ReplyRoom::default(),
            form: BodyForm::Http,
            meta: None,
            events: None,
        };
        let reply = match tool {
            MetaTool::List(listing) => match asker.list(listing, bytes).await {
                Ok(listed) => {
                    let reply = listed.into_reply(self.broker.services(), &identity);
                    meta::charged(reply, account)
                }
                Err(error) => Err(error),
            },
            MetaTool::Call => match asker.call(bytes).await {
                Ok(outcome) => meta::reply(&outcome, account),
                Err(error) => Err(error),
            },
        };
        let reply = reply.map_err(|error| Refusal::from(error).of(&identity))?;
        Ok(HttpReply {
            status: StatusCode::OK,
            body: reply.body,
            etag: reply.etag,
        })
    }
}
