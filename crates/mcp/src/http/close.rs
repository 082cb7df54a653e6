//! The end of a link: what becomes of requests that are under way, and of the session at the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use broker_model::SourceCause;
use http::header::HeaderMap;
use http::{Method, StatusCode};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::auth::Challenge;
use super::{HttpLink, LinkState};
use crate::failure::{RequestError, SourceFailure};

/// Maximum time for requests that are under way when their link ends to get their answers, unless the broker ends it.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(5);

impl HttpLink {
    /// Ends the link. If the broker ends it, pending requests fail with `reason`, and the session has ended at the
    /// server when this returns. Otherwise the server may still answer them; a task ends the session after that.
    pub(crate) async fn close(&self, reason: SourceFailure) {
        let state = &self.0;
        state.finish(reason);
        state.is_closed.store(true, Ordering::Relaxed);
        if state.has_ended_by(SourceCause::Stopped) {
            return state.delete_session().await;
        }
        let state = state.clone();
        self.0.tasks.spawn(async move {
            state.last_answers().await;
            state.delete_session().await;
        });
    }
}

impl Drop for HttpLink {
    /// Ends the session, also for a start that is dropped while it is under way.
    fn drop(&mut self) {
        let message = "the connection was dropped";
        self.0
            .finish(SourceFailure::new(SourceCause::Stopped, message));
        if !self.0.is_closed.load(Ordering::Relaxed) && Handle::try_current().is_ok() {
            let state = self.0.clone();
            self.0
                .tasks
                .spawn(async move { state.delete_session().await });
        }
    }
}

impl LinkState {
    /// Ends the link because the server refused the credentials, and waits for the end. Only the first refusal asks
    /// the server for its issuer, and a request that is cancelled meanwhile does not stop that.
    pub(super) async fn credentials_refused(
        self: &Arc<Self>,
        status: StatusCode,
        challenge: Challenge,
    ) {
        if !self.is_refused.swap(true, Ordering::Relaxed) {
            let state = self.clone();
            self.tasks.spawn(async move {
                let refusal = state.client.refusal(status, &challenge);
                if let Some(failure) = state.ended.run_until_cancelled(refusal).await {
                    state.finish(failure);
                }
            });
        }
        self.ended.cancelled().await;
    }

    /// Ends the link for a reason, unless it has ended. The next session respects a pause as well.
    pub(super) fn finish(&self, mut reason: SourceFailure) {
        reason.retry_after = reason.retry_after.or_else(|| self.pause.rest());
        self.end.send_if_modified(|end| {
            let is_first = end.is_none();
            if is_first {
                *end = Some(reason);
            }
            is_first
        });
        self.ended.cancel();
    }

    /// Ends the link because the server does not know its session any more.
    pub(super) fn session_ended(&self, status: StatusCode) {
        let status = status.as_u16();
        let message = format!("the server ended the session (HTTP status {status})");
        self.finish(SourceFailure::new(SourceCause::SessionEnded, message));
    }

    /// Ends the link because an error of the server says that it does not know the session.
    pub(super) fn session_lost(&self) {
        let message = "an error of the server says that it does not know the session";
        self.finish(SourceFailure::new(SourceCause::SessionEnded, message));
    }

    /// Returns when requests under way are to end without an answer. If the server ended the session, or failed other
    /// requests, it may still answer these: each of them then reports its own outcome.
    pub(super) async fn abandoned(&self) {
        self.ended.cancelled().await;
        if !self.has_ended_by(SourceCause::Stopped) {
            sleep(LAST_ANSWERS_TIMEOUT).await;
        }
    }

    /// Returns when no call is under way, at the latest when calls end without an answer.
    async fn last_answers(&self) {
        if timeout(LAST_ANSWERS_TIMEOUT, self.turns.are_over())
            .await
            .is_err()
        {
            tracing::debug!(source = %self.source, "calls were under way until their session ended");
        }
    }

    fn has_ended_by(&self, cause: SourceCause) -> bool {
        self.end
            .borrow()
            .as_ref()
            .is_some_and(|end| end.cause == cause)
    }

    /// Ends a session that the server has not ended, unless it asked for a pause. Servers may answer 404 or 405.
    async fn delete_session(&self) {
        let is_over = self.has_ended_by(SourceCause::SessionEnded);
        if self.session.get().is_none() || is_over || self.pause.rest().is_some() {
            return;
        }
        let mut headers = HeaderMap::new();
        self.add_session(&mut headers);
        let deleted = self.client.send(&Method::DELETE, &headers, None);
        match self
            .stop_deadline
            .clone()
            .bound(self.close_grace, 1, deleted)
            .await
        {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(source = %self.source, reason = %error.failure, "the session was not ended");
            }
            None => {
                tracing::debug!(source = %self.source, "the server did not end its session in time");
            }
        }
    }

    /// Returns the error of a request when the link has ended.
    pub(super) fn gone(&self, begun: bool) -> RequestError {
        let failure = self.end.borrow().clone().unwrap_or_else(|| {
            SourceFailure::new(SourceCause::Stopped, "the connection was dropped")
        });
        RequestError::Gone { failure, begun }
    }
}
