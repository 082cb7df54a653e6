//! Measures memory, descriptors and threads of the broker between two tenths of the calls, when none is in
//! flight. Under load they depend on the calls of that moment: memory was seen to change by 10 % from one
//! minute to the next, descriptors by half within a second.

use std::fs;
use std::path::Path;

use harness::wait_until;

use serde_json::{Value, json};

use crate::resources::{descriptors, status};

/// A change of the memory that needs no further measurement.
const SETTLED_KIB: u64 = 64;

/// What the broker holds when no call is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Resident KiB, without free memory of the heap.
    pub(crate) memory: u64,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
}

impl Rest {
    /// Measures once connections and servers of the last calls have ended. The process answers requests in
    /// `folder`.
    pub(crate) fn measure(broker: u32, folder: &Path) -> Self {
        let mut memory = trimmed(broker, folder);
        wait_until("the memory of the broker changes no more", || {
            let previous = std::mem::replace(&mut memory, trimmed(broker, folder));
            memory.abs_diff(previous) <= SETTLED_KIB
        });
        Self {
            memory,
            descriptors: descriptors(broker),
            threads: status(broker, "Threads:"),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        json!([self.memory, self.descriptors, self.threads])
    }
}

fn trimmed(broker: u32, folder: &Path) -> u64 {
    let request = folder.join(format!("trim-{broker}"));
    fs::write(&request, "").expect("the folder of the run can be written");
    wait_until("the broker has trimmed its heap", || !request.exists());
    status(broker, "VmRSS:")
}
