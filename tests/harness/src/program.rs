//! Runs programs to their end, and inspects processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::binaries::build_servers;

/// The timeout of a wait in a test. Generous: machines are shared.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Copies a program, to be executed at once. Another process does it: a process that a test starts meanwhile would inherit
/// the open copy, and no file that is open for writing can be executed.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Run::new(Path::new("cp")).args([from, to]).output();
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
}

/// A program to run: arguments, folder, environment. Secrets and `CI` are removed from the environment,
/// so that tests behave the same everywhere.
#[derive(Debug)]
pub struct Run {
    command: Command,
}

/// The output and exit of a program.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Prepares `program`. If it is a broker of this workspace, missing servers of its config are built.
    pub fn new(program: &Path) -> Self {
        build_servers(program);
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the programs that they test"
        )]
        let mut command = Command::new(program);
        for name in [
            "CI",
            "MCP_BROKER_CONFIG",
            "MCP_BROKER_LOCKED",
            "MCP_BROKER_SECRET",
            "ZYRA_API_KEY",
            "ZYRA_ENABLE_MCP",
            "ZYRA_MCP_MAX_BODY_BYTES",
        ] {
            command.env_remove(name);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self { command }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it with another program, which gets these arguments, and then the program and its own: `sh
    /// -c 'ulimit -n 64; exec "$0" "$@"'`. Variables stay; the folder does not.
    #[must_use]
    pub fn through(self, program: &str, args: &[&str]) -> Self {
        let mut outer = Self::new(Path::new(program));
        outer.command.args(args);
        outer.command.arg(self.command.get_program());
        outer.command.args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => outer.command.env(name, value),
                None => outer.command.env_remove(name),
            };
        }
        outer
    }

    /// Runs it to its end in a terminal; its exit code and the screen.
    pub fn on_terminal(self) -> (Option<i32>, String) {
        crate::on_terminal(self.command, "")
    }

    /// Runs it to its end.
    pub fn output(mut self) -> Output {
        let output = self.command.output().expect("the program starts");
        Output {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts it with its input open; its output is discarded.
    pub fn spawn_with_input(self) -> Child {
        let mut command = self.into_command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    /// Starts it with its input open, and these for its output.
    pub fn spawn_with_outputs(self, stdout: Stdio, stderr: Stdio) -> Child {
        let mut command = self.into_command();
        command.stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
        command.spawn().expect("the program starts")
    }

    /// The program and its arguments, as far as they are text.
    pub(crate) fn words(&self) -> Vec<String> {
        let program = std::iter::once(self.command.get_program());
        let words = program.chain(self.command.get_args());
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// The same with another word in place of the one at this index of [`Run::words`].
    pub(crate) fn with_word(self, at: usize, word: &Path) -> Self {
        let mut new = Self::new(Path::new(self.command.get_program()));
        for (index, argument) in self.command.get_args().enumerate() {
            let is_replaced = index + 1 == at;
            new.command.arg(if is_replaced {
                word.as_os_str()
            } else {
                argument
            });
        }
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => new.command.env(name, value),
                None => new.command.env_remove(name),
            };
        }
        if let Some(folder) = self.command.get_current_dir() {
            new.command.current_dir(folder);
        }
        new
    }

    /// The folder in which it will run.
    pub(crate) fn current_folder(&self) -> PathBuf {
        let folder = self.command.get_current_dir().map(Path::to_owned);
        folder.unwrap_or_else(|| std::env::current_dir().expect("there is a folder"))
    }

    pub(crate) fn into_command(self) -> Command {
        self.command
    }
}

/// A program that runs until it is dropped, which ends it with SIGTERM.
#[derive(Debug)]
pub struct Daemon(Child);

impl Daemon {
    /// Starts it.
    pub fn start(run: Run) -> Self {
        let mut command = run.into_command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the program starts"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let order = format!("kill -TERM {}", self.0.id());
        Run::new(Path::new("/bin/sh")).args(["-c", &order]).output();
        // No process of it must be left.
        let _ = self.0.wait();
    }
}

/// Polls a condition; panics with `what` if it does not become true.
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    wait_within(WAIT_TIMEOUT, what, condition);
}

/// Waits for a condition that takes long, within `limit`.
pub fn wait_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = now() + limit;
    while !condition() {
        assert!(now() < deadline, "waited too long: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for a condition that explains why it does not hold.
pub(crate) fn holds(what: &str, mut condition: impl FnMut() -> Result<(), String>) {
    let deadline = now() + WAIT_TIMEOUT;
    while let Err(why) = condition() {
        assert!(now() < deadline, "waited too long: {what}\n{why}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[expect(clippy::disallowed_methods, reason = "tests have no paused time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Every living descendant of a process, by `/proc`, zombies not counted.
pub fn children_of(pid: u32) -> Vec<u32> {
    let mut parents: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some((state, parent)) = state_and_parent(child)
            && state != "Z"
        {
            parents.entry(parent).or_default().push(child);
        }
    }
    let mut found = parents.remove(&pid).unwrap_or_default();
    let mut at = 0;
    while at < found.len() {
        found.extend(parents.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    found
}

/// The broker itself, given the process that was started. If that process is a guard, the broker is its
/// child with the same program, or the child that, like the guard, lets only root read its program. Another program may
/// have started the guard. Waits for a child that has only just begun.
pub fn guarded_by(pid: u32) -> u32 {
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    if !Path::new("/proc/self").exists() {
        return pid;
    }
    let mut found = None;
    wait_until("the guard has a broker", || {
        let mut children = children_of(pid).into_iter();
        found = children.find(|child| {
            let parent = state_and_parent(*child).map(|(_, parent)| parent);
            parent.is_some_and(|parent| program(*child) == program(parent))
        });
        found.is_some()
    });
    found.unwrap_or(pid)
}

/// Whether the process runs, other than as a zombie.
pub fn is_alive(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != "Z")
}

fn state_and_parent(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
