//! The requests that wait for the end of a job. Each owner has a bounded number of them, so that no caller holds all
//! connections open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_core::CoreError;

use crate::errors;

/// The maximum number of requests of one owner that wait. Callers without a credential are one owner.
const MAX_WAITS: usize = 32;

/// The numbers of waiting requests by owners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Arc<Mutex<HashMap<Option<String>, usize>>>);

/// The place of one waiting request; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct WaitPlace {
    waits: Waits,
    owner: Option<String>,
}

impl Waits {
    /// Takes a place for a request of an owner.
    pub(crate) fn begin(&self, owner: Option<String>) -> Result<WaitPlace, Box<CoreError>> {
        let mut waits = self.lock();
        let count = waits.entry(owner.clone()).or_default();
        if *count >= MAX_WAITS {
            return Err(errors::too_many_waits(MAX_WAITS));
        }
        *count += 1;
        drop(waits);
        Ok(WaitPlace {
            waits: self.clone(),
            owner,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<String>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitPlace {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        if let Some(count) = waits.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                waits.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use broker_core::CallCode;

    use super::*;

    #[test]
    fn waiting_requests_of_an_owner_are_bounded_and_others_have_their_places() {
        let waits = Waits::default();
        let owner = |name: &str| Some(name.to_owned());
        let places: Vec<_> = (0..MAX_WAITS)
            .map(|_| waits.begin(owner("a")).unwrap())
            .collect();
        let refused = waits.begin(owner("a")).unwrap_err();
        assert_eq!(refused.code, CallCode::Overloaded);
        assert!(waits.begin(owner("b")).is_ok());
        assert!(waits.begin(None).is_ok());
        drop(places);
        assert!(waits.begin(owner("a")).is_ok());
        assert!(
            waits.lock().is_empty(),
            "an owner without a request is forgotten"
        );
    }
}
