//! Re-checks authorization after a wait and right before sending: a reload may have changed the rules meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use broker_model::access::Decision;
use broker_model::{CallCode, json};
use broker_schema::Budget;

use super::Call;
use super::revoked;
use super::validate::MAX_INLINE_STEPS;
use crate::admission::{Caller, NarrowedArgs};
use crate::call::arguments::charge_parsed;
use crate::call::validator::Refusal;
use crate::errors::error::CoreError;
use crate::errors::failure::SHORT_RETRY_DELAY;
use crate::listing::look_up::no_resource;
use crate::listing::paths;
use crate::snapshot::InForce;

/// The maximum length of arguments that are parsed again.
const MAX_ARGS_BYTES: usize = 64 << 10;

/// A call that was admitted and is not sent yet.
pub(super) struct AdmittedCall<'a> {
    call: &'a Call<'a>,
    args: &'a [u8],
    /// The URI that is read, if the operation names one.
    uri: Option<&'a str>,
    /// The number of the last policy that is known to admit it.
    policy: AtomicU64,
}

impl<'a> AdmittedCall<'a> {
    #[inline]
    pub(super) fn new(call: &'a Call<'a>, args: &'a [u8], uri: Option<&'a str>) -> Self {
        Self {
            call,
            args,
            uri,
            policy: AtomicU64::new(call.target.policy),
        }
    }

    /// Returns the URI that is read, if the operation names one.
    #[inline]
    pub(super) const fn uri(&self) -> Option<&'a str> {
        self.uri
    }

    /// Returns what is in force now, for a call that has waited or is about to be sent.
    #[inline]
    pub(super) fn in_force(&self) -> InForce {
        self.call.core.fleet.in_force()
    }

    /// Whether the rules and the filter of the source admit it.
    pub(super) fn is_admitted(&self, now: &InForce) -> bool {
        let (number, at) = (now.terms.policy.number(), self.call.target.at);
        if number == self.policy.load(Ordering::Relaxed) && !now.view.is_hidden(at) {
            return true;
        }
        let is_admitted = self.decide(now).is_ok();
        if is_admitted {
            self.policy.store(number, Ordering::Relaxed);
        }
        is_admitted
    }

    /// Returns the error of the call if it must not be sent.
    pub(super) fn refusal(&self, now: &InForce) -> Option<Box<CoreError>> {
        if self.call.identity.is_revoked() {
            return Some(revoked::error(false));
        }
        match self.is_admitted(now) {
            true => None,
            false => self.decide(now).err(),
        }
    }

    /// Refuses the call like one that arrives now.
    fn decide(&self, now: &InForce) -> Result<(), Box<CoreError>> {
        let (core, target) = (self.call.core, self.call.target);
        let (view, policy) = (&now.view, &now.terms.policy);
        let identity = self.call.identity;
        // Filters of the program are not asked again: they may depend on the health of the source, and the call waits
        // for this source.
        let caller = Caller::by_rules(core.catalog, policy, identity);
        if caller.decide(view, core.catalog, target.item.entry) == Decision::Absent {
            // The filters also apply to the suggestions in the error.
            let caller = Caller::new(&core.fleet, policy, view, identity);
            let found = paths::resolve(core.scope(view, &caller), target.path);
            return found
                .map(drop)
                .map_err(|error| Box::new(error.maybe_executed(false)));
        }
        if let Some(uri) = self.uri {
            let source = target.item.source;
            if !caller.may_read(view, core.catalog, source, uri, Some(target.at)) {
                return Err(no_resource(uri));
            }
        }
        match (caller.narrowed(target.at), &target.narrowed) {
            (None, _) => Ok(()),
            (Some(now), Some(before)) if now.has_schemas_of(before) => Ok(()),
            (Some(now), _) => self.check_args(&now),
        }
    }

    /// Refuses arguments that cannot be checked in place, since others may wait for this thread.
    fn check_args(&self, narrowed: &NarrowedArgs) -> Result<(), Box<CoreError>> {
        let path = self.call.target.path;
        let text = std::str::from_utf8(self.args).unwrap_or_default();
        if text.len() > MAX_ARGS_BYTES {
            return Err(changed(path));
        }
        let size = json::estimate(self.args);
        let _charge = charge_parsed(&self.call.context.account, text.len(), size)?;
        let value = json::parse(text).map_err(|_| changed(path))?;
        let checked = narrowed.check(path, &value, &Budget::steps(MAX_INLINE_STEPS));
        checked.map_err(|refusal| match refusal {
            Refusal::Final(error) => error,
            Refusal::OverBudget(_) => changed(path),
        })
    }
}

fn changed(path: &str) -> Box<CoreError> {
    let message = "the rules for these arguments changed while the call waited; send it again";
    let error = CoreError::new(CallCode::Overloaded, message).path(path);
    Box::new(error.retry_after(SHORT_RETRY_DELAY).maybe_executed(false))
}
