//! The refusal of the era that was tried first. The error of a start that fails later names it too.

use std::num::NonZeroU16;
use std::sync::OnceLock;

use broker_model::SourceCause;
use broker_wire::Era;

use super::{ProbeOutcome, opening_method};
use crate::failure::SourceFailure;

/// The refusal of the era that was tried first, for the error of a start that fails later.
#[derive(Debug, Default)]
pub(crate) struct ProbeRefusal(OnceLock<(Era, SourceFailure)>);

impl ProbeRefusal {
    /// Keeps the first refusal.
    pub(super) fn keep(&self, era: Era, failure: &SourceFailure) {
        // A later refusal is the error of the start itself.
        let _ = self.0.set((era, failure.clone()));
    }

    /// Adds the refusal to the error of the start.
    pub(crate) fn explain(&self, mut failure: SourceFailure) -> SourceFailure {
        match self.0.get() {
            Some((era, before)) if before.message != failure.message => {
                let method = opening_method(*era);
                failure.message = format!(
                    "{}; before that, the server refused `{method}`: {}",
                    failure.message, before.message
                );
                failure
            }
            _ => failure,
        }
    }

    /// Whether the server answered 404 or 405 to the first era, and `last` is the same answer to the second one: it has
    /// no endpoint at this URL.
    pub(crate) fn is_of_missing(&self, last: &SourceFailure) -> bool {
        let is_missing = |failure: &SourceFailure| {
            matches!(failure.http_status.map(NonZeroU16::get), Some(404 | 405))
        };
        is_missing(last) && self.0.get().is_some_and(|(_, first)| is_missing(first))
    }

    /// Returns the outcome of the second era, after the first one was refused. Credentials that the first request was
    /// refused for are the cause if the server does not support the second era.
    pub(super) fn then(&self, second: ProbeOutcome) -> ProbeOutcome {
        let before = self.0.get().map(|(_, before)| before);
        match (second, before) {
            (ProbeOutcome::Other(failure), Some(before))
                if before.cause == SourceCause::NeedsAuth =>
            {
                ProbeOutcome::Refused(SourceFailure {
                    cause: SourceCause::NeedsAuth,
                    said: before.said.clone(),
                    http_status: None,
                    ..failure
                })
            }
            (second, _) => second,
        }
    }
}
