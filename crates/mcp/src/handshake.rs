//! The handshake: negotiates an era with a server. It sends the opening request of the likelier era, and the opening
//! request of the other era too if no answer comes in time. The first conclusive answer decides.
//!
//! A gateway may refuse a method that it does not know with 401, 403 or a 5xx status. So such a status is not a verdict
//! if `server/discover` alone got it: `initialize` is tried before the start fails. If the era of the source is known,
//! 429, a 5xx status and a connection that broke off are failures that may pass, and no reason to ask for the other era.

#[cfg(test)]
mod prefix_tests;
mod refusal;
#[cfg(test)]
mod tests;

use std::num::NonZeroU16;
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::json::estimate;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use broker_wire::Era;
use broker_wire::protocol::{
    HEADER_MISMATCH, META_SERVER_INFO, MISSING_CAPABILITY, MODERN, UNSUPPORTED_VERSION,
    legacy_revision,
};
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::connection::{RawResult, RequestKind};
use crate::era_hint::EraHint;
use crate::failure::{HttpRefusal, RequestError, SourceFailure};
use crate::link::Link;
use crate::opening::Negotiated;
use crate::request;
use crate::spec::SourceSpec;
pub(crate) use refusal::ProbeRefusal;

/// Why a handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The process ended; another one may work.
    Died(SourceFailure),
    /// A server over HTTP failed in its known era in a way that may pass.
    Transient(SourceFailure),
    /// The server cannot be used.
    Refused(SourceFailure),
}

impl HandshakeError {
    /// Returns the same kind with another failure.
    pub(crate) fn map(self, change: impl FnOnce(SourceFailure) -> SourceFailure) -> Self {
        match self {
            Self::Died(failure) => Self::Died(change(failure)),
            Self::Transient(failure) => Self::Transient(change(failure)),
            Self::Refused(failure) => Self::Refused(change(failure)),
        }
    }

    /// Returns the failure, of any kind.
    pub(crate) const fn failure(&self) -> &SourceFailure {
        match self {
            Self::Died(failure) | Self::Transient(failure) | Self::Refused(failure) => failure,
        }
    }

    /// Returns the failure, of any kind.
    pub(crate) fn into_failure(self) -> SourceFailure {
        match self {
            Self::Died(failure) | Self::Transient(failure) | Self::Refused(failure) => failure,
        }
    }
}

/// The outcome of one opening request.
#[derive(Debug)]
enum ProbeOutcome {
    Negotiated(Box<Negotiated>),
    /// The server does not support this era, so the other one is tried.
    Other(SourceFailure),
    /// The server supports the revision that it refused.
    Repeat(SourceFailure),
    Died(SourceFailure),
    /// The server has this era, and may answer in it later.
    Transient(SourceFailure),
    Refused(SourceFailure),
}

/// Returns the request that opens an era.
const fn opening_method(era: Era) -> &'static str {
    match era {
        Era::Modern => request::DISCOVER,
        Era::Legacy => request::INITIALIZE,
    }
}

/// The eras that a handshake may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EraChoice {
    pub(crate) hint: EraHint,
    /// Whether it may ask for the era that is not the first one, too.
    pub(crate) both: bool,
}

