//! Measures the broker once a second, by `/proc`: descriptors, threads, processes; and kills one source
//! process each time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use harness::{Run, children_of};
use serde_json::{Value, json};

use crate::clock::now;
use crate::plan::VICTIMS;

const PERIOD: Duration = Duration::from_secs(1);

/// One sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
    /// Processes of servers.
    pub(crate) servers: u64,
}

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

/// Measures until the run ends, and kills unless the broker is `resting`. Returns the samples and the number of killed processes.
pub(crate) fn watch(broker: u32, resting: &AtomicBool, over: &AtomicBool) -> (Vec<Sample>, u64) {
    let (mut samples, mut killed, mut turn) = (Vec::new(), 0, 0);
    let mut next = now() + PERIOD;
    while !over.load(Ordering::Relaxed) {
        if now() < next || resting.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
            continue;
        }
        next += PERIOD;
        let servers = servers(broker);
        samples.push(sample(broker, servers.len() as u64));
        for _ in 0..VICTIMS {
            turn = turn % VICTIMS + 1;
            let journal = format!("s{turn}.log");
            if let Some((pid, _)) = servers.iter().find(|(_, name)| *name == journal) {
                killed += u64::from(kill(*pid));
                break;
            }
        }
    }
    (samples, killed)
}

/// The maxima of a tenth of the samples.
pub(crate) fn tenth(samples: &[Sample], which: usize) -> Option<Sample> {
    let length = samples.len() / 10;
    let part = samples.get(which * length..(which + 1) * length)?;
    let most = |of: fn(&Sample) -> u64| part.iter().map(of).max();
    Some(Sample {
        descriptors: most(|sample| sample.descriptors)?,
        threads: most(|sample| sample.threads)?,
        servers: most(|sample| sample.servers)?,
    })
}

impl Sample {
    pub(crate) fn to_json(self) -> Value {
        json!({
            "descriptors": self.descriptors,
            "threads": self.threads,
            "servers": self.servers,
        })
    }
}

fn sample(broker: u32, servers: u64) -> Sample {
    Sample {
        threads: status(broker, "Threads:"),
        descriptors: descriptors(broker),
        servers,
    }
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
fn descriptors(pid: u32) -> u64 {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    entries.map_or(0, |entries| entries.count() as u64)
}

fn kill(pid: u32) -> bool {
    let kill = Run::new(Path::new("/bin/sh")).args(["-c", &format!("kill -9 {pid}")]);
    kill.output().code == Some(0)
}
