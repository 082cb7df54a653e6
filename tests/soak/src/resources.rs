//! Counts the server processes of the broker once a second, by `/proc`, and kills one each time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use harness::{Run, children_of};

use crate::clock::now;
use crate::plan::VICTIMS;

const PERIOD: Duration = Duration::from_secs(1);

/// The process that serves: the one with the most descriptors, since another may be its guard.
pub(crate) fn worker(started: u32, program: &Path) -> u32 {
    let mut own = vec![started];
    own.extend(children_of(started));
    // Only root can see which program a broker and its guard run.
    let is_own = |exe: io::Result<PathBuf>| exe.map_or_else(is_denied, |exe| exe == program);
    own.retain(|pid| is_own(fs::read_link(format!("/proc/{pid}/exe"))));
    own.into_iter()
        .max_by_key(|pid| (descriptors(*pid), *pid))
        .unwrap_or(started)
}

/// The living server processes of a broker with the file name of their journals.
pub(crate) fn servers(broker: u32) -> Vec<(u32, String)> {
    let named = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let journal = line
            .split('\0')
            .find(|argument| argument.ends_with(".log"))?;
        Some((pid, journal.rsplit('/').next()?.to_owned()))
    };
    children_of(broker).into_iter().filter_map(named).collect()
}

/// Counts server processes until the run ends, and kills one each second unless the broker is `resting`.
/// Returns the most processes at once and the number of killed ones.
pub(crate) fn watch(broker: u32, resting: &AtomicBool, over: &AtomicBool) -> (usize, u64) {
    let (mut most, mut killed, mut turn) = (0, 0, 0);
    let mut next = now() + PERIOD;
    while !over.load(Ordering::Relaxed) {
        if now() < next || resting.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
            continue;
        }
        next += PERIOD;
        let servers = servers(broker);
        most = most.max(servers.len());
        for _ in 0..VICTIMS {
            turn = turn % VICTIMS + 1;
            let journal = format!("s{turn}.log");
            if let Some((pid, _)) = servers.iter().find(|(_, name)| *name == journal) {
                killed += u64::from(kill(*pid));
                break;
            }
        }
    }
    (most, killed)
}

/// A number in the status of a process; 0 if it has ended.
pub(crate) fn status(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

fn is_denied(error: io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// The number of open files; 0 for a user who cannot see them.
pub(crate) fn descriptors(pid: u32) -> u64 {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    entries.map_or(0, |entries| entries.count() as u64)
}

fn kill(pid: u32) -> bool {
    let kill = Run::new(Path::new("/bin/sh")).args(["-c", &format!("kill -9 {pid}")]);
    kill.output().code == Some(0)
}
