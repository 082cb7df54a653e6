//! Step 6: sends the call to the process that serves the source, and once more if the config allows it.

use std::borrow::Cow;
use std::sync::Arc;

use broker_mcp::{CallFailure, CallRight, CallSubject, CallTime, RawResult, ToolCall};
use broker_memory::{Account, Charge, Owner};
use broker_model::item::{self, ItemKind};
use broker_model::text::shown_line;
use broker_model::uri::{MAX_URI_BYTES, has_dot_segment};
use broker_model::uri_template::{TemplateError, UriTemplate};
use broker_model::{CallCode, SourceCause};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::baggage::without_baggage;
use super::gate::too_many;
use super::limit::Limits;
use super::resolve::{Target, out_of_service};
use super::right::Unsent;
use crate::Inner;
use crate::call::arguments::memory_error_for_request;
use crate::call::context::CallContext;
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::identity::Identity;
use crate::listing::items::{covers, no_resource};
use crate::sources::slot::SourceSlot;

/// The hints of errors about URIs.
const URI_HINT: &str = "Send other values.";
const LIST_HINT: &str = "`meta_desc` of the path lists the URIs.";

impl Inner {
    /// Sends the call and waits for its result.
    pub(super) async fn dispatch(
        &self,
        target: &Target,
        slot: &SourceSlot,
        (args, subject, account): (&[u8], Option<&CallSubject>, &Account),
        (identity, context): (&Identity, &CallContext<'_>),
        limits: &Limits,
    ) -> Result<RawResult, Box<CoreError>> {
        // The line that is made from the arguments.
        let mut line_charge = Charge::default();
        line_charge
            .cover(account, args.len())
            .map_err(|charge_error| {
                let error = memory_error_for_request(charge_error, args.len(), account);
                Box::new(error.path(target.path))
            })?;
        let meta = match limits.settings.is_trusted {
            true => context.meta.map(Cow::Borrowed),
            false => context.meta.and_then(without_baggage),
        };
        let unsent = Unsent::new(self, identity, target, (args, subject, account));
        let (changes, may_send) = (self.drift_state.tool_changes(), || unsent.is_admitted());
        let right = CallRight {
            revoked: identity.revocation().map(|it| &it.revoked),
            changes: &changes,
            may_send: &may_send,
        };
        let call = ToolCall {
            tool: target.tool.name,
            subject,
            args,
            meta: meta.as_deref(),
            events: context.events.as_ref(),
            right: Some(&right),
            account: Some(account),
        };
        let mut answer = self
            .send(
                (target, &unsent),
                slot,
                call,
                limits.call_time(context.deadline),
            )
            .await?;
        if self.is_sent_again(&answer, limits) {
            tracing::info!(
                source = target.source,
                path = target.path,
                "the session ended with a call, which is sent once more"
            );
            // If it could not be sent again, the first answer is more useful.
            match self
                .send(
                    (target, &unsent),
                    slot,
                    call,
                    limits.call_time(context.deadline),
                )
                .await
            {
                Ok(Err(unsent)) if !unsent.maybe_executed() => {}
                Ok(second) => answer = second,
                Err(_withdrawn) => {}
            }
        }
        answer.map_err(|failure| match failure.maybe_executed() {
            true => self.failed(failure, target, limits),
            // It may have been given up for this reason.
            false => unsent
                .refusal()
                .unwrap_or_else(|| self.failed(failure, target, limits)),
        })
    }

    /// The URI that is read for these arguments: that of the argument of a live entry, or that which a template gives.
    /// `None` for everything else. A given subject is checked. Boxed, so that calls of tools do not carry its size.
    pub(super) fn subject_of(
        &self,
        (identity, target): (&Identity, &Target),
        args: &[u8],
        subject: Option<&CallSubject>,
    ) -> Result<Option<Box<CallSubject>>, Box<CoreError>> {
        let (kind, id) = ItemKind::of_key(target.tool.name);
        if kind == ItemKind::Tool && subject.is_none() {
            return Ok(None);
        }
        let refuse = |message: String| Err(refused(target, message, URI_HINT));
        let values = || serde_json::from_slice::<Map<String, Value>>(args).unwrap_or_default();
        // Rules that narrow arguments cannot be applied to parts of them, nor to a URI.
        let is_narrowed = target.narrowed.is_some();
        let template = || UriTemplate::parse(id);
        let uri = match (kind, subject) {
            (ItemKind::Prompt | ItemKind::Template, Some(CallSubject::Completion))
                if !is_narrowed =>
            {
                return Ok(None);
            }
            (
                ItemKind::Tool | ItemKind::Prompt | ItemKind::Template | ItemKind::Resource,
                Some(CallSubject::Completion),
            ) => {
                return refuse("the entry has no completions for this caller".to_owned());
            }
            (ItemKind::Template, Some(CallSubject::Uri(uri))) => match template() {
                Ok(template) if !is_narrowed && template.covers(uri) => Ok(uri.to_string()),
                Ok(_) => Err(TemplateError::Leaves),
                Err(error) => Err(error),
            },
            (ItemKind::Tool | ItemKind::Prompt | ItemKind::Resource, Some(CallSubject::Uri(_))) => {
                Err(TemplateError::Leaves)
            }
            (ItemKind::Template, None) => {
                template().and_then(|template| template.expand(&values()))
            }
            (ItemKind::Resource, None) if item::is_live(target.tool.name) => {
                let values = values();
                let uri = values
                    .get("uri")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                if !self.is_readable_now(target, uri, true) {
                    return Err(refused(target, not_listed(uri), LIST_HINT));
                }
                self.check_uri(identity, target, uri)?;
                return Ok(Some(Box::new(CallSubject::Uri(uri.into()))));
            }
            (ItemKind::Tool | ItemKind::Prompt | ItemKind::Resource, None) => return Ok(None),
        };
        match uri {
            Err(error) => refuse(error.to_string()),
            Ok(uri) if !self.exposes_uri(target, &uri) => refuse(
                "the filter of the source does not admit the URI for these values".to_owned(),
            ),
            Ok(uri) => {
                self.check_uri(identity, target, &uri)?;
                Ok(Some(Box::new(CallSubject::Uri(uri.into()))))
            }
        }
    }

    /// Refuses a URI that belongs to an entry which the caller may not use, like one that is unknown.
    fn check_uri(
        &self,
        identity: &Identity,
        target: &Target,
        uri: &str,
    ) -> Result<(), Box<CoreError>> {
        let (view, caller) = (self.drift_state.view.load(), self.caller(identity));
        let source = target.tool.source;
        match caller.may_read(&view, self.catalog, (source, uri), Some(target.at)) {
            true => Ok(()),
            false => Err(no_resource(uri)),
        }
    }

    /// Whether the source of a live entry lists a URI now, or has a template that covers it. `unlisted` is the answer
    /// before its first list.
    fn is_readable_now(&self, target: &Target, uri: &str, unlisted: bool) -> bool {
        let source = target.tool.source;
        if uri.len() > MAX_URI_BYTES || has_dot_segment(uri) || !self.exposes_uri(target, uri) {
            return false;
        }
        let mut tools = self.catalog.tools.iter();
        let list = self.drift_state.live.of(source as usize);
        list.map_or(unlisted, |list| list.has(uri))
            || tools.any(|tool| tool.source == source && covers(tool, uri))
    }

    /// Whether the filter of a source admits a URI.
    fn exposes_uri(&self, target: &Target, uri: &str) -> bool {
        let source = target.tool.source as usize;
        self.drift_state.admits_uri(source, uri)
    }

    /// Whether a call whose session has ended is sent once more: if the config allows it, or if a server over HTTP
    /// ended the session and refused the call for that reason only.
    fn is_sent_again(&self, answer: &Result<RawResult, CallFailure>, limits: &Limits) -> bool {
        let Err(CallFailure::Exited {
            failure,
            maybe_executed,
        }) = answer
        else {
            return false;
        };
        let was_refused = failure.cause == SourceCause::SessionEnded && !maybe_executed;
        (limits.settings.retry || was_refused) && !self.drain.is_closing()
    }

    /// Sends the call to the source in the slot, within `time`. The error is final: a withdrawal, or the end of
    /// the caller's right.
    async fn send(
        &self,
        (target, unsent): (&Target, &Unsent<'_>),
        slot: &SourceSlot,
        call: ToolCall<'_>,
        time: CallTime,
    ) -> Result<Result<RawResult, CallFailure>, Box<CoreError>> {
        let mut left = time;
        loop {
            // Held until the call ends: a reload waits for it before it stops the source.
            let running = slot.load_full();
            let session = match running.upstream.ready() {
                Some(session) => Ok(session),
                None => {
                    let owner = call.account.map_or(Owner::BROKER, Account::owner);
                    let source = target.tool.source as usize;
                    let Some(_place) = self.waiting.enter(source, owner) else {
                        return Err(Box::new(too_many(target)));
                    };
                    let began = Instant::now();
                    let session = running.upstream.session(left.first()).await;
                    left = left.less(began.elapsed());
                    session
                }
            };
            // The withdrawal is checked again now that the session is known: the session's verdict was
            // stored before the session was handed out, and may have withdrawn the tool.
            let withdrawn = self.drift_state.view.load().withdrawn(target.at).cloned();
            // A reload puts a source into the slot before its verdict is in the view. If the slot has
            // changed, the view may not be about this source, so the call starts again.
            if !Arc::ptr_eq(&slot.load(), &running) {
                continue;
            }
            if let Some(withdrawn) = withdrawn {
                return Err(out_of_service(target, &withdrawn));
            }
            if let Some(refusal) = unsent.refusal() {
                return Err(refusal);
            }
            // The first list may have come after the check of the arguments.
            if let Some(CallSubject::Uri(uri)) = call.subject
                && item::is_live(target.tool.name)
                && !self.is_readable_now(target, uri, false)
            {
                return Err(refused(target, not_listed(uri), LIST_HINT));
            }
            return Ok(match session {
                Ok(session) => session.call(call, left).await,
                Err(failure) => Err(failure),
            });
        }
    }

    fn failed(&self, failure: CallFailure, target: &Target, limits: &Limits) -> Box<CoreError> {
        let (path, source) = (target.path, target.source);
        let closing = self.drain.is_closing();
        match failure {
            // The broker ended the process, so the caller gets `shutting_down` and not the exit of the
            // process.
            CallFailure::Exited { maybe_executed, .. } if closing => {
                let error = failure::shutting_down().maybe_executed(maybe_executed);
                let retryable = !maybe_executed;
                Box::new(CoreError { retryable, ..error }.path(path))
            }
            // A call that waited for its source reports its whole timeout.
            CallFailure::Timeout {
                maybe_executed,
                extended,
                ..
            } => {
                let failure = CallFailure::Timeout {
                    after: if extended {
                        limits.passed()
                    } else {
                        limits.time
                    },
                    extended,
                    maybe_executed,
                };
                failure::from_call(failure, path, source)
            }
            failure => failure::from_call(failure, path, source),
        }
    }
}

/// The message about a URI that a live entry does not read.
fn not_listed(uri: &str) -> String {
    let shown = shown_line(uri, 160);
    format!("the source does not list the resource `{shown}`, or its filter excludes it")
}

/// The error of arguments that give no readable URI.
fn refused(target: &Target, message: String, hint: &str) -> Box<CoreError> {
    let error = CoreError::new(CallCode::ArgsInvalid, message).path(target.path);
    Box::new(error.hint(hint.to_owned()).maybe_executed(false))
}
