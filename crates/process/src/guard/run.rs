//! The guard process: starts the broker, forwards signals, reaps orphans, and ends the processes that
//! the broker leaves. One thread, no runtime; can be process 1 of a container.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process,
    set_child_subreaper, wait, waitid,
};

use tokio::time::Instant;

use super::signals::POSTPONE;
use super::{ALLOCATOR, Input, VARIABLE, guarded, kill_all};
use crate::containers;
use crate::cookie::broker_cookie;
use crate::proc_table;
use crate::unix::{BlockedSignals, die_with_parent, enable_sigchld};

/// The signals that are forwarded, and SIGCHLD.
const FORWARDED_SIGNALS: [Signal; 9] = [
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

/// The exit code of a program that was ended by a signal is this plus the number of the signal, as in a
/// shell.
const SIGNAL_EXIT_BASE: i32 = 128;

/// The time that the broker has to end after the guard has forwarded the first stop signal. The
/// deadline in the broker is shorter, so this one applies only if no thread of the broker can run.
const BROKER_END_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time for the kernel to end a broker that was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Guards a broker from its start to its end and returns its exit code. Fails only if the broker could
/// not be started, and undoes all changes then.
pub(super) fn run(input: Input) -> io::Result<u8> {
    let us = getpid();
    // The program that executed this one may have had children; they are not descendants of the broker.
    enable_sigchld();
    let mut other_children = if has_children() {
        proc_table::children(us)
    } else {
        Vec::new()
    };
    let signals = BlockedSignals::block(&FORWARDED_SIGNALS)?;
    let started = set_child_subreaper(Some(us))
        .map_err(io::Error::from)
        .and_then(|()| guarded::take_guard_name())
        .and_then(|()| start(us, input));
    let (broker, mut memory) = match started {
        Ok(started) => started,
        Err(error) => {
            signals.unblock()?;
            // Later orphans do no harm to this process.
            let _: rustix::io::Result<()> = set_child_subreaper(None);
            guarded::take_name();
            return Err(error);
        }
    };
    release_stdio();
    let status = supervise(&signals, broker, &mut other_children);
    kill_all::end_all(us, &mut || {
        reap(broker, &mut other_children);
        other_children.clone()
    });
    // Containers are not descendants. The programs that remove them must not be ended by the lines above.
    if let Some(memory) = &mut memory {
        containers::remove_left(memory);
    }
    Ok(exit_code(status))
}

/// Returns the exit code of the broker, or as in a shell if a signal ended it or it cannot be ended.
fn exit_code(status: Option<WaitStatus>) -> u8 {
    let Some(status) = status else {
        return u8::try_from(SIGNAL_EXIT_BASE + Signal::KILL.as_raw()).unwrap_or(1);
    };
    let code = status.exit_status();
    let code = code.or(status
        .terminating_signal()
        .map(|signal| SIGNAL_EXIT_BASE + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Checks with one system call: this is quicker than reading the process table.
fn has_children() -> bool {
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, any), Err(rustix::io::Errno::CHILD))
}

/// Starts this program again, with the id of this process in its environment. Returns its id, and the memory that it
/// shares with this process.
#[expect(
    clippy::disallowed_methods,
    reason = "the guard has no runtime and one thread: its only child is the broker"
)]
fn start(us: Pid, input: Input) -> io::Result<(Pid, Option<File>)> {
    let mut arguments = std::env::args_os();
    // Not by its path: the file may have been replaced.
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments);
    // Without this memory, containers are left if the broker is killed.
    let memory = memfd_create("mcp-broker", MemfdFlags::empty()).ok();
    let number = memory.as_ref().map(AsRawFd::as_raw_fd);
    command.env(VARIABLE, guarded::value(us, broker_cookie(), number));
    for (name, value) in ALLOCATOR {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    // In a separate process group the broker survives a signal to the guard's group, and Ctrl-C is
    // forwarded. A broker that reads from a terminal has to be in the foreground group.
    if input == Input::None || !io::stdin().is_terminal() {
        command.process_group(0);
    }
    // Until the broker watches the guard itself. It inherits the blocked signals, so that no signal
    // arrives too early.
    die_with_parent(&mut command);
    let child = command.spawn()?;
    if let Some(memory) = &memory {
        fcntl_setfd(memory, FdFlags::CLOEXEC)?;
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the broker has no number"))?;
    Ok((pid, memory.map(File::from)))
}

/// Releases the pipes of the broker.
fn release_stdio() {
    let nothing = File::options().read(true).write(true).open("/dev/null");
    // A container may lack `/dev/null`. The guard then keeps the pipes open until it ends, shortly after the broker.
    // The guard does not report this: it does not write, since a log without a reader would block it.
    let _: Option<()> = nothing.ok().and_then(|nothing| {
        rustix::stdio::dup2_stdin(&nothing).ok()?;
        rustix::stdio::dup2_stdout(&nothing).ok()?;
        rustix::stdio::dup2_stderr(&nothing).ok()
    });
}

/// Forwards signals until the broker has ended, and kills it if it does not follow a stop signal.
/// Returns its status, or `None` if the kernel could not end it in time.
fn supervise(
    signals: &BlockedSignals,
    broker: Pid,
    other_children: &mut Vec<i32>,
) -> Option<WaitStatus> {
    let mut end_by: Option<Instant> = None;
    let mut is_killed = false;
    loop {
        let taken = match end_by {
            None => signals.take(),
            Some(end_by) => signals.take_within(end_by.saturating_duration_since(Instant::now())),
        };
        match taken.signal {
            Some(POSTPONE) if taken.sender == Some(broker) => {
                // Not once it is being killed, and not for a broker that was asked by another process.
                if !is_killed && let Some(end_by) = &mut end_by {
                    *end_by = Instant::now() + BROKER_END_TIMEOUT;
                }
            }
            Some(Signal::CHILD) => {
                let status = reap(broker, other_children);
                if status.is_some() {
                    return status;
                }
            }
            Some(signal) => {
                send(broker, forwarded(signal));
                if matches!(signal, Signal::TERM | Signal::INT) {
                    end_by.get_or_insert_with(|| Instant::now() + BROKER_END_TIMEOUT);
                }
                if signal == Signal::TSTP {
                    // Ctrl-Z stops both processes, and `fg` continues both.
                    send(getpid(), Signal::STOP);
                }
            }
            None => {}
        }
        if end_by.is_some_and(|end_by| Instant::now() >= end_by) {
            if is_killed {
                return None;
            }
            send(broker, Signal::KILL);
            is_killed = true;
            end_by = Some(Instant::now() + KILL_TIMEOUT);
        }
    }
}

/// Returns the signal that is sent to the broker for `signal`. The system keeps one pending signal of each kind: a
/// forwarded stop signal could merge with the same signal that was sent to the broker directly, and two would count as
/// one. So SIGINT is forwarded as SIGTERM and vice versa; the broker treats both alike.
const fn forwarded(signal: Signal) -> Signal {
    match signal {
        Signal::INT => Signal::TERM,
        Signal::TERM => Signal::INT,
        signal => signal,
    }
}

/// Sends a signal. The id of the broker cannot be reused before it was reaped.
fn send(process: Pid, signal: Signal) {
    // A process that has ended cannot be signalled; that error is ignored.
    let _: rustix::io::Result<()> = kill_process(process, signal);
}

/// Reaps every child that ended, including adopted orphans. Returns the status of the broker, if it is
/// among them.
fn reap(broker: Pid, other_children: &mut Vec<i32>) -> Option<WaitStatus> {
    let mut ended = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                other_children.retain(|child| *child != pid.as_raw_nonzero().get());
                if pid == broker {
                    ended = Some(status);
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return ended,
        }
    }
}
