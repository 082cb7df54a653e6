//! The process table from `/proc`: parents, children and cookies. A process is identified by its id and
//! start time, since ids are reused.

use rustix::process::Pid;

use super::cookie::{VARIABLE, has_variable};
use super::pinned_process::PinnedProcess;

/// An entry of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pid: i32,
    parent: i32,
    is_zombie: bool,
    started: u64,
}

impl ProcessEntry {
    pub(crate) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses `PID (NAME) STATE PARENT GROUP …`. The 22nd field is the start time. A name may contain any character.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_ends = memchr::memrchr(b')', stat)?;
        let rest = std::str::from_utf8(stat.get(name_ends + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self {
            pid,
            parent,
            is_zombie: matches!(state, "Z" | "X"),
            started,
        })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn is_child_of(&self, parent: i32) -> bool {
        self.parent == parent && self.is_alive()
    }

    /// Whether the process is alive. A zombie is not, unless only its first thread has ended.
    pub(crate) fn is_alive(&self) -> bool {
        !self.is_zombie || has_living_threads(self)
    }

    /// Pins the process of this entry, if it is still alive.
    pub(crate) fn pin(&self) -> Option<PinnedProcess> {
        let is_it = |now: Self| now.started == self.started && now.is_alive();
        PinnedProcess::pin(Pid::from_raw(self.pid)?, || {
            Self::read(self.pid).is_some_and(is_it)
        })
    }
}

/// Returns the ids of all processes.
pub(super) fn numbers() -> impl Iterator<Item = i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| process.file_name().to_str()?.parse().ok())
}

/// Returns the children of a process, zombies included.
pub(crate) fn children(parent: Pid) -> Vec<i32> {
    let parent = parent.as_raw_nonzero().get();
    let seen = numbers().filter_map(ProcessEntry::read);
    let children = seen.filter(|process| process.parent == parent);
    children.map(|process| process.pid).collect()
}

/// Returns the living processes whose cookie begins with `cookie`.
pub(crate) fn holders(cookie: &str) -> Vec<ProcessEntry> {
    let entry = format!("{VARIABLE}={cookie}-").into_bytes();
    let holders = numbers()
        .filter(|pid| has_variable(*pid, |variable| variable.starts_with(&entry)))
        .filter_map(ProcessEntry::read);
    holders.filter(ProcessEntry::is_alive).collect()
}

/// Whether a process whose first thread has ended has other threads.
fn has_living_threads(process: &ProcessEntry) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.pid));
    threads.is_ok_and(|threads| threads.count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_with_brackets_does_not_change_other_fields() {
        let stat = b"7 (a) Z 1 (b c) S 3 7 7 0 -1 4 1 1 1 1 1 1 1 1 20 0 1 0 4242 9 9";
        let seen = ProcessEntry::parse(7, stat).expect("it is whole");
        assert_eq!((seen.parent, seen.started), (3, 4242));
        assert!(!seen.is_zombie);
        for torn in [&b""[..], b"7 (a", b"7 (a) S", b"7 (a) S 1 1 1"] {
            assert_eq!(ProcessEntry::parse(7, torn), None);
        }
    }

    #[test]
    fn descendants_are_identified_by_pid_and_start_time() {
        #[expect(
            clippy::disallowed_methods,
            reason = "a process that no spawner knows of"
        )]
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & echo started; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut String::new()).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(crate::children::own().unwrap().contains(&pid));
        assert!(children(rustix::process::getpid()).contains(&pid));
        let below = crate::children::descendants_of(pid);
        let [sleeper] = below.as_slice() else {
            panic!("one process is below the shell: {below:?}");
        };
        assert_eq!(children(Pid::from_raw(pid).unwrap()), [sleeper.pid()]);
        // A process that reuses the id of the entry is another process.
        let other = ProcessEntry {
            started: 0,
            ..*sleeper
        };
        assert!(other.pin().is_none());
        assert!(sleeper.pin().unwrap().kill());
        assert!(child.wait().unwrap().code().is_some());
    }
}
