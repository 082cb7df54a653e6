//! Removes the containers that a killed broker left. Plain threads do so, since no runtime runs then.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tokio::time::Instant;

use super::{Container, list, record};

/// Maximum time of all removals, which run at the same time.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between two looks at a program that removes a container.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Removes the containers that a broker left, by the memory that it shared.
pub(crate) fn remove_left(memory: &mut File) {
    let mut bytes = Vec::new();
    let read = memory
        .seek(SeekFrom::Start(0))
        .and_then(|_| memory.read_to_end(&mut bytes));
    if read.is_ok() {
        let (path, containers) = list::parse_shared(&bytes);
        if remove_all(&containers) {
            record::remove(&path);
        }
    }
}

/// Removes the containers of this process.
pub(crate) fn remove_own() {
    // A thread that holds the list may be stopped.
    if let Some(list) = list::try_lock()
        && remove_all(&list.containers)
        && let Some(path) = list.record_path()
    {
        record::remove(path);
    }
}

/// Removes all of them at the same time, and waits for the end of the programs that do so. Returns whether each one
/// succeeded: the next start removes the others.
fn remove_all(containers: &[Container]) -> bool {
    let by = Instant::now() + SWEEP_TIMEOUT;
    let started = containers.iter().map(Container::start_removal);
    let mut running: Vec<_> = containers.iter().zip(started).collect();
    let mut is_done = true;
    loop {
        running.retain_mut(|(container, removal)| {
            let ended = match removal {
                Removal::Started(child) => child.try_wait(),
                Removal::Unnecessary => return false,
                Removal::Failed => {
                    is_done = false;
                    return false;
                }
            };
            let is_removed = match ended {
                Ok(None) => return true,
                Ok(Some(status)) => status.success(),
                // Another thread has taken the exit status.
                Err(_) => false,
            };
            if is_removed {
                container.remove_file();
            }
            is_done &= is_removed;
            false
        });
        if running.is_empty() {
            return is_done;
        }
        if Instant::now() >= by {
            for (_, removal) in running {
                if let Removal::Started(mut child) = removal {
                    // It has ended since, if this fails.
                    let _: io::Result<()> = child.kill();
                }
            }
            return false;
        }
        sleep(POLL_INTERVAL);
    }
}

/// The start of a program that removes a container.
enum Removal {
    Started(Child),
    Failed,
    /// Its id was not written, so that it was not made.
    Unnecessary,
}

impl Container {
    /// Starts the program that removes it.
    #[expect(
        clippy::disallowed_methods,
        reason = "not a server: the thread that starts it waits for it"
    )]
    fn start_removal(&self) -> Removal {
        let Some(id) = self.id() else {
            return Removal::Unnecessary;
        };
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(id)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if self.folder.is_dir() {
            command.current_dir(&self.folder);
        }
        command.spawn().map_or(Removal::Failed, Removal::Started)
    }
}
