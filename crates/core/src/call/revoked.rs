//! Calls of callers whose right to call is withdrawn meanwhile.

use std::pin::Pin;

use broker_mcp::RawResult;
use broker_model::CallCode;

use crate::errors::error::CoreError;
use crate::identity::{Identity, Revocation};

/// Returns the result of sending a call, unless its caller loses the right to call before it arrives: then the result
/// is discarded, or the call is cancelled.
#[inline]
pub(super) async fn while_allowed(
    identity: &Identity,
    sending: Pin<&mut impl Future<Output = Result<RawResult, Box<CoreError>>>>,
) -> Result<RawResult, Box<CoreError>> {
    let Some(Revocation {
        revoked,
        cancels_calls,
        ..
    }) = identity.revocation()
    else {
        return sending.await;
    };
    if revoked.is_cancelled() {
        return Err(error(false));
    }
    let answer = if *cancels_calls {
        tokio::select! {
            biased;
            () = revoked.cancelled() => return Err(error(true)),
            answer = sending => answer,
        }
    } else {
        sending.await
    };
    match answer {
        Err(failure) if revoked.is_cancelled() => Err(error(failure.maybe_executed != Some(false))),
        Ok(_) if revoked.is_cancelled() => Err(error(true)),
        answer => answer,
    }
}

pub(super) fn error(maybe_executed: bool) -> Box<CoreError> {
    let message = "the right of the caller to call was withdrawn during the call";
    let error = CoreError::new(CallCode::Unauthorized, message);
    Box::new(error.maybe_executed(maybe_executed))
}
