//! Opens a session: starts a server's process and makes the handshake. If a step fails, no process is left. A start
//! that fails in a way that may pass is tried once more.

use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use broker_model::SourceCause;
use broker_model::extension::Extension;
use broker_wire::Era;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use super::Session;
use crate::era_hint::EraHint;
use crate::failure::SourceFailure;
use crate::handshake::{self, EraChoice, HandshakeError, ProbeRefusal};
use crate::http::{HttpSpec, MCP_PATH};
use crate::link::Link;
use crate::list::UndeclaredLists;
use crate::opening::{Negotiated, Opening};
use crate::spec::{Endpoint, SourceSpec};
use crate::subscription::Subscriber;
use crate::tasks::TaskSupport;
use crate::{request, startup};
use broker_process::{StderrTail, StopDeadline};

impl Session {
    /// Starts the process and negotiates an era.
    pub async fn open(spec: &SourceSpec, era: impl Into<EraHint>) -> Result<Self, SourceFailure> {
        let tail = StderrTail::new(spec.redactor.clone());
        let opening = Opening {
            tail: &tail,
            counters: &Arc::default(),
            tasks: &TaskTracker::new(),
            stop_deadline: &StopDeadline::never(),
            second_try: true,
        };
        Self::open_supervised(spec, era.into(), &opening).await
    }

    pub(crate) async fn open_supervised(
        spec: &SourceSpec,
        hint: EraHint,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let began = Instant::now();
        let choice = EraChoice { hint, both: true };
        let opened = match Self::attempt(spec, choice, began, opening).await {
            Ok(session) => return Ok(session),
            Err(error) if !opening.second_try => Err(error.into_failure()),
            Err(HandshakeError::Died(mut failure)) => {
                // The second process replaces the last lines of the first.
                startup::explain_exit(&mut failure, opening.tail);
                match hint.known {
                    Some(known) => {
                        Self::try_again(spec, hint, known, began, failure, opening).await
                    }
                    None => Self::try_other(spec, hint.first.other(), failure, opening).await,
                }
            }
            Err(HandshakeError::Transient(failure)) => match hint.known {
                Some(known) => Self::try_again(spec, hint, known, began, failure, opening).await,
                None => Err(failure),
            },
            Err(HandshakeError::Refused(failure)) => Err(failure),
        };
        opened.map_err(|failure| {
            startup::explain(failure, spec, opening.tail, opening.counters.first_noise())
        })
    }

    /// Starts once more in the known era of the source, after the pause that the server asks for. All of it is within
    /// the time of one start. If the source may have another era since, a start in that one follows.
    async fn try_again(
        spec: &SourceSpec,
        hint: EraHint,
        known: Era,
        began: Instant,
        first: SourceFailure,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let pause = startup::pause_before_second(&first, spec, began)?;
        tracing::debug!(source = %spec.source.as_str(), failure = %first, ?pause, "the start failed in the known era; trying it once more");
        sleep(pause).await;
        let choice = EraChoice {
            hint: EraHint::known(known),
            both: true,
        };
        let error = match Self::attempt(spec, choice, began, opening).await {
            Ok(session) => return Ok(session),
            Err(error) => error,
        };
        let is_of_era = match &error {
            HandshakeError::Died(_) | HandshakeError::Transient(_) => hint.first == known,
            HandshakeError::Refused(_) => false,
        };
        let mut second = error.into_failure();
        startup::explain_exit(&mut second, opening.tail);
        let failure = startup::name_first(second, first);
        if !(hint.may_have_changed && is_of_era) {
            return Err(failure);
        }
        tracing::debug!(source = %spec.source.as_str(), failure = %failure, "the start failed twice in the known era; trying the other era in a new process");
        let choice = EraChoice {
            hint: EraHint::likely(known.other()),
            both: false,
        };
        let third = Self::attempt(spec, choice, Instant::now(), opening).await;
        // No era has an answer, so the era is not the reason.
        third.map_err(|_| failure)
    }

    /// Starts a new process for the other era, after one that ended at the request of the first era.
    async fn try_other(
        spec: &SourceSpec,
        other: Era,
        first: SourceFailure,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        tracing::debug!(source = %spec.source.as_str(), failure = %first, "the server ended at the first request; trying the other era in a new process");
        let choice = EraChoice {
            hint: EraHint::likely(other),
            both: false,
        };
        match Self::attempt(spec, choice, Instant::now(), opening).await {
            Ok(session) => Ok(session),
            // No era has an answer, so the era is not the reason.
            Err(HandshakeError::Died(_)) => Err(first),
            Err(error) => Err(startup::name_first(error.into_failure(), first)),
        }
    }

