//! Which processes there are, by `/proc`: who is whose child, and who has whose cookie. A process is
//! named by its number and the moment of its start, since numbers come round.

use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process_group};

use super::strays::{Stray, VARIABLE, has_variable};

/// A process as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pid: i32,
    parent: i32,
    leads_group: bool,
    is_zombie: bool,
    started: u64,
}

impl Seen {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `PID (NAME) STATE PARENT GROUP …`, of which the 22nd is the start. A name may hold anything.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_ends = memchr::memrchr(b')', stat)?;
        let rest = std::str::from_utf8(stat.get(name_ends + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group: i32 = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Self {
            pid,
            parent,
            leads_group: group == pid,
            is_zombie: matches!(state, "Z" | "X"),
            started,
        })
    }

    /// Ends it, and the group that it leads; nobody, where it is gone.
    pub(crate) fn kill(&self) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        let is_it = || Self::read(self.pid).is_some_and(|now| now.started == self.started);
        let Some(held) = Stray::hold(pid, is_it) else {
            return;
        };
        if self.leads_group
            && let Err(error) = kill_process_group(pid, Signal::KILL)
        {
            tracing::trace!(%error, "a group is gone already");
        }
        held.signal(true);
    }
}

/// The numbers of all processes.
pub(super) fn numbers() -> impl Iterator<Item = i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| process.file_name().to_str()?.parse().ok())
}

/// The children of a process, zombies included.
pub(crate) fn children(parent: Pid) -> Vec<i32> {
    let parent = parent.as_raw_nonzero().get();
    let seen = numbers().filter_map(Seen::read);
    let children = seen.filter(|process| process.parent == parent);
    children.map(|process| process.pid).collect()
}

/// What lives below `root` or was started with a cookie that begins with `cookie`; but `root` itself,
/// and the children in `spared` with all below them.
pub(crate) fn broker_descendants(root: Pid, spared: &[i32], cookie: &str) -> Vec<Seen> {
    let mut others: BTreeMap<i32, Vec<Seen>> = BTreeMap::new();
    for process in numbers().filter_map(Seen::read) {
        others.entry(process.parent).or_default().push(process);
    }
    let root = root.as_raw_nonzero().get();
    let mut found = others.remove(&root).unwrap_or_default();
    found.retain(|process| !spared.contains(&process.pid));
    let mut at = 0;
    while at < found.len() {
        found.extend(others.remove(&found[at].pid).unwrap_or_default());
        at += 1;
    }
    let entry = format!("{VARIABLE}={cookie}-").into_bytes();
    let strays = others.into_values().flatten().filter(|process| {
        process.pid != root && has_variable(process.pid, |variable| variable.starts_with(&entry))
    });
    found.extend(strays);
    // A zombie is not left, but it may lead a group, or be a leader whose threads go on.
    let living = |process: &Seen| !process.is_zombie || goes_on(process);
    found.retain(living);
    found
}

/// Whether a process whose first thread has ended has others.
fn goes_on(process: &Seen) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.pid));
    threads.is_ok_and(|threads| threads.count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lie_about_what_follows_it() {
        let stat = b"7 (a) Z 1 (b c) S 3 7 7 0 -1 4 1 1 1 1 1 1 1 1 20 0 1 0 4242 9 9";
        let seen = Seen::parse(7, stat).expect("it is whole");
        assert_eq!((seen.parent, seen.started), (3, 4242));
        assert!(seen.leads_group && !seen.is_zombie);
        for torn in [&b""[..], b"7 (a", b"7 (a) S", b"7 (a) S 1 1 1"] {
            assert_eq!(Seen::parse(7, torn), None);
        }
    }

    #[test]
    fn the_spared_and_all_below_them_are_left_out() {
        let us = rustix::process::getpid();
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
        let known = |spared: &[i32]| broker_descendants(us, spared, "nobody-has-this");
        let all = known(&[]);
        let sleeper = all.iter().find(|process| process.parent == pid).unwrap();
        assert!(all.iter().any(|process| process.pid == pid));
        assert!(children(us).contains(&pid));
        let spared = known(&[pid]);
        assert!(
            !spared
                .iter()
                .any(|process| process.pid == pid || process == sleeper)
        );
        // One that only has the number of what was seen is not killed.
        let other = Seen {
            started: 0,
            ..*sleeper
        };
        other.kill();
        assert!(Seen::read(other.pid).is_some_and(|now| !now.is_zombie));
        sleeper.kill();
        assert!(child.wait().unwrap().code().is_some());
    }
}
