//! A control group for each source, below the broker's group, if the broker may create groups. One write ends all
//! processes in a group, regardless of their forks and of their parent.
//!
//! Controllers are not enabled, and groups outside the broker's group stay unchanged.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use tokio::time::Instant;

use crate::cookie::broker_cookie;

/// The interval between attempts to remove a group whose processes are ending.
const REMOVE_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum number of levels of groups, made by a server below its group, that are removed.
const MAX_LEVELS: usize = 16;
/// Digits of the cookie in the name of a group: a guard recognises its broker's groups by them.
const NAME_DIGITS: usize = 16;

/// The folder of the broker's group, once groups are enabled.
static OWN: OnceLock<PathBuf> = OnceLock::new();

/// Enables a group for each source that is started later, if that is possible.
pub(crate) fn enable() {
    if let Some(folder) = own_folder() {
        OWN.get_or_init(|| folder);
    }
}

/// A control group for one source. Dropping it kills the processes in it.
#[derive(Debug)]
pub(super) struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// Creates a control group, and opens the file for processes that join it. `None` if the system has no such groups.
    pub(super) fn create() -> Option<(Self, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = OWN.get()?.join(format!("{}{number}", name_prefix()));
        if let Err(error) = fs::create_dir(&folder) {
            tracing::debug!(%error, "the source has no control group: it cannot be created");
            return None;
        }
        let group = Self { folder };
        let procs = File::options()
            .write(true)
            .open(group.folder.join("cgroup.procs"));
        match procs {
            // Older kernels cannot end a whole group.
            Ok(procs) if group.folder.join("cgroup.kill").exists() => Some((group, procs)),
            Ok(_) | Err(_) => None,
        }
    }

    /// Kills the processes in the group and removes it. Returns whether that was done in time.
    pub(super) fn end(self, time: Duration) -> bool {
        end(&self.folder, Instant::now() + time)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        kill(&self.folder);
        remove(&self.folder, 0);
    }
}

/// Kills the processes in all control groups of this broker.
pub(crate) fn kill_all() {
    all().iter().for_each(|folder| kill(folder));
}

/// Kills the processes in all control groups of this broker, and removes the groups.
pub(crate) fn end_all(time: Duration) {
    let by = Instant::now() + time;
    for folder in all() {
        end(&folder, by);
    }
}

/// Returns the control groups of this broker. Also works in the broker's guard.
fn all() -> Vec<PathBuf> {
    let Some(own) = own_folder() else {
        return Vec::new();
    };
    let prefix = name_prefix();
    let groups = fs::read_dir(own).into_iter().flatten().flatten();
    groups
        .filter(|group| {
            group
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(&prefix))
        })
        .map(|group| group.path())
        .collect()
}

fn name_prefix() -> String {
    let cookie = broker_cookie();
    format!(
        "mcp-broker-{}-",
        cookie.get(..NAME_DIGITS).unwrap_or(cookie)
    )
}

fn end(folder: &Path, by: Instant) -> bool {
    loop {
        kill(folder);
        if remove(folder, 0) {
            return true;
        }
        if Instant::now() >= by {
            return false;
        }
        sleep(REMOVE_INTERVAL);
    }
}

fn kill(folder: &Path) {
    // A group that is gone has no processes, so an error is ignored.
    let _: io::Result<()> = fs::write(folder.join("cgroup.kill"), "1");
}

/// Removes the group and every group below it. Returns whether they are gone.
fn remove(folder: &Path, level: usize) -> bool {
    let removed = |folder: &Path| match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if removed(folder) {
        return true;
    }
    if level < MAX_LEVELS {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            remove(&entry.path(), level + 1);
        }
    }
    removed(folder)
}

/// Returns the folder of the control group of this process, in the hierarchy of version 2.
fn own_folder() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    folder_of(&groups, &mounts)
}

/// Returns the folder of the process's group; `None` for the root of the hierarchy or of a namespace, since processes
/// that are not the broker's live there too.
fn folder_of(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    if path == "/" || !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return None;
    }
    mounts.lines().find_map(|line| {
        // NUMBER PARENT DEVICE ROOT PLACE OPTIONS … - TYPE …
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        let is_below = kind.starts_with("cgroup2 ") && below != Path::new("");
        is_below.then(|| Path::new(place).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_folder_is_found_below_its_mount_except_the_root() {
        let hybrid = "31 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        let folder = |groups: &str, mounts: &str| folder_of(groups, mounts);
        let unit = "8:pids:/\n0::/system.slice/my.service\n";
        let expected = Path::new("/sys/fs/cgroup/unified/system.slice/my.service");
        assert_eq!(folder(unit, hybrid).as_deref(), Some(expected));
        // Only a part of the hierarchy is mounted.
        let part = "41 31 0:38 /system.slice /groups rw - cgroup2 none rw\n";
        assert_eq!(
            folder(unit, part).as_deref(),
            Some(Path::new("/groups/my.service"))
        );
        let other = "41 31 0:38 /user.slice /groups rw - cgroup2 none rw\n";
        let itself = "41 31 0:38 /system.slice/my.service /groups rw - cgroup2 none rw\n";
        let older = "41 31 0:38 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
        for mounts in ["", other, itself, older, "nonsense - cgroup2"] {
            assert_eq!(folder(unit, mounts), None, "{mounts}");
        }
        for groups in ["", "0::/", "0::/..", "0::/../other", "8:pids:/x", "0::x"] {
            assert_eq!(folder(groups, hybrid), None, "{groups}");
        }
    }
}
