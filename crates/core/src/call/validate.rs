//! Step 5: checks the arguments against the schema of the tool, and converts them first where the config allows it. A
//! short check runs in place; a longer one runs on the pool, charged to the caller and within the call's timeout.

use std::ops::Range;
use std::sync::Arc;

use broker_memory::Account;
use broker_model::CallCode;
use broker_model::json::{self, MAX_VALUES};
use broker_schema::Budget;
use bytes::Bytes;
use serde_json::Value;
use tokio::time::timeout;

use super::Call;
use super::coerce::CoercedArgs;
use super::deadline::Deadline;
use super::resolve::Target;
use crate::CallPath;
use crate::call::arguments::{
    Args, ParsedCharge, charge_parsed, memory_error_for_request, overloaded, unsent,
};
use crate::call::validator::{self, Refusal};
use crate::call::work::StopFlag;
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::errors::json_error::json_invalid;

/// The maximum number of steps of a check in place; a longer one runs on the pool.
pub(super) const MAX_INLINE_STEPS: u64 = 50_000;

/// Arguments on their way to the pool.
enum PooledArgs {
    /// Parsed, with the text.
    Value(Value, Bytes, ParsedCharge),
    Text(Bytes, Range<usize>),
}

impl Call<'_> {
    /// Refuses arguments that must not be sent, within the remaining time of the call. Returns their text, and, if some
    /// arguments were converted, the arguments to send instead of the caller's arguments; boxed, so that other calls do
    /// not carry their size.
    #[inline]
    pub(super) async fn validate(
        &self,
        args: Args,
        deadline: &Deadline,
    ) -> Result<(Bytes, Option<Box<CoercedArgs>>), Box<CoreError>> {
        let (target, account) = (self.target, &self.context.account);
        let check = Check {
            core: Arc::clone(self.core),
            target: target.clone(),
            coerces: deadline.settings.coerces,
            account: account.clone(),
        };
        let (text, long) = match args {
            Args::Read { text, value } => {
                let budget = Budget::steps(MAX_INLINE_STEPS);
                match check.checked(&text, &value, &budget) {
                    Ok(converted) => return Ok((text, converted)),
                    Err(Refusal::Final(error)) => return Err(error),
                    Err(Refusal::OverBudget(_)) => {}
                }
                let charge = charge_parsed(account, text.len(), json::estimate(&text))?;
                (text.clone(), PooledArgs::Value(value, text, charge))
            }
            Args::Unread { body, at } => (body.slice(at.clone()), PooledArgs::Text(body, at)),
        };
        let checked = self
            .core
            .work
            .run(account.owner(), move |stop| check.run(long, stop));
        match timeout(deadline.left(), checked).await {
            Ok(Ok(outcome)) => outcome.map(|converted| (text, converted)),
            Ok(Err(busy)) => Err(Box::new(overloaded(busy).path(target.path))),
            Err(_) => Err(failure::from_call(
                unsent(deadline.time),
                target.path,
                target.source,
            )),
        }
    }
}

/// A check of one call on the pool.
struct Check {
    core: Arc<CallPath>,
    target: Target,
    /// Whether arguments that do not match are converted.
    coerces: bool,
    account: Account,
}

impl Check {
    /// Decides about long arguments.
    fn run(
        &self,
        long: PooledArgs,
        stop: &StopFlag,
    ) -> Result<Option<Box<CoercedArgs>>, Box<CoreError>> {
        let (_charge, text, value) = match long {
            PooledArgs::Value(value, text, charge) => (charge, text, value),
            PooledArgs::Text(body, at) => {
                let (charge, value) = self.read(&body, at.clone())?;
                (charge, body.slice(at), value)
            }
        };
        let stopped = || stop.is_set();
        let budget = Budget::from_values(broker_schema::count_values(&value)).until(&stopped);
        self.checked(&text, &value, &budget)
            .map_err(Refusal::into_error)
    }

    /// Checks arguments: the caller's arguments against the tool's schema, then the sent arguments against the caller's
    /// rules.
    fn checked(
        &self,
        text: &[u8],
        value: &Value,
        budget: &Budget<'_>,
    ) -> Result<Option<Box<CoercedArgs>>, Refusal> {
        let (catalog, item) = (self.core.catalog, self.target.item);
        let validator = &self.core.validators[self.target.at as usize];
        let converted = match validator.check(catalog, item, value, budget) {
            Ok(()) => None,
            Err(Refusal::Final(refusal)) if self.coerces => {
                // The conversion works on a copy.
                let size = json::estimate(text);
                let _copy =
                    charge_parsed(&self.account, text.len(), size).map_err(Refusal::Final)?;
                let text = std::str::from_utf8(text).unwrap_or_default();
                let coerced = validator.coerce(catalog, item, text, value, budget, refusal)?;
                Some(Box::new(self.charged(coerced)?))
            }
            Err(refusal) => return Err(refusal),
        };
        if let Some(narrowed) = &self.target.narrowed {
            let sent = converted.as_ref().map_or(value, |coerced| &coerced.value);
            narrowed.check(self.target.path, sent, budget)?;
        }
        Ok(converted)
    }

    /// Charges converted arguments to the caller.
    fn charged(&self, mut coerced: CoercedArgs) -> Result<CoercedArgs, Refusal> {
        let needed = coerced.text.len();
        let charged = coerced.charge.cover(&self.account, needed);
        charged.map_err(|full| {
            let error = memory_error_for_request(full, needed, &self.account);
            Refusal::Final(Box::new(error.path(self.target.path)))
        })?;
        Ok(coerced)
    }

    /// Reads the arguments. The charge comes first, so that it outlives the value.
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
            return Err(validator::too_many_values(self.target.path, size.values));
        }
        let charge = charge_parsed(&self.account, body.len(), size)?;
        let value = json::parse(text)
            .map_err(|error| Box::new(json_invalid(body, at.start, text, &error)))?;
        Ok((charge, value))
    }
}
