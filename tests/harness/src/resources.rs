//! The resources of a broker: processes, strays, files, threads, memory. Measured before and after a
//! test.

use std::fs;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::program::{children_of, holds, is_alive};

/// The variable that every child of a broker has, with a value unique to that broker.
const COOKIE: &str = "MCP_BROKER_COOKIE=";
/// The difference in open files that does not count as a leak.
const FILES_ASTRAY: usize = 2;

/// The resources of a broker at one moment.
#[derive(Clone, Debug)]
pub struct ResourceUsage {
    /// Names of all living descendants, sorted.
    pub processes: Vec<String>,
    /// Living processes with the broker's cookie that are not its descendants.
    pub strays: Vec<u32>,
    /// Open files; 0 for a user other than root, who cannot see them.
    pub files: usize,
    /// Threads.
    pub threads: usize,
    /// Resident memory in KiB.
    pub resident: u64,
    /// The peak of the resident memory, in KiB.
    pub peak: u64,
}

impl ResourceUsage {
    /// Measures the resources of the broker that was started as `pid`.
    pub fn measure(pid: u32) -> Self {
        let descendants = children_of(pid);
        let broker = serving(pid, &descendants);
        Self {
            processes: names(&descendants),
            strays: strays(&descendants),
            files: count(broker, "fd"),
            threads: count(broker, "task"),
            resident: memory(broker, "VmRSS:"),
            peak: memory(broker, "VmHWM:"),
        }
    }

    /// Waits until the broker has the same resources as before: the same processes, no stray, nearly as
    /// many files. Returns its resources.
    pub fn await_again(&self, pid: u32) -> Self {
        let mut now = Self::measure(pid);
        holds("the broker holds what it held before", || {
            now = Self::measure(pid);
            self.is_again(&now)
                .then_some(())
                .ok_or_else(|| format!("before: {self:?}\nnow: {now:?}"))
        });
        now
    }

    fn is_again(&self, now: &Self) -> bool {
        now.processes == self.processes
            && now.strays.is_empty()
            // Fewer files are idle connections that were closed meanwhile.
            && now.files <= self.files + FILES_ASTRAY
    }
}

/// Raises the limit of open files of this process, if it is lower. A process that it starts has the same limit.
pub fn raise_file_limit(files: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files) {
        let raised = Rlimit {
            current: Some(files),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).expect("the hard limit allows it");
    }
}

/// The processor time that the broker that was started as `pid` has used, in hundredths of a second.
pub fn processor_time(pid: u32) -> u64 {
    let broker = serving(pid, &children_of(pid));
    let stat = fs::read_to_string(format!("/proc/{broker}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
    let fields = fields.unwrap_or_default();
    let times = fields.split_whitespace().skip(11).take(2);
    times.filter_map(|time| time.parse::<u64>().ok()).sum()
}

/// The names of the threads of the broker that was started as `pid`, sorted.
pub fn thread_names(pid: u32) -> Vec<String> {
    let broker = serving(pid, &children_of(pid));
    let threads = fs::read_dir(format!("/proc/{broker}/task"));
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).ok();
    let threads = threads.into_iter().flatten().flatten();
    let mut names: Vec<String> = threads
        .filter_map(name)
        .map(|name| name.trim().to_owned())
        .collect();
    names.sort();
    names
}

/// The process that serves: the child, if the program has a guard process.
fn serving(pid: u32, descendants: &[u32]) -> u32 {
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own: Option<PathBuf> = program(pid);
    let same = descendants.iter().find(|below| program(**below) == own);
    same.copied().unwrap_or(pid)
}

fn names(pids: &[u32]) -> Vec<String> {
    let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let mut names: Vec<String> = pids
        .iter()
        .filter_map(name)
        .map(|name| name.trim().to_owned())
        .collect();
    names.sort();
    names
}

fn cookie(pid: u32) -> Option<Vec<u8>> {
    let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = variables.split(|byte| *byte == 0);
    let cookie = variables.find(|variable| variable.starts_with(COOKIE.as_bytes()))?;
    Some(cookie.to_vec())
}

fn strays(descendants: &[u32]) -> Vec<u32> {
    let Some(ours) = descendants.iter().find_map(|pid| cookie(*pid)) else {
        return Vec::new();
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| !descendants.contains(pid) && is_alive(*pid))
        .filter(|pid| cookie(*pid).as_ref() == Some(&ours))
        .collect()
}

fn count(pid: u32, what: &str) -> usize {
    fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count)
}

fn memory(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or_default()
}
