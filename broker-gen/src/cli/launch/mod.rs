//! Launches sources, several at a time, with a line for each on a terminal.

pub(super) mod launch_all;
pub(super) mod live;
mod progress;
pub(super) mod snapshot_all;
