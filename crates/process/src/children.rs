//! The children of a process, read from `/proc/PID/task/*/children`: a small file for each thread,
//! independent of the number of processes on the machine.

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use rustix::process::{Pid, getpid};

use super::proc_table::{self, ProcessEntry};

/// The maximum number of descendants that are examined at once.
pub(crate) const MAX_DESCENDANTS: usize = 256;

/// Not every kernel is built with these files.
static HAS_FILES: LazyLock<bool> =
    LazyLock::new(|| Path::new("/proc/thread-self/children").exists());

/// Returns the children of this process, zombies included. A child that starts or ends meanwhile may be missing.
pub(crate) fn own() -> io::Result<Vec<i32>> {
    if !*HAS_FILES {
        return Ok(proc_table::children(getpid()));
    }
    let mut found = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread that has ended has no children any more.
        match std::fs::read(thread?.path().join("children")) {
            Ok(text) => found.extend(numbers(&text)),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns the children of another process; empty if that process is gone.
pub(crate) fn list(parent: i32) -> Vec<i32> {
    if !*HAS_FILES {
        return Pid::from_raw(parent).map_or_else(Vec::new, proc_table::children);
    }
    let threads = std::fs::read_dir(format!("/proc/{parent}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let texts = threads.filter_map(|thread| std::fs::read(thread.path().join("children")).ok());
    texts.flat_map(|text| numbers(&text)).collect()
}

/// Returns the living descendants of a process.
pub(super) fn descendants_of(root: i32) -> Vec<ProcessEntry> {
    let mut found: Vec<ProcessEntry> = Vec::new();
    let (mut parent, mut at) = (root, 0);
    loop {
        let children = list(parent).into_iter().filter_map(ProcessEntry::read);
        found.extend(children.filter(|child| child.is_child_of(parent)));
        match found.get(at) {
            Some(next) if found.len() < MAX_DESCENDANTS => parent = next.pid(),
            _ => return found,
        }
        at += 1;
    }
}

fn numbers(text: &[u8]) -> Vec<i32> {
    let text = String::from_utf8_lossy(text);
    let numbers = text.split_ascii_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

fn is_gone(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || code == Some(rustix::io::Errno::SRCH.raw_os_error())
}