/// Tries the first era, and also the other one if the choice has both. Has no timeout; the caller limits the time.
/// `refusal` gets the refusal of the first era.
pub(crate) async fn negotiate(
    link: &Link,
    choice: EraChoice,
    spec: &SourceSpec,
    refusal: &ProbeRefusal,
) -> Result<Negotiated, HandshakeError> {
    let EraChoice { hint, both } = choice;
    // A server that answers only the request of the other era needs time for it too.
    let probe = spec.timing.probe.min(spec.startup_timeout / 2);
    let first = hint.first;
    let ask = |era| ask(link, era, hint.known, spec);
    let mut asked = Box::pin(ask(first));
    let early = if both {
        tokio::select! {
            biased;
            answer = &mut asked => Some(answer),
            () = sleep(probe) => None,
        }
    } else {
        Some(asked.as_mut().await)
    };
    let other = first.other();
    let answer = match early {
        Some(ProbeOutcome::Other(failure)) if both => {
            refusal.keep(first, &failure);
            let second = ask(other).await;
            match (second, link.has_new_token()) {
                // The first request had a token that is no longer valid, so its refusal does not reveal the era.
                (ProbeOutcome::Other(_), true) => ask(first).await,
                (second, _) => refusal.then(second),
            }
        }
        Some(answer) => answer,
        None => {
            let mut beside = Box::pin(ask(other));
            tokio::select! {
                biased;
                answer = &mut asked => match answer {
                    ProbeOutcome::Other(failure) => {
                        refusal.keep(first, &failure);
                        refusal.then(beside.await)
                    }
                    answer => answer,
                },
                answer = &mut beside => match answer {
                    ProbeOutcome::Other(failure) => {
                        refusal.keep(other, &failure);
                        asked.await
                    }
                    answer => answer,
                },
            }
        }
    };
    match answer {
        ProbeOutcome::Negotiated(negotiated) => {
            link.negotiated(&negotiated);
            if negotiated.era == Era::Legacy {
                link.notify(request::INITIALIZED, request::initialized())
                    .await;
            }
            Ok(*negotiated)
        }
        ProbeOutcome::Other(failure)
        | ProbeOutcome::Repeat(failure)
        | ProbeOutcome::Refused(failure) => Err(HandshakeError::Refused(failure)),
        ProbeOutcome::Died(failure) => Err(HandshakeError::Died(failure)),
        ProbeOutcome::Transient(failure) => Err(HandshakeError::Transient(failure)),
    }
}

/// The maximum bytes of an answer to the opening request.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// The maximum bytes that it may take once it is parsed.
const MAX_PARSED_BYTES: u64 = 16 << 20;
/// The caller limits the time of the handshake, so the timeout of the request is unused.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Sends the opening request of an era. A server that refuses the revision, and names the same one as supported, is
/// asked once more.
async fn ask(link: &Link, era: Era, known: Option<Era>, spec: &SourceSpec) -> ProbeOutcome {
    match ask_once(link, era, known, spec).await {
        ProbeOutcome::Repeat(_) => match ask_once(link, era, known, spec).await {
            ProbeOutcome::Repeat(failure) => ProbeOutcome::Refused(failure),
            outcome => outcome,
        },
        outcome => outcome,
    }
}

async fn ask_once(link: &Link, era: Era, known: Option<Era>, spec: &SourceSpec) -> ProbeOutcome {
    let line = |id| match era {
        Era::Modern => request::discover(id, &spec.extensions),
        Era::Legacy => request::initialize(id, &spec.extensions),
    };
    let answer = link
        .request(
            RequestKind::Opening,
            opening_method(era),
            line,
            UNUSED_TIMEOUT,
        )
        .await;
    // The token is known now, if the source has one.
    let redactor = &link.redactor(&spec.redactor);
    match answer {
        Ok(RawResult { result, .. }) if !is_readable(&result) => {
            ProbeOutcome::Refused(refused(format!(
                "the answer to the handshake has {} bytes; at most {MAX_ANSWER_BYTES} are read, and {MAX_PARSED_BYTES} once parsed",
                result.len()
            )))
        }
        Ok(RawResult { result, .. }) => match era {
            Era::Modern => read_discovery(&result, redactor),
            Era::Legacy => read_initialization(&result, redactor),
        },
        Err(RequestError::Error(error)) => read_error(era, &error, redactor),
        Err(RequestError::Gone { failure, begun }) => read_end(era, known, failure, begun),
        Err(RequestError::Http(refusal)) => match &refusal.rpc_error {
            Some(error) if !may_pass(era, known, &refusal) || is_about_method(error) => {
                with_status(read_error(era, error, redactor), refusal.status)
            }
            Some(_) | None => read_refusal(era, known, *refusal),
        },
        Err(RequestError::Broken(reason)) => ProbeOutcome::Refused(refused(reason)),
        Err(RequestError::OutOfMemory) => {
            ProbeOutcome::Refused(refused("there is no room for the answer"))
        }
        Err(RequestError::TooLarge) => {
            ProbeOutcome::Refused(refused("the answer is over the line limit"))
        }
        Err(RequestError::Timeout { .. } | RequestError::Overloaded(_)) => {
            ProbeOutcome::Refused(refused("no answer"))
        }
    }
}

