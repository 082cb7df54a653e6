//! Removes the containers that a killed broker left. Plain threads do so, since no runtime runs then.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tokio::time::Instant;

use super::{Container, END, LIST, Target};

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
        remove_all(&parse(&bytes));
    }
}

/// Removes the containers of this process.
pub(crate) fn remove_own() {
    // A thread that holds the list may be stopped.
    if let Ok(list) = LIST.try_lock() {
        remove_all(&list.containers);
    }
}

/// Removes all of them at the same time, and waits for the end of the programs that do so.
fn remove_all(containers: &[Container]) {
    let by = Instant::now() + SWEEP_TIMEOUT;
    let started = containers.iter().filter_map(Container::start_removal);
    let mut running: Vec<_> = started.collect();
    loop {
        // An error says that another thread has taken the exit status.
        running.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if running.is_empty() {
            break;
        }
        if Instant::now() >= by {
            for mut child in running {
                // It has ended since, if this fails.
                let _: io::Result<()> = child.kill();
            }
            break;
        }
        sleep(POLL_INTERVAL);
    }
    containers.iter().for_each(Container::remove_file);
}

/// Reads the containers of a list. The last one of a list that was cut is left out.
pub(super) fn parse(bytes: &[u8]) -> Vec<Container> {
    let texts: Vec<&[u8]> = bytes.split(|byte| *byte == END).collect();
    // The text after the last end is empty, or was cut.
    let whole = texts.len().saturating_sub(1);
    let mut texts = texts[..whole].iter().copied();
    std::iter::from_fn(|| Container::read(&mut texts)).collect()
}

impl Container {
    fn read<'b>(texts: &mut impl Iterator<Item = &'b [u8]>) -> Option<Self> {
        let mut next = || Some(OsString::from_vec(texts.next()?.to_vec()));
        let (program, folder) = (next()?.into(), next()?.into());
        let (kind, target) = (next()?, next()?);
        let target = match kind.to_str()? {
            "name" => Target::Name(target.into_string().ok()?),
            kind => Target::IdFile {
                file: target.into(),
                is_ours: kind == "own file",
            },
        };
        let args: usize = next()?.to_str()?.parse().ok()?;
        let args = (0..args).map(|_| next()).collect::<Option<_>>()?;
        let variables: usize = next()?.to_str()?.parse().ok()?;
        let mut env = Vec::new();
        for _ in 0..variables {
            env.push((next()?, next()?));
        }
        Some(Self {
            program,
            args,
            folder,
            env,
            target,
        })
    }

    /// Starts the program that removes it.
    #[expect(
        clippy::disallowed_methods,
        reason = "not a server: the thread that starts it waits for it"
    )]
    fn start_removal(&self) -> Option<Child> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(self.id()?)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if self.folder.is_dir() {
            command.current_dir(&self.folder);
        }
        command.spawn().ok()
    }
}
