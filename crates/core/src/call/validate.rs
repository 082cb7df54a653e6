//! Step 5: checks the arguments against the schema of the tool. A short check runs in place; a longer
//! one runs on the pool, charged to the caller and within the call's timeout.

use std::ops::Range;
use std::sync::Arc;

use broker_memory::Account;
use broker_model::CallCode;
use broker_model::json::{self, MAX_VALUES};
use broker_schema::Budget;
use bytes::Bytes;
use serde_json::Value;
use tokio::time::timeout;

use super::limit::Limits;
use super::resolve::Target;
use crate::Inner;
use crate::admission::NarrowedArgs;
use crate::call::arguments::{Args, ParsedCharge, charge_parsed, overloaded, unsent};
use crate::call::validator::{self, LazyValidator, Refusal};
use crate::call::work::StopFlag;
use crate::catalog::{Catalog, Tool};
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::errors::json_error::json_invalid;

/// The maximum number of steps of a check in place; a longer one runs on the pool.
pub(super) const MAX_INLINE_STEPS: u64 = 50_000;

/// Arguments on their way to the pool.
enum PooledArgs {
    Value(Value, ParsedCharge),
    Text(Bytes, Range<usize>),
}

impl Inner {
    /// Refuses arguments that must not be sent, within the remaining time of the call.
    pub(super) async fn validate(
        &self,
        target: &Target,
        args: Args<'_>,
        account: &Account,
        limits: &Limits,
    ) -> Result<(), Box<CoreError>> {
        let Target { at, tool, path, .. } = *target;
        let narrowed = target.narrowed.as_ref();
        let long = match args {
            Args::Read { text, value } => {
                let budget = Budget::steps(MAX_INLINE_STEPS);
                let validator = &self.validators[at as usize];
                let checked = validator.check(self.catalog, tool, &value, &budget);
                let narrow = |()| match narrowed {
                    Some(narrowed) => narrowed.check(path, &value, &budget),
                    None => Ok(()),
                };
                match checked.and_then(narrow) {
                    Ok(()) => return Ok(()),
                    Err(Refusal::Final(error)) => return Err(error),
                    Err(Refusal::OverBudget(_)) => {}
                }
                let size = json::estimate(text);
                PooledArgs::Value(value, charge_parsed(account, text.len(), size)?)
            }
            Args::Unread { body, at } => PooledArgs::Text(body.clone(), at),
        };
        let check = Check {
            validators: Arc::clone(&self.validators),
            at: at as usize,
            catalog: self.catalog,
            tool,
            path,
            narrowed: narrowed.cloned(),
            account: account.clone(),
        };
        let checked = self.work.run(move |stop| check.run(long, stop));
        match timeout(limits.left(), checked).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(busy)) => Err(Box::new(overloaded(busy).path(path))),
            Err(_) => Err(failure::from_call(unsent(limits.time), path, target.source)),
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
    narrowed: Option<NarrowedArgs>,
    account: Account,
}

impl Check {
    fn run(&self, long: PooledArgs, stop: &StopFlag) -> Result<(), Box<CoreError>> {
        let (_charge, value) = match long {
            PooledArgs::Value(value, charge) => (charge, value),
            PooledArgs::Text(body, at) => self.read(&body, at)?,
        };
        let stopped = || stop.is_set();
        let budget = Budget::of_values(broker_schema::count_values(&value)).until(&stopped);
        self.validators[self.at]
            .check(self.catalog, self.tool, &value, &budget)
            .and_then(|()| match &self.narrowed {
                Some(narrowed) => narrowed.check(self.path, &value, &budget),
                None => Ok(()),
            })
            .map_err(Refusal::into_error)
    }

    /// The charge comes first, so that it outlives the value.
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
            return Err(validator::too_many_values(self.path, size.values));
        }
        let charge = charge_parsed(&self.account, body.len(), size)?;
        let value = json::parse(text)
            .map_err(|error| Box::new(json_invalid(body, at.start, text, &error)))?;
        Ok((charge, value))
    }
}