/// Reads the end of the connection. Over HTTP it does not reveal the era if the request was not sent; a server that
/// ended the connection of a request may support the other era, unless it is known to have this one.
fn read_end(era: Era, known: Option<Era>, failure: SourceFailure, begun: bool) -> ProbeOutcome {
    let failure = SourceFailure {
        is_unsent: !begun,
        ..failure
    };
    match failure.cause {
        SourceCause::Unreachable if begun && known == Some(era) => ProbeOutcome::Transient(failure),
        SourceCause::Unreachable if begun && era == Era::Modern => ProbeOutcome::Other(failure),
        SourceCause::Unreachable
        | SourceCause::TlsFailed
        | SourceCause::ProxyInvalid
        | SourceCause::NeedsAuth => ProbeOutcome::Refused(failure),
        SourceCause::SpawnNotFound
        | SourceCause::SpawnDenied
        | SourceCause::SpawnFormat
        | SourceCause::SpawnFailed
        | SourceCause::ExitBeforeReady
        | SourceCause::StartupTimeout
        | SourceCause::HandshakeFailed
        | SourceCause::ListFailed
        | SourceCause::ListInvalid
        | SourceCause::SessionEnded
        | SourceCause::EnvMissing
        | SourceCause::Exited
        | SourceCause::Protocol
        | SourceCause::StdinStalled
        | SourceCause::Hung
        | SourceCause::RecheckPending
        | SourceCause::DriftSource
        | SourceCause::LockStale
        | SourceCause::Stopped => ProbeOutcome::Died(failure),
    }
}

/// Reads an HTTP error without a JSON-RPC error about the method. A pause that the server asks for does not reveal the
/// era.
fn read_refusal(era: Era, known: Option<Era>, refusal: HttpRefusal) -> ProbeOutcome {
    let passes = may_pass(era, known, &refusal);
    let retry_after = refusal.retry_after;
    let failure = SourceFailure {
        retry_after,
        http_status: NonZeroU16::new(refusal.status).filter(|_| retry_after.is_none()),
        ..refusal.failure
    };
    match retry_after {
        _ if passes => ProbeOutcome::Transient(failure),
        Some(_) => ProbeOutcome::Refused(failure),
        None => ProbeOutcome::Other(failure),
    }
}

/// Whether a source whose era is known may answer later: its server asks for a pause, or fails in that era.
fn may_pass(era: Era, known: Option<Era>, refusal: &HttpRefusal) -> bool {
    match known {
        None => false,
        Some(_) if refusal.retry_after.is_some() => true,
        Some(known) => known == era && matches!(refusal.status, 429 | 500..=599),
    }
}

/// Whether a JSON-RPC error concerns the request, so that its server would repeat it: it does not know the method, its
/// parameters or the revision.
fn is_about_method(error: &Bytes) -> bool {
    let error = object(error).unwrap_or_default();
    let code = error.get("code").and_then(Value::as_i64);
    matches!(
        code,
        Some(-32602..=-32600 | UNSUPPORTED_VERSION | HEADER_MISMATCH | MISSING_CAPABILITY)
    )
}

/// Adds the HTTP status to an error that a server with the older transport may have sent.
fn with_status(outcome: ProbeOutcome, status: u16) -> ProbeOutcome {
    match outcome {
        ProbeOutcome::Other(failure) => ProbeOutcome::Other(SourceFailure {
            http_status: NonZeroU16::new(status),
            ..failure
        }),
        outcome => outcome,
    }
}

fn refused(message: impl Into<String>) -> SourceFailure {
    SourceFailure::new(SourceCause::HandshakeFailed, message)
}

fn read_discovery(result: &Bytes, redactor: &Redactor) -> ProbeOutcome {
    let Some(mut result) = object(result) else {
        return ProbeOutcome::Other(refused(
            "the server's answer to `server/discover` is not an object",
        ));
    };
    // The answer of a server that accepts every method has no `supportedVersions`.
    let Some(versions) = result.get("supportedVersions").and_then(Value::as_array) else {
        return ProbeOutcome::Other(refused(
            "the server answered `server/discover` without `supportedVersions`",
        ));
    };
    let versions: Vec<_> = versions.iter().filter_map(Value::as_str).collect();
    if !versions.contains(&MODERN) {
        return unsupported(&versions, redactor);
    }
    let server_info = result
        .get("_meta")
        .and_then(|meta| meta.get(META_SERVER_INFO))
        .cloned();
    let server_info = server_info.or_else(|| result.remove("serverInfo"));
    ProbeOutcome::Negotiated(Box::new(negotiated(
        Era::Modern,
        MODERN,
        server_info,
        result,
    )))
}

