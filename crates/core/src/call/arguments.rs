//! The arguments of a call as a surface gives them, the memory that they take, and the pool that reads long requests.

use std::ops::Range;
use std::time::Duration;

use broker_mcp::CallFailure;
use broker_memory::{Account, Charge, ChargeError, Size};
use broker_model::CallCode;
use broker_model::json::Estimate;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::call::work::PoolError;
use crate::errors::error::CoreError;
use crate::errors::failure::SHORT_RETRY_DELAY;

/// Parsed text of at least this many bytes is returned to the system when it is freed. It consists of small blocks; the
/// C library would otherwise keep them outside the budget.
const MIN_TRIM_BYTES: usize = 8 << 20;

/// The arguments of a call: one JSON object as the caller wrote it.
#[derive(Debug)]
pub enum Args {
    /// Parsed by the strict reader: the checked text is the forwarded text.
    Read {
        /// As written.
        text: Bytes,
        /// The parsed arguments. They are moved out, so that large arguments are not held while the
        /// call waits.
        value: Value,
    },
    /// Too long to be read in place.
    Unread {
        /// The text that contains them, in UTF-8.
        body: Bytes,
        /// Their range in it.
        at: Range<usize>,
    },
}

impl Args {
    /// Returns empty arguments.
    pub fn empty() -> Self {
        Self::Read {
            text: Bytes::from_static(b"{}"),
            value: Value::Object(Map::new()),
        }
    }

    /// Returns the text of the arguments.
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Read { text, .. } => text,
            Self::Unread { body, at } => &body[at.clone()],
        }
    }
}

/// The charge of parsed text. It is dropped after the text.
#[derive(Debug)]
pub struct ParsedCharge(Charge);

impl Drop for ParsedCharge {
    fn drop(&mut self) {
        if self.0.bytes() >= MIN_TRIM_BYTES {
            broker_process::trim_heap();
        }
    }
}

/// Charges the memory of a text once parsed, in addition to the `length` bytes of its request.
pub(crate) fn charge_parsed(
    account: &Account,
    length: usize,
    size: Estimate,
) -> Result<ParsedCharge, Box<CoreError>> {
    let parsed = usize::try_from(size.bytes).unwrap_or(usize::MAX);
    let needed = parsed.saturating_add(length);
    let refused = |charge_error| Box::new(memory_error_for_request(charge_error, needed, account));
    if needed > account.request_limit() {
        return Err(refused(ChargeError::Caller));
    }
    let charge = account
        .charge(parsed, Size::from_bytes(length))
        .map_err(refused)?;
    Ok(ParsedCharge(charge))
}

/// Returns the refusal of a request that needs this much memory, either for now or always.
pub fn memory_error_for_request(
    charge_error: ChargeError,
    needed: usize,
    account: &Account,
) -> CoreError {
    let limit = account.request_limit();
    if needed > limit {
        let message = format!(
            "the request takes about {needed} bytes of memory, at most {limit} are allowed"
        );
        return CoreError::new(CallCode::BodyTooLarge, message)
            .details(json!({"needed_bytes": needed, "limit_bytes": limit}))
            .maybe_executed(false);
    }
    CoreError::new(CallCode::Overloaded, charge_error.to_string())
        .retry_after(SHORT_RETRY_DELAY)
        .maybe_executed(false)
}

pub(crate) fn overloaded(busy: PoolError) -> CoreError {
    let message = match busy {
        PoolError::Full { waiting } => format!(
            "{waiting} requests wait to be read or checked, or this caller has its part of the places"
        ),
        PoolError::NoThread => "no thread can be started to read or check the request".to_owned(),
    };
    CoreError::new(CallCode::Overloaded, message)
        .retry_after(SHORT_RETRY_DELAY)
        .maybe_executed(false)
}

pub(crate) fn unsent(after: Duration) -> CallFailure {
    CallFailure::Timeout {
        extended: false,
        after,
        maybe_executed: false,
    }
}
