//! One call from admission to result: nothing is sent before every check has passed, and the result
//! is not looked into.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use broker_mcp::CallFailure;
use broker_model::CallCode;
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::time::Instant;
use tracing::Level;

use super::error::CoreError;
use super::failure::{self, SHORT_WAIT};
use super::identity::Identity;
use super::upstream::Link;
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
        let at = self.callable(identity, call.path)?;
        let tool = self.catalog.tool(at);
        let path = self.catalog.entry(tool.entry).path;
        let source = self.catalog.sources[tool.source as usize].path;
        (line.source, line.digest) = (source, tool.digest);
        if !self.verdicts.gate.admits(tool.source as usize) {
            return Err(Box::new(starting(path, source)));
        }
        let Some(upstreams) = self.upstreams.get() else {
            return Err(Box::new(starting(path, source)));
        };
        let slot = &self.tools[at as usize];
        slot.validator.check(self.catalog, tool, call.args_value)?;
        let link = &upstreams[tool.source as usize];
        let answer = link.upstream.call(tool.name, call.args, slot.timeout);
        let answer = if link.is_ready() {
            answer.await
        } else {
            self.when_up(link, at, answer).await?
        };
        match answer {
            Ok(result) => wrap(path, &result),
            Err(failure) => Err(self.failed(failure, path, source)),
        }
    }

    /// Awaits a call of a source that is not up. It waits inside for a start, and the start's verdict
    /// may withdraw the tool: until the source was seen up, the view is looked at before every step
    /// that could send the call.
    async fn when_up(
        &self,
        link: &Link,
        at: u32,
        answer: impl Future<Output = Result<Bytes, CallFailure>>,
    ) -> Result<Result<Bytes, CallFailure>, Box<CoreError>> {
        let mut answer = pin!(answer);
        let mut seen_up = false;
        poll_fn(|cx| {
            if !seen_up {
                // The state before the view: a source is up only after its verdict was taken in.
                seen_up = link.is_ready();
                if let Some(withdrawn) = self.verdicts.view.load().withdrawn(at) {
                    let tool = self.catalog.tool(at);
                    let path = self.catalog.entry(tool.entry).path;
                    return Poll::Ready(Err(out_of_service(path, tool, withdrawn)));
                }
            }
            answer.as_mut().poll(cx).map(Ok)
        })
        .await
    }

    /// The place of the tool at `path`, if it may be called at all.
    fn callable(&self, identity: &Identity, path: &str) -> Result<u32, Box<CoreError>> {
        let view = self.verdicts.view.load();
        let at = lookup::resolve(self.catalog, &view, identity, path)?;
        let entry = self.catalog.entry(at);
        match entry.kind {
            Kind::Node { .. } => Err(lookup::is_node(entry.path)),
            Kind::Tool(tool) => match view.withdrawn(tool) {
                Some(withdrawn) => Err(out_of_service(
                    entry.path,
                    self.catalog.tool(tool),
                    withdrawn,
                )),
                None => Ok(tool),
            },
        }
    }

    fn failed(&self, failure: CallFailure, path: &str, source: &str) -> Box<CoreError> {
        let closing = self.closing.load(std::sync::atomic::Ordering::Acquire);
        match failure {
            // It ended because we end it: that, and not how it died, is what the caller can use.
            CallFailure::Exited { maybe_executed, .. } if closing => {
                let error = failure::shutting_down().maybe_executed(maybe_executed);
                let retryable = !maybe_executed;
                Box::new(CoreError { retryable, ..error }.path(path))
            }
            failure => failure::from_call(failure, path, source),
        }
    }
}

fn starting(path: &str, source: &str) -> CoreError {
    CoreError::new(
        CallCode::Starting,
        format!("`{source}` is not yet admitted: sources are being held against the lock"),
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
    let message = format!("`{path}` is withdrawn: {}", withdrawn.message);
    let error = CoreError::new(CallCode::ToolWithdrawn, message).path(path);
    Box::new(error.details(details).maybe_executed(false))
}

/// `{"path":…,"result":…}` around the server's own bytes. Paths need no escapes.
fn wrap(path: &str, result: &[u8]) -> Result<Reply, Box<CoreError>> {
    let first = result.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        let error = CoreError::new(CallCode::SourceProtocol, "the server's result is no object");
        return Err(Box::new(error.path(path).maybe_executed(true)));
    }
    const PARTS: [&[u8]; 3] = [b"{\"path\":\"", b"\",\"result\":", b"}"];
    let length = PARTS.iter().map(|part| part.len()).sum::<usize>() + path.len() + result.len();
    let mut body = BytesMut::with_capacity(length);
    body.put_slice(PARTS[0]);
    body.put_slice(path.as_bytes());
    body.put_slice(PARTS[1]);
    body.put_slice(result);
    body.put_slice(PARTS[2]);
    Ok(Reply {
        body: Bytes::from(body),
        etag: None,
    })
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
                ms = started.elapsed().as_secs_f64() * 1000.0,
                request_id = self.request_id,
                "call"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_wrapped_byte_for_byte() {
        let raw = b" {\"content\": [], \"n\":1.00,\"n\":2}";
        let reply = wrap("/a/t", raw).unwrap();
        assert_eq!(
            &reply.body[..],
            b"{\"path\":\"/a/t\",\"result\": {\"content\": [], \"n\":1.00,\"n\":2}}"
        );
        for bad in [&b"[]"[..], b"", b"  ", b"null"] {
            assert_eq!(
                wrap("/a/t", bad).unwrap_err().code,
                CallCode::SourceProtocol
            );
        }
    }
}
