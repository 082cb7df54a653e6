//! Returns the free memory of the heap to the system when the soak asks for it. The C library keeps it
//! otherwise, more or less of it from one minute to the next, so that a leak would not be seen.

use std::path::Path;
use std::time::Duration;
use std::{env, fs, process, thread};

/// The time between two looks for a request.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Starts the thread that answers requests: the soak creates a file in the folder that the variable
/// `SOAK` names, and this process removes it once its heap is trimmed.
pub(crate) fn answer_requests() {
    let Some(folder) = env::var_os("SOAK") else {
        return;
    };
    let request = Path::new(&folder).join(format!("trim-{}", process::id()));
    thread::spawn(move || {
        loop {
            thread::sleep(POLL_INTERVAL);
            if request.exists() {
                broker_process::trim_heap();
                // If this fails, the soak reports that its request was not answered.
                let _ = fs::remove_file(&request);
            }
        }
    });
}
