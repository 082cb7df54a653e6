//! The layers of a served broker.

use broker_observe::{CallLog, Observers, Recorded};

use crate::core::Core;

/// A core with its layers, from the outermost one to the core.
pub(crate) type Stack = Recorded<Core>;

/// Puts the layers around a core: the record of a call is outermost, so that it has what the layers below refuse.
pub(crate) fn stack(core: Core, observers: Observers) -> Stack {
    Recorded::new(core, observers.with(CallLog))
}
