//! One call from admission to result: nothing is sent before every check has passed, and the result
//! is not looked into.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use broker_mcp::{Account, CallFailure, Charge, RawResult, UNCHARGED_BYTES};
use broker_model::CallCode;
use broker_model::config::RenderMode;
use tokio::time::Instant;
use tracing::Level;

use super::arguments::no_room_for_request;
use super::cut::cut;
use super::error::CoreError;
use super::failure::{self, SHORT_WAIT};
use super::flags;
use super::identity::Identity;
use super::seat::Seat;
use super::shape::shape;
use super::view::Withdrawn;
use super::{Call, Inner, Reply, lookup};
use crate::catalog::{Kind, Tool};

impl Inner {
    pub(super) async fn call(
        &self,
        identity: &Identity,
        call: Call<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        let mut line = CallLine::new(&call);
        let outcome = match self.calls.enter() {
            Some(_ticket) => self.admitted(identity, call, &mut line).await,
            None => Err(Box::new(failure::shutting_down().maybe_executed(false))),
        };
        line.outcome = match &outcome {
            Ok(_) => "ok",
            Err(error) => error.code.as_str(),
        };
        outcome
    }

    async fn admitted(
        &self,
        identity: &Identity,
        call: Call<'_>,
        line: &mut CallLine<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        let (at, withdrawn) = self.tool_at(identity, call.path)?;
        let tool = self.catalog.tool(at);
        let path = self.catalog.entry(tool.entry).path;
        let source = self.catalog.sources[tool.source as usize].path;
        (line.source, line.digest) = (source, tool.digest);
        if let Some(withdrawn) = withdrawn {
            return Err(out_of_service(path, tool, &withdrawn));
        }
        if !self.verdicts.gate.admits(tool.source as usize) {
            return Err(Box::new(starting(path, source)));
        }
        let Some(seats) = self.seats.get() else {
            return Err(Box::new(starting(path, source)));
        };
        let settings = self.settings.load()[at as usize];
        let began = call.since.unwrap_or_else(Instant::now);
        let left = || settings.timeout.saturating_sub(began.elapsed());
        let args = call.args.text();
        self.check(at, call.args, call.account, left(), settings.timeout)
            .await?;
        // The line that is made from the arguments.
        let mut line_charge = Charge::default();
        line_charge
            .cover(call.account, args.len())
            .map_err(|no_room| {
                Box::new(no_room_for_request(no_room, args.len(), call.account).path(path))
            })?;
        let place = &seats[tool.source as usize];
        let mut answer = self.ask(at, place, args, left()).await?;
        if settings.again && matches!(answer, Err(CallFailure::Exited { .. })) && !self.is_closing()
        {
            tracing::info!(
                source,
                path,
                "the server died with a call, which is sent once more"
            );
            // Where it could not be sent again, the first answer says more.
            match self.ask(at, place, args, left()).await {
                Ok(Err(unsent)) if !unsent.maybe_executed() => {}
                Ok(second) => answer = second,
                Err(_withdrawn) => {}
            }
        }
        match answer {
            Ok(answer) => {
                let form = if call.raw {
                    Form {
                        is_given_away: true,
                        ..Form::default()
                    }
                } else {
                    Form {
                        mode: settings.form,
                        limit: settings.limit,
                        is_given_away: false,
                    }
                };
                self.shaped(path, answer, form, call.account).await
            }
            Err(failure) => Err(self.failed(failure, settings.timeout, path, source)),
        }
    }

    /// Sends a call to the source that is in `place`, within `time`. Of the errors, only a withdrawal is
    /// final.
    async fn ask(
        &self,
        at: u32,
        place: &ArcSwap<Seat>,
        args: &[u8],
        time: Duration,
    ) -> Result<Result<RawResult, CallFailure>, Box<CoreError>> {
        let tool = self.catalog.tool(at);
        let mut left = time;
        loop {
            // Held until the call ends: a source that takes over waits for it.
            let seat = place.load_full();
            let session = match seat.upstream.ready() {
                Some(session) => Ok(session),
                None => {
                    let began = Instant::now();
                    let session = seat.upstream.session(left).await;
                    left = left.saturating_sub(began.elapsed());
                    session
                }
            };
            // The withdrawal is checked again now that the session is known: the session's verdict was
            // stored before the session was handed out, and may have withdrawn the tool.
            let withdrawn = self.verdicts.view.load().withdrawn(at).cloned();
            // A source that took over meanwhile was in its place before its verdict was in the view: a
            // process that left it was not judged by that view, if it was judged at all.
            if !Arc::ptr_eq(&place.load(), &seat) {
                continue;
            }
            if let Some(withdrawn) = withdrawn {
                let path = self.catalog.entry(tool.entry).path;
                return Err(out_of_service(path, tool, &withdrawn));
            }
            return Ok(match session {
                Ok(session) => session.call(tool.name, args, left).await,
                Err(failure) => Err(failure),
            });
        }
    }

