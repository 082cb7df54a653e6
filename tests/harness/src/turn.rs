//! Holds the turn to write the files of a folder, so that a program that has read them waits before it writes.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;

use super::wait_until;

/// Runs a program that writes a file of the folder, and changes files after it has read them and before it writes.
///
/// # Panics
///
/// If the program does not wait for its turn.
pub fn changed_meanwhile<T: Send>(
    folder: &Path,
    run: impl FnOnce() -> T + Send,
    change: impl FnOnce(),
) -> T {
    let held = File::open(folder).expect("a folder");
    held.lock().expect("no other program writes");
    let inode = held.metadata().expect("a folder").ino();
    thread::scope(|scope| {
        let running = scope.spawn(run);
        wait_until("a program waits for its turn", || is_awaited(inode));
        change();
        drop(held);
        running.join().expect("it ends")
    })
}

/// Whether a program waits for a lock of the file with this number.
fn is_awaited(inode: u64) -> bool {
    let locks = fs::read_to_string("/proc/locks").expect("the locks of this machine");
    let place = format!(":{inode} ");
    locks
        .lines()
        .any(|line| line.contains("-> FLOCK") && line.contains(&place))
}