    /// Opens a session with one process. If a step fails, the process is stopped before this returns.
    async fn attempt(
        spec: &SourceSpec,
        choice: EraChoice,
        began: Instant,
        opening: &Opening<'_>,
    ) -> Result<Self, HandshakeError> {
        opening.tail.clear();
        let link = Link::open(spec, opening)
            .await
            .map_err(HandshakeError::Refused)?;
        let refusal = ProbeRefusal::default();
        let attempted = Self::handshake(link, spec, choice, began, opening, &refusal).await;
        let refused = match attempted {
            Err(HandshakeError::Refused(refused)) => refused,
            outcome => return outcome,
        };
        // A server that does not support streamable HTTP refuses its requests with one of these.
        let Endpoint::Http(http) = &spec.endpoint else {
            return Err(HandshakeError::Refused(refused));
        };
        let status = refused.http_status.map(NonZeroU16::get);
        if !matches!(status, Some(400 | 404 | 405)) {
            return Err(HandshakeError::Refused(refused));
        }
        let link = match Link::open_events(http, spec, opening).await {
            Ok(link) => link,
            Err(failure) if failure.cause == SourceCause::HandshakeFailed => {
                // The first answer says more than the lack of a stream.
                let failure = SourceFailure {
                    message: format!("{}; {}", refused.message, failure.message),
                    ..failure
                };
                let other = http.at_mcp_path();
                return match other.filter(|_| refusal.is_of_missing(&refused)) {
                    Some(other) => {
                        Self::attempt_at_mcp_path(other, spec, choice, began, failure, opening)
                            .await
                    }
                    None => Err(HandshakeError::Refused(failure)),
                };
            }
            Err(failure) => return Err(HandshakeError::Refused(failure)),
        };
        let legacy = EraHint {
            first: Era::Legacy,
            ..choice.hint
        };
        let choice = EraChoice {
            hint: legacy,
            both: false,
        };
        let refusal = ProbeRefusal::default();
        Self::handshake(link, spec, choice, began, opening, &refusal).await
    }

    /// Opens a session at [`MCP_PATH`], after the attempt that failed with `before` found no endpoint at the server's URL without a
    /// path.
    async fn attempt_at_mcp_path(
        http: HttpSpec,
        spec: &SourceSpec,
        choice: EraChoice,
        began: Instant,
        before: SourceFailure,
        opening: &Opening<'_>,
    ) -> Result<Self, HandshakeError> {
        let spec = SourceSpec {
            endpoint: Endpoint::Http(Box::new(http)),
            ..spec.clone()
        };
        let link = Link::open(&spec, opening)
            .await
            .map_err(HandshakeError::Refused)?;
        let refusal = ProbeRefusal::default();
        match Self::handshake(link, &spec, choice, began, opening, &refusal).await {
            Ok(mut session) => {
                session.url_path = Some(MCP_PATH);
                Ok(session)
            }
            Err(error) if refusal.is_of_missing(error.failure()) => {
                Err(HandshakeError::Refused(SourceFailure {
                    message: format!("{}; nothing answers at `{MCP_PATH}` either", before.message),
                    ..before
                }))
            }
            Err(error) => Err(error.map(|failure| SourceFailure {
                message: format!("at `{MCP_PATH}`: {}", failure.message),
                ..failure
            })),
        }
    }

    /// Negotiates an era over a link, within the time of a start that `began` then. If that fails, the link is closed
    /// before this returns. `refusal` gets the refusal of the first era.
    async fn handshake(
        link: Link,
        spec: &SourceSpec,
        choice: EraChoice,
        began: Instant,
        opening: &Opening<'_>,
        refusal: &ProbeRefusal,
    ) -> Result<Self, HandshakeError> {
        let negotiated = tokio::select! {
            biased;
            negotiated = handshake::negotiate(&link, choice, spec, refusal) => negotiated,
            failure = startup::expired(began, spec.startup_timeout, opening.tail) => {
                Err(HandshakeError::Refused(startup::name_stop(failure, link.pid())))
            }
        };
        match negotiated {
            Ok(negotiated) => Ok(Self::new(link, negotiated, spec, opening.tail)),
            Err(disagreement) => {
                let disagreement = disagreement.map(|failure| refusal.explain(failure));
                link.close(disagreement.failure().clone()).await;
                Err(disagreement)
            }
        }
    }

    fn new(link: Link, negotiated: Negotiated, spec: &SourceSpec, tail: &StderrTail) -> Self {
        let meta = match negotiated.era {
            Era::Modern => request::modern_meta(&spec.extensions),
            Era::Legacy => String::new(),
        };
        // Before the first listing: a change between the two must not be missed.
        let subscribed =
            if negotiated.era == Era::Modern && announces_changes(&negotiated.capabilities) {
                Subscriber::open(&link, spec.lists, &meta)
            } else {
                Subscriber::default()
            };
        let tasks = spec.extensions.has(Extension::Tasks);
        let tasks = tasks.then(|| Box::new(TaskSupport::new(&negotiated)));
        Self {
            link,
            negotiated,
            meta,
            tasks,
            subscribed,
            tail: tail.clone(),
            spec: spec.clone(),
            url_path: None,
            log_level: Mutex::new(None),
            undeclared: UndeclaredLists::default(),
            calls_begun: AtomicU64::new(0),
            handles: AtomicUsize::new(0),
            timeouts: Mutex::default(),
            timed_out: Notify::new(),
        }
    }
}

fn announces_changes(capabilities: &Value) -> bool {
    capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true))
}