    /// The tool at `path`, and why it is out of service where it is.
    fn tool_at(
        &self,
        identity: &Identity,
        path: &str,
    ) -> Result<(u32, Option<Arc<Withdrawn>>), Box<CoreError>> {
        let view = self.verdicts.view.load();
        let at = lookup::resolve(self.catalog, &view, identity, path)?;
        let entry = self.catalog.entry(at);
        match entry.kind {
            Kind::Node { .. } => Err(lookup::is_node(entry.path)),
            Kind::Tool(tool) => Ok((tool, view.withdrawn(tool).cloned())),
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(std::sync::atomic::Ordering::Acquire)
    }

    fn failed(
        &self,
        failure: CallFailure,
        time: Duration,
        path: &str,
        source: &str,
    ) -> Box<CoreError> {
        let closing = self.is_closing();
        match failure {
            // It ended because we end it: that, and not how it died, is what the caller can use.
            CallFailure::Exited { maybe_executed, .. } if closing => {
                let error = failure::shutting_down().maybe_executed(maybe_executed);
                let retryable = !maybe_executed;
                Box::new(CoreError { retryable, ..error }.path(path))
            }
            // Of a call that waited for its source, the whole time is said.
            CallFailure::Timeout { maybe_executed, .. } => {
                let failure = CallFailure::Timeout {
                    after: time,
                    maybe_executed,
                };
                failure::from_call(failure, path, source)
            }
            failure => failure::from_call(failure, path, source),
        }
    }
}

fn starting(path: &str, source: &str) -> CoreError {
    CoreError::new(
        CallCode::Starting,
        format!("`{source}` is not yet admitted: sources are being compared with the lock"),
    )
    .path(path)
    .retry_after(SHORT_WAIT)
    .maybe_executed(false)
}

fn out_of_service(path: &str, tool: &Tool, withdrawn: &Withdrawn) -> Box<CoreError> {
    let details = serde_json::json!({
        "class": withdrawn.class.as_str(),
        "rules": withdrawn.rules,
        "expected": tool.digest,
        "found": withdrawn.found,
        "since": withdrawn.since,
    });
    let message = format!("`{path}` is withdrawn: {}", withdrawn.reason.told);
    let error = CoreError::new(CallCode::ToolWithdrawn, message).path(path);
    Box::new(error.details(details).maybe_executed(false))
}

/// Results of more bytes are cut and looked through elsewhere: other calls must not wait for it.
const LONG: usize = 256 << 10;
/// Bytes around a result in a reply, path and warnings included.
const AROUND_RESULT: usize = 1 << 10;

/// How a result is to be shown.
#[derive(Clone, Copy, Default)]
struct Form {
    mode: RenderMode,
    /// Characters of the whole reply.
    limit: Option<usize>,
    /// Whether the reply is not a surface's to write, and so not the budget's any more.
    is_given_away: bool,
}

impl Form {
    /// The most memory that making the reply takes beside the result itself.
    fn working_bytes(self, result: usize) -> usize {
        let copies = match (self.limit, self.mode) {
            // The memory that cutting takes; a test asserts it.
            (Some(_), _) => 4,
            (None, RenderMode::Json) => 1,
            (None, _) => 3,
        };
        copies * result + AROUND_RESULT
    }
}

impl Inner {
    /// [`wrap`], on a thread of its own where it takes long.
    async fn shaped(
        &self,
        path: &'static str,
        answer: RawResult,
        form: Form,
        account: &Account,
    ) -> Result<Reply, Box<CoreError>> {
        let result = &answer.result;
        if result.len() <= LONG || (form.limit.is_none() && !flags::may_hide(result)) {
            return wrap(path, &answer, form, account);
        }
        let account = account.clone();
        let shape = move || wrap(path, &answer, form, &account);
        self.shaping.run_bounded(shape).await
    }
}

/// Said of a result whose text had to be repaired.
const REPAIRED: &str =
    "the server sent text that is not UTF-8; what could not be read was replaced";

/// `{"path":…,"result":…}` around the server's own bytes, in the tool's form and within its limit.
/// Paths need no escapes.
fn wrap(
    path: &str,
    answer: &RawResult,
    form: Form,
    account: &Account,
) -> Result<Reply, Box<CoreError>> {
    let result = &answer.result[..];
    let mut charge = Charge::default();
    charge
        .cover(account, form.working_bytes(result.len()))
        .map_err(|no_room| Box::new(failure::no_room_for_result(no_room).path(path)))?;
    let first = result.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        let error = CoreError::new(CallCode::SourceProtocol, "the server's result is no object");
        return Err(Box::new(error.path(path).maybe_executed(true)));
    }
    let warnings = warnings(answer.repaired, flags::unseen(result));
    let result = shape(form.mode, result);
    let cut = form
        .limit
        .and_then(|limit| cut(path, &result, &warnings, limit));
    let body = cut.unwrap_or_else(|| {
        let parts = [
            b"{\"path\":\"",
            path.as_bytes(),
            b"\",\"result\":",
            &*result,
            warnings.as_bytes(),
            b"}",
        ];
        parts.concat()
    });
    let is_charged = body.len() > UNCHARGED_BYTES && !form.is_given_away;
    charge.shrink(if is_charged { body.len() } else { 0 });
    Ok(Reply {
        body: charge.hold(body),
        etag: None,
    })
}

