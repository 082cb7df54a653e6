//! The arguments of a call before they are sent: a small check in place, and everything that takes
//! longer on the pool, charged to the caller and within the call's time.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use broker_mcp::{Account, CallFailure, Charge, NoRoom, Size};
use broker_model::CallCode;
use broker_model::json::{self, Estimate, MAX_VALUES};
use broker_model::schema::Budget;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Inner;
use super::error::CoreError;
use super::failure::{self, SHORT_WAIT};
use super::json_error::json_invalid;
use super::validate::{self, LazyValidator, Refusal};
use super::work::{Busy, Stop};
use crate::catalog::{Catalog, Tool};

/// Steps of a check that is made in place; one that needs more is made on the pool.
const INLINE_STEPS: u64 = 50_000;
/// Parsed text of at least so many bytes is given back to the system when it is freed. It is made of
/// small blocks, which the C library would keep for itself beside the budget.
const TRIM_BYTES: usize = 8 << 20;
/// The time that a long body of a listing request may wait for the pool.
const LISTING_TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of a call: one JSON object as the caller wrote it.
#[derive(Debug)]
pub enum Args<'a> {
    /// Read already, strictly: what is checked is what is forwarded.
    Read {
        /// As written.
        text: &'a [u8],
        /// The parsed arguments. They are moved out, so that large arguments are not held while the
        /// call waits.
        value: Value,
    },
    /// Too long to be read in place.
    Unread {
        /// The text in which they stand, in UTF-8.
        body: &'a Bytes,
        /// Where they stand in it.
        at: Range<usize>,
    },
}

impl<'a> Args<'a> {
    pub(super) fn text(&self) -> &'a [u8] {
        match self {
            Self::Read { text, .. } => text,
            Self::Unread { body, at } => &body[at.clone()],
        }
    }
}

/// The charge of parsed text. It is dropped after the text.
#[derive(Debug)]
pub(crate) struct ParsedCharge(Charge);

impl Drop for ParsedCharge {
    fn drop(&mut self) {
        if self.0.bytes() >= TRIM_BYTES {
            broker_process::trim_heap();
        }
    }
}

/// Arguments on their way to the pool.
enum Long {
    Value(Value, ParsedCharge),
    Text(Bytes, Range<usize>),
}

impl Inner {
    /// Refuses arguments that must not be sent. Takes at most `left` of the call's `time`.
    pub(super) async fn check(
        &self,
        at: u32,
        args: Args<'_>,
        account: &Account,
        left: Duration,
        time: Duration,
    ) -> Result<(), Box<CoreError>> {
        let tool = self.catalog.tool(at);
        let path = self.catalog.entry(tool.entry).path;
        let long = match args {
            Args::Read { text, value } => {
                let budget = Budget::steps(INLINE_STEPS);
                let checked =
                    self.validators[at as usize].check(self.catalog, tool, &value, &budget);
                match checked {
                    Ok(()) => return Ok(()),
                    Err(Refusal::Final(error)) => return Err(error),
                    Err(Refusal::OverBudget(_)) => {}
                }
                let size = json::estimate(text);
                Long::Value(value, charge_parsed(account, text.len(), size)?)
            }
            Args::Unread { body, at } => Long::Text(body.clone(), at),
        };
        let check = Check {
            validators: Arc::clone(&self.validators),
            at: at as usize,
            catalog: self.catalog,
            tool,
            path,
            account: account.clone(),
        };
        let checked = self.work.run(move |stop| check.run(long, stop));
        match timeout(left, checked).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(busy)) => Err(Box::new(overloaded(busy).path(path))),
            Err(_) => {
                let source = self.catalog.sources[tool.source as usize].path;
                Err(failure::from_call(unsent(time), path, source))
            }
        }
    }

    /// Runs a long job before the tool is known, within the longest time that a call may take.
    pub(super) async fn read_long<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<CoreError>> {
        let settings = self.settings.load();
        let times = settings.iter().map(|tool| tool.timeout);
        let time = times.max().unwrap_or(LISTING_TIMEOUT);
        drop(settings);
        match timeout(time, self.work.run(move |_| read())).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(busy)) => Err(Box::new(overloaded(busy))),
            Err(_) => Err(failure::from_call(unsent(time), "", "")),
        }
    }
}

