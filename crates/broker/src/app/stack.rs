//! The layers of a served broker.

use std::sync::Arc;

use broker_jobs::{Jobs, Keeper};
use broker_observe::{CallLog, Observers, Recorded};

use crate::core::{Core, DynBroker};

/// A core with its layers, from the outermost one to the core.
pub(crate) type Stack = Recorded<Jobs<Core>>;

/// Puts the layers around a core: the record of a call is outermost, so that it has what the layers below refuse.
pub(crate) fn stack(core: Core, observers: Observers, jobs: Option<Arc<Keeper>>) -> Stack {
    let jobs = match jobs {
        Some(keeper) => Jobs::new(core, keeper),
        None => Jobs::off(core),
    };
    Recorded::new(jobs, observers.with(CallLog))
}

/// Returns the broker that makes the calls of jobs: each has a record, and makes no job.
pub(crate) fn runner(core: Core, observers: Observers) -> DynBroker {
    DynBroker::new(Recorded::new(core, observers.with(CallLog)))
}
