//! Returns memory to the system after many requests have waited: the C library keeps what small blocks leave free.

use std::time::Duration;

use broker_process::trim_heap;
use tokio::time::sleep;

use crate::services::Services;

/// The interval of looks at the charged memory.
const INTERVAL: Duration = Duration::from_secs(5);
/// The charged memory that is worth a return.
const MIN_BYTES: usize = 4 << 20;
/// Memory is returned when this part of the most that was charged is left.
const LEFT_PART: usize = 4;

impl Services {
    /// Returns memory whenever most of what was charged is free again, for as long as it runs.
    pub async fn keep_heap_trimmed(&self) {
        let mut most = 0;
        loop {
            sleep(INTERVAL).await;
            let used = self.memory().used();
            most = most.max(used);
            if most >= MIN_BYTES && used <= most / LEFT_PART {
                // It walks all heaps, so no thread of the runtime does it.
                drop(tokio::task::spawn_blocking(trim_heap).await);
                most = used;
            }
        }
    }
}
