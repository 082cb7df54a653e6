//! Runs a verb that starts sources or models, until it ends or is interrupted. A verb that starts sources runs under a
//! guard, as a broker does: if one of the two processes is killed, the other ends every server and removes its container.

use std::io;
use std::time::Duration;

use broker_model::exit::Exit;
use broker_process::guard::{self, Deadline, Input, ProcessRole, ReloadSignals, Signals};
use tokio::signal::unix::{SignalKind, signal};

use super::output;

/// Time for interrupted servers to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for pending output to be written.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time from an interrupt to the exit, even if the output is not read. Shorter than the time after which a guarded
/// process ends itself with another exit code.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(12);

/// The signals that interrupt a verb.
#[derive(Debug)]
pub(super) enum Interrupts {
    /// They arrive at the guard, or at the thread that receives them for this process.
    Guarded(Signals, ReloadSignals),
    /// They arrive at this process. It starts no source.
    Unguarded,
}

/// The role of this process.
#[derive(Debug)]
pub(super) enum UnderGuard {
    /// It was the guard, and the program has ended: the code to exit with.
    Guard(u8),
    /// It runs the verb.
    Program(Interrupts),
}

impl Interrupts {
    /// Starts this program again under a guard. Must be called before any thread is started.
    pub(super) fn under_guard() -> io::Result<UnderGuard> {
        Ok(match guard::enter(Input::Standard)? {
            ProcessRole::Guard(code) => UnderGuard::Guard(code),
            ProcessRole::Broker(signals, hangups) => {
                UnderGuard::Program(Self::Guarded(signals, hangups))
            }
        })
    }

    /// Waits for the first one.
    async fn next(self) -> io::Result<()> {
        match self {
            Self::Guarded(mut signals, mut hangups) => {
                tokio::select! {
                    () = signals.stop() => {}
                    // The terminal was closed.
                    () = hangups.next() => {}
                }
            }
            Self::Unguarded => {
                let mut interrupt = signal(SignalKind::interrupt())?;
                let mut terminate = signal(SignalKind::terminate())?;
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
        }
        Ok(())
    }
}

/// Runs a verb that starts sources or models.
pub(super) fn launching(interrupts: Interrupts, verb: impl Future<Output = Exit>) -> Exit {
    match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => {
            let exit = runtime.block_on(until_interrupted(interrupts, verb));
            runtime.shutdown_timeout(OUTPUT_TIMEOUT);
            exit
        }
        Err(error) => output::failure(&format!("the runtime cannot be started: {error}")),
    }
}

/// Runs the verb; SIGINT and SIGTERM end it and every process that it started.
async fn until_interrupted(interrupts: Interrupts, verb: impl Future<Output = Exit>) -> Exit {
    let deadline = match Deadline::new() {
        Ok(deadline) => deadline,
        Err(error) => return output::failure(&format!("a thread cannot be started: {error}")),
    };
    // A separate task, since the verb may wait for a reader of its standard error.
    let interrupted = tokio::spawn(async move {
        interrupts.next().await?;
        deadline.end_within(INTERRUPT_TIMEOUT, Exit::Interrupted);
        io::Result::Ok(())
    });
    tokio::select! {
        exit = verb => return exit,
        interrupted = interrupted => if let Ok(Err(error)) = interrupted {
            return output::failure(&format!("signal handlers cannot be installed: {error}"));
        },
    }
    // The verb was dropped, and with it every handle of its processes.
    say_aside("interrupted: nothing was written, stopping the servers");
    if tokio::time::timeout(STOP_TIMEOUT, broker_process::all_ended())
        .await
        .is_err()
    {
        say_aside("processes of servers are still running");
    }
    Exit::Interrupted
}

/// Writes the line to standard error on another thread, so that the caller does not wait for a reader.
fn say_aside(line: &'static str) {
    drop(tokio::task::spawn_blocking(move || output::say(line)));
}
