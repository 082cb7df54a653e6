//! The guard's whole life: it starts the broker, hands signals on, reaps whoever was left to it, and
//! ends what the broker leaves behind. One thread, no runtime; fit to be process 1 of a container.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process,
    set_child_subreaper, wait, waitid,
};

use super::{ARENAS, Input, VARIABLE, cookie, kept, sweep};
use crate::process::census;
use crate::process::unix::{Held, die_with_parent, hear_of_children};

/// What is handed on, besides the news of children.
const HELD: [Signal; 9] = [
    Signal::CHILD,
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
];

/// What a shell adds to the number of the signal that ended a program.
const BY_SIGNAL: i32 = 128;

/// Guards a broker from its start to its end; gives its exit code. Fails only where no broker could
/// be started, with everything as it was.
pub(super) fn keep(input: Input) -> io::Result<u8> {
    let us = getpid();
    // Whoever became this program by `exec` may have had children, which are none of ours.
    hear_of_children();
    let mut strangers = if has_children() {
        census::children(us)
    } else {
        Vec::new()
    };
    let held = Held::hold(&HELD)?;
    let started = set_child_subreaper(Some(us))
        .map_err(io::Error::from)
        .and_then(|()| start(us, input));
    let broker = match started {
        Ok(broker) => broker,
        Err(error) => {
            held.release()?;
            if let Err(error) = set_child_subreaper(None) {
                tracing::debug!(%error, "orphans still come to this process");
            }
            return Err(error);
        }
    };
    let_go();
    let status = guard(&held, broker, &mut strangers);
    sweep::end_all(us, &mut || {
        reap(broker, &mut strangers);
        strangers.clone()
    });
    let code = status.exit_status();
    let code = code.or(status.terminating_signal().map(|signal| BY_SIGNAL + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Asks the system, which is quicker than to look at every process.
fn has_children() -> bool {
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, any), Err(rustix::io::Errno::CHILD))
}

/// Starts this program again, with who we are in its environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the guard has no runtime and one thread: its only child is the broker"
)]
fn start(us: Pid, input: Input) -> io::Result<Pid> {
    let mut arguments = std::env::args_os();
    // Not by its path: another file may lie there by now.
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments);
    command.env(VARIABLE, kept::value(us, cookie()));
    let (name, most) = ARENAS;
    if std::env::var_os(name).is_none() {
        command.env(name, most);
    }
    // In a group of its own the broker outlives whoever kills ours, and hears of Ctrl-C through us
    // alone. Only who reads from a terminal has to be in the group that the terminal listens to.
    if input == Input::None || !io::stdin().is_terminal() {
        command.process_group(0);
    }
    // Until it watches us by itself. What we hold back it begins to hold back as well, so that no
    // signal comes too early for it.
    die_with_parent(&mut command);
    let child = command.spawn()?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the broker has no number"))
}

/// Keeps no end of the broker's pipes open, and takes a name that nobody kills by mistake who means
/// the broker.
fn let_go() {
    let released = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|_| rustix::io::Errno::NOENT)
        .and_then(|nothing| {
            rustix::stdio::dup2_stdin(&nothing)?;
            rustix::stdio::dup2_stdout(&nothing)?;
            rustix::stdio::dup2_stderr(&nothing)
        });
    if released.is_err() {
        // A container without devices: the pipes end with us instead, which is soon after.
        tracing::debug!("the guard keeps the broker's pipes open");
    }
    if let Err(error) = rustix::thread::set_name(c"mcp-guard") {
        tracing::debug!(%error, "the guard keeps its name");
    }
}

/// Hands signals on until the broker has ended.
fn guard(held: &Held, broker: Pid, strangers: &mut Vec<i32>) -> WaitStatus {
    loop {
        match held.take().signal {
            Some(Signal::CHILD) => {
                if let Some(status) = reap(broker, strangers) {
                    return status;
                }
            }
            Some(signal) => {
                send(broker, signal);
                if signal == Signal::TSTP {
                    // Ctrl-Z stops both of us, and `fg` wakes both.
                    send(getpid(), Signal::STOP);
                }
            }
            None => {}
        }
    }
}

/// The broker's number is not given to another before it was reaped.
fn send(process: Pid, signal: Signal) {
    if let Err(error) = kill_process(process, signal) {
        tracing::debug!(%error, "a signal reached nobody");
    }
}

/// Takes note of every child that ended: ours, and those that were left to us. How the broker ended,
/// if it is among them.
fn reap(broker: Pid, strangers: &mut Vec<i32>) -> Option<WaitStatus> {
    let mut ended = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                strangers.retain(|stranger| *stranger != pid.as_raw_nonzero().get());
                if pid == broker {
                    ended = Some(status);
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return ended,
        }
    }
}
