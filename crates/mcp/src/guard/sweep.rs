//! Ends everything that a broker has started, at once, and whatever that started in turn.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Pid;
use tokio::time::Instant;

use super::cookie;
use crate::process::census::{self, Seen};

/// How often is looked again.
const LOOK: Duration = Duration::from_millis(5);
/// How long even what does not end by KILL is waited for.
const MOST: Duration = Duration::from_secs(2);

/// Kills what lives below `root` or has the cookie, until nothing does. `meanwhile` reaps, and names
/// the children of `root` that are to be left alone.
pub(super) fn end_all(root: Pid, meanwhile: &mut dyn FnMut() -> Vec<i32>) {
    let by = Instant::now() + MOST;
    loop {
        let spared = meanwhile();
        let left = census::broker_descendants(root, &spared, cookie());
        if left.is_empty() || Instant::now() >= by {
            return;
        }
        left.iter().for_each(Seen::kill);
        sleep(LOOK);
    }
}
