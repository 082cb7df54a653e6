//! Measures the memory of the broker between two tenths of the calls, when none is in flight. Under load
//! it depends on the calls of that moment: it was seen to change by 10 % from one minute to the next.

use std::fs;
use std::path::Path;

use harness::wait_until;

use crate::resources::status;

/// A change of the memory that needs no further measurement.
const SETTLED_KIB: u64 = 64;

/// The resident memory in KiB, without free memory of the heap, once connections and servers of the
/// last calls have ended. The process answers requests in `folder`.
pub(crate) fn memory(broker: u32, folder: &Path) -> u64 {
    let mut memory = trimmed(broker, folder);
    wait_until("the memory of the broker changes no more", || {
        let previous = std::mem::replace(&mut memory, trimmed(broker, folder));
        memory.abs_diff(previous) <= SETTLED_KIB
    });
    memory
}

fn trimmed(broker: u32, folder: &Path) -> u64 {
    let request = folder.join(format!("trim-{broker}"));
    fs::write(&request, "").expect("the folder of the run can be written");
    wait_until("the broker has trimmed its heap", || !request.exists());
    status(broker, "VmRSS:")
}