/// A check of one call on the pool.
struct Check {
    validators: Arc<[LazyValidator]>,
    at: usize,
    catalog: &'static Catalog,
    tool: &'static Tool,
    path: &'static str,
    account: Account,
}

impl Check {
    fn run(&self, long: Long, stop: &Stop) -> Result<(), Box<CoreError>> {
        let (_charge, value) = match long {
            Long::Value(value, charge) => (charge, value),
            Long::Text(body, at) => self.read(&body, at)?,
        };
        let stopped = || stop.is_set();
        let budget = Budget::of_values(broker_model::schema::count_values(&value)).until(&stopped);
        self.validators[self.at]
            .check(self.catalog, self.tool, &value, &budget)
            .map_err(Refusal::into_error)
    }

    /// The charge stands first, so that it outlives the value.
    fn read(&self, body: &[u8], at: Range<usize>) -> Result<(ParsedCharge, Value), Box<CoreError>> {
        let invalid = || {
            Box::new(CoreError::new(
                CallCode::JsonInvalid,
                "the body is not UTF-8",
            ))
        };
        let body = std::str::from_utf8(body).map_err(|_| invalid())?;
        let text = body.get(at.clone()).ok_or_else(invalid)?;
        let size = json::estimate(text.as_bytes());
        if size.values > MAX_VALUES {
            return Err(validate::too_many_values(self.path, size.values));
        }
        let charge = charge_parsed(&self.account, body.len(), size)?;
        let value = json::parse(text)
            .map_err(|error| Box::new(json_invalid(body, at.start, text, &error)))?;
        Ok((charge, value))
    }
}

/// Charges the memory of a text once parsed, in addition to the `length` bytes of its request.
pub(super) fn charge_parsed(
    account: &Account,
    length: usize,
    size: Estimate,
) -> Result<ParsedCharge, Box<CoreError>> {
    let parsed = usize::try_from(size.bytes).unwrap_or(usize::MAX);
    let needed = parsed.saturating_add(length);
    let refused = |no_room| Box::new(no_room_for_request(no_room, needed, account));
    if needed > account.request_limit() {
        return Err(refused(NoRoom::Caller));
    }
    let charge = account.charge(parsed, Size::of(length)).map_err(refused)?;
    Ok(ParsedCharge(charge))
}

/// The refusal of a request that needs so much memory: for now, or for ever.
pub(crate) fn no_room_for_request(no_room: NoRoom, needed: usize, account: &Account) -> CoreError {
    let limit = account.request_limit();
    if needed > limit {
        let message = format!(
            "the request takes about {needed} bytes of memory, at most {limit} are allowed: a quarter of `limits.memory_bytes`"
        );
        return CoreError::new(CallCode::BodyTooLarge, message)
            .details(json!({"needed_bytes": needed, "limit_bytes": limit}))
            .maybe_executed(false);
    }
    CoreError::new(CallCode::Overloaded, no_room.to_string())
        .retry_after(SHORT_WAIT)
        .maybe_executed(false)
}

fn overloaded(busy: Busy) -> CoreError {
    let message = match busy {
        Busy::Full { waiting } => format!("{waiting} requests wait to be read or checked"),
        Busy::NoThread => "no thread can be started to read or check the request".to_owned(),
    };
    CoreError::new(CallCode::Overloaded, message)
        .retry_after(SHORT_WAIT)
        .maybe_executed(false)
}

fn unsent(after: Duration) -> CallFailure {
    CallFailure::Timeout {
        after,
        maybe_executed: false,
    }
}