/// `,"warnings":[…]`, or nothing. The texts are ours, and need no escapes.
fn warnings(repaired: bool, unseen: Option<String>) -> String {
    let repaired = repaired.then(|| REPAIRED.to_owned());
    let all: Vec<_> = repaired
        .into_iter()
        .chain(unseen)
        .map(|text| format!("\"{text}\""))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    format!(",\"warnings\":[{}]", all.join(","))
}

/// The one log line of a call, written when the call ends, even when its caller went away. Costs a
/// look at the level where nobody listens. Never holds arguments.
struct CallLine<'a> {
    started: Option<Instant>,
    path: &'a str,
    request_id: &'a str,
    source: &'static str,
    digest: &'static str,
    outcome: &'static str,
}

impl<'a> CallLine<'a> {
    fn new(call: &Call<'a>) -> Self {
        Self {
            started: tracing::enabled!(Level::DEBUG).then(Instant::now),
            path: call.path,
            request_id: call.request_id,
            source: "",
            digest: "",
            outcome: "cancelled",
        }
    }
}

impl Drop for CallLine<'_> {
    fn drop(&mut self) {
        if let Some(started) = self.started {
            tracing::debug!(
                path = broker_model::text::shown_line(self.path, 512),
                source = self.source,
                digest = self.digest,
                outcome = self.outcome,
                ms = tenths(started.elapsed()),
                request_id = self.request_id,
                "call"
            );
        }
    }
}

/// Milliseconds to a tenth: more digits say nothing.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_mcp::MemoryBudget;
    use bytes::Bytes;

    #[test]
    fn times_are_logged_to_a_tenth_of_a_millisecond() {
        for (micros, text) in [
            (1_001_634, "1001.6"),
            (49, "0.0"),
            (50, "0.1"),
            (2_000, "2.0"),
        ] {
            assert_eq!(format!("{:?}", tenths(Duration::from_micros(micros))), text);
        }
    }

    #[test]
    fn a_result_is_wrapped_byte_for_byte() {
        let account = MemoryBudget::new(1 << 20).account();
        let wrapped = |answer: &RawResult| wrap("/a/t", answer, Form::default(), &account);
        let raw = b" {\"content\": [], \"n\":1.00,\"n\":2}";
        let answer = |result: &'static [u8], repaired| RawResult {
            result: Bytes::from_static(result),
            repaired,
        };
        let reply = wrapped(&answer(raw, false)).unwrap();
        assert_eq!(
            &reply.body[..],
            b"{\"path\":\"/a/t\",\"result\": {\"content\": [], \"n\":1.00,\"n\":2}}"
        );
        let repaired = wrapped(&answer(b"{}", true)).unwrap();
        let repaired: serde_json::Value = serde_json::from_slice(&repaired.body).unwrap();
        assert_eq!(repaired["result"], serde_json::json!({}));
        assert_eq!(repaired["warnings"].as_array().unwrap().len(), 1);
        for bad in [&b"[]"[..], b"", b"  ", b"null"] {
            assert_eq!(
                wrapped(&answer(bad, false)).unwrap_err().code,
                CallCode::SourceProtocol
            );
        }
    }
}