fn read_initialization(result: &Bytes, redactor: &Redactor) -> ProbeOutcome {
    let Some(mut result) = object(result) else {
        return ProbeOutcome::Refused(refused(
            "the server's answer to `initialize` is not an object",
        ));
    };
    let version = result.get("protocolVersion").and_then(Value::as_str);
    let Some(version) = version.and_then(legacy_revision) else {
        let named = version.unwrap_or("no revision");
        return ProbeOutcome::Refused(refused(format!(
            "the server chose the revision `{}`, which the broker does not support",
            shown_line(&redactor.redact(named), 60)
        )));
    };
    let server_info = result.remove("serverInfo");
    ProbeOutcome::Negotiated(Box::new(negotiated(
        Era::Legacy,
        version,
        server_info,
        result,
    )))
}

fn negotiated(
    era: Era,
    version: &str,
    info: Option<Value>,
    mut result: Map<String, Value>,
) -> Negotiated {
    let empty = || Value::Object(Map::new());
    Negotiated {
        era,
        server_info: info.unwrap_or_else(empty),
        protocol_version: version.to_owned(),
        capabilities: result.remove("capabilities").unwrap_or_else(empty),
        instructions: result
            .remove("instructions")
            .and_then(|text| text.as_str().map(str::to_owned)),
    }
}

/// Reads an error to the opening request. Only the modern error codes show that the server is modern; every other code
/// shows that it is not.
fn read_error(era: Era, error: &Bytes, redactor: &Redactor) -> ProbeOutcome {
    let error = object(error).unwrap_or_default();
    let code = error
        .get("code")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("");
    let method = opening_method(era);
    let failure = refused(format!(
        "the server refused `{method}` with error {code}: {}",
        shown_line(&redactor.redact(message), 300)
    ));
    if era == Era::Legacy {
        return ProbeOutcome::Other(failure);
    }
    match code {
        UNSUPPORTED_VERSION => {
            let supported = error.get("data").and_then(|data| data.get("supported"));
            let versions: Vec<_> = supported
                .and_then(Value::as_array)
                .map(|versions| versions.iter().filter_map(Value::as_str).collect())
                .unwrap_or_default();
            unsupported(&versions, redactor)
        }
        HEADER_MISMATCH | MISSING_CAPABILITY => ProbeOutcome::Refused(failure),
        _ => ProbeOutcome::Other(failure),
    }
}

/// Returns the answer for a server that does not support the modern revision.
fn unsupported(versions: &[&str], redactor: &Redactor) -> ProbeOutcome {
    let names: Vec<_> = versions
        .iter()
        .take(8)
        .map(|version| format!("`{}`", shown_line(&redactor.redact(version), 40)))
        .collect();
    let failure = refused(format!(
        "the server supports only {}",
        if names.is_empty() {
            "revisions that it does not name".to_owned()
        } else {
            names.join(", ")
        }
    ));
    if versions.contains(&MODERN) {
        ProbeOutcome::Repeat(failure)
    } else if versions
        .iter()
        .any(|version| legacy_revision(version).is_some())
    {
        ProbeOutcome::Other(failure)
    } else {
        ProbeOutcome::Refused(failure)
    }
}

/// Returns the JSON as an object; `None` if it is not a readable object.
fn object(json: &[u8]) -> Option<Map<String, Value>> {
    let readable = is_readable(json).then_some(json)?;
    serde_json::from_slice(readable).ok()
}

/// Whether an answer is small enough to parse: a parsed answer can take a hundred times the memory of
/// its text.
fn is_readable(json: &[u8]) -> bool {
    json.len() <= MAX_ANSWER_BYTES && estimate(json).bytes <= MAX_PARSED_BYTES
}
