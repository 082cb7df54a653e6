//! Opens a session: starts a server's process and makes the handshake. If a step fails, no process is
//! left.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use broker_model::SourceCause;
use broker_wire::Era;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::Session;
use crate::failure::SourceFailure;
use crate::handshake::{self, HandshakeError, Negotiated, ProbeRefusal};
use crate::link::Link;
use crate::list::UndeclaredLists;
use crate::spec::{Endpoint, SourceSpec};
use crate::status::Counters;
use crate::subscription::Subscriber;
use crate::{request, startup};
use broker_process::{StderrTail, StopDeadline};

/// The parameters that a supervisor adds to the start of a session.
pub(crate) struct Opening<'a> {
    pub(crate) tail: &'a StderrTail,
    pub(crate) counters: &'a Arc<Counters>,
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) stop_deadline: &'a StopDeadline,
    /// Whether a second process may be started for the other era when the first one dies.
    pub(crate) second_process: bool,
}

impl Session {
    /// Starts the process and negotiates an era; `era` is tried first.
    pub async fn open(spec: &SourceSpec, era: Option<Era>) -> Result<Self, SourceFailure> {
        let tail = StderrTail::new(spec.redactor.clone());
        let opening = Opening {
            tail: &tail,
            counters: &Arc::default(),
            tasks: &TaskTracker::new(),
            stop_deadline: &StopDeadline::never(),
            second_process: true,
        };
        Self::open_supervised(spec, era, &opening).await
    }

    pub(crate) async fn open_supervised(
        spec: &SourceSpec,
        era: Option<Era>,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let first = era.unwrap_or(Era::Modern);
        let result = match Self::attempt(spec, first, true, opening).await {
            Err(HandshakeError::Died(failure)) if opening.second_process => {
                tracing::debug!(source = %spec.source.as_str(), %failure, "the server ended at the first request; trying the other era in a new process");
                Self::attempt(spec, first.other(), false, opening).await
            }
            result => result,
        };
        result.map_err(|disagreement| match disagreement {
            HandshakeError::Died(failure) | HandshakeError::Refused(failure) => {
                startup::explain(failure, spec, opening.tail, opening.counters.first_noise())
            }
        })
    }

    /// Opens a session with one process. If a step fails, the process is stopped before this returns.
    async fn attempt(
        spec: &SourceSpec,
        first: Era,
        both: bool,
        opening: &Opening<'_>,
    ) -> Result<Self, HandshakeError> {
        opening.tail.clear();
        let link = Link::open(spec, opening)
            .await
            .map_err(HandshakeError::Refused)?;
        let refused = match Self::handshake(link, spec, first, both, opening).await {
            Err(HandshakeError::Refused(refused)) => refused,
            outcome => return outcome,
        };
        // A server that does not support streamable HTTP refuses its requests with one of these.
        let Endpoint::Http(http) = &spec.endpoint else {
            return Err(HandshakeError::Refused(refused));
        };
        if !matches!(refused.http_status, Some(400 | 404 | 405)) {
            return Err(HandshakeError::Refused(refused));
        }
        let link = Link::open_events(http, spec, opening).await;
        let link = link.map_err(|failure| match failure.cause {
            // The first answer says more than the lack of a stream.
            SourceCause::HandshakeFailed => HandshakeError::Refused(SourceFailure {
                message: format!("{}; {}", refused.message, failure.message),
                ..failure
            }),
            _ => HandshakeError::Refused(failure),
        })?;
        Self::handshake(link, spec, Era::Legacy, false, opening).await
    }

    /// Negotiates an era over a link. If that fails, the link is closed before this returns.
    async fn handshake(
        link: Link,
        spec: &SourceSpec,
        first: Era,
        both: bool,
        opening: &Opening<'_>,
    ) -> Result<Self, HandshakeError> {
        // A server that answers only the request of the other era needs time for it too.
        let probe = spec.timing.probe.min(spec.startup_timeout / 2);
        let redactor = &spec.redactor;
        let refusal = ProbeRefusal::default();
        let negotiated = tokio::select! {
            biased;
            negotiated = handshake::negotiate(&link, first, both, probe, redactor, &refusal) => negotiated,
            failure = startup::expired(spec.startup_timeout, opening.tail) => {
                Err(HandshakeError::Refused(startup::name_stop(failure, link.pid())))
            }
        };
        match negotiated {
            Ok(negotiated) => Ok(Self::new(link, negotiated, spec, opening.tail)),
            Err(disagreement) => {
                let disagreement = disagreement.map(|failure| refusal.explain(failure));
                let (HandshakeError::Died(reason) | HandshakeError::Refused(reason)) =
                    &disagreement;
                link.close(reason.clone()).await;
                Err(disagreement)
            }
        }
    }

    fn new(link: Link, negotiated: Negotiated, spec: &SourceSpec, tail: &StderrTail) -> Self {
        let meta = match negotiated.era {
            Era::Modern => request::modern_meta(),
            Era::Legacy => String::new(),
        };
        // Before the first listing: a change between the two must not be missed.
        let subscribed =
            if negotiated.era == Era::Modern && announces_changes(&negotiated.capabilities) {
                Subscriber::open(&link, spec.lists, &meta)
            } else {
                Subscriber::default()
            };
        Self {
            link,
            negotiated,
            meta,
            subscribed,
            tail: tail.clone(),
            spec: spec.clone(),
            log_level: Mutex::new(None),
            undeclared: UndeclaredLists::default(),
            calls_begun: AtomicU64::new(0),
            handles: AtomicUsize::new(0),
        }
    }
}

fn announces_changes(capabilities: &Value) -> bool {
    capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true))
}
