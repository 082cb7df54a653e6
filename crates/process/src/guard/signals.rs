//! The signals of a broker: SIGTERM and Ctrl-C stop it, SIGHUP reloads its config, and the death of its guard ends all
//! its processes. One thread receives them; a runtime cannot block it.

use std::io;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use broker_model::exit::Exit;
use rustix::process::{Pid, Signal};
use tokio::sync::watch;

use super::Deadline;
use crate::unix::{BlockedSignals, ReceivedSignal};

const HANDLED_SIGNALS: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];
/// Signals that the broker blocks. Outside the terminal's process group it must not be stopped for
/// writing its log to the terminal, and it must not be killed for writing to a file that has reached
/// the size limit. Such a write fails instead, and so does a read from the terminal.
const DEFERRED_SIGNALS: [Signal; 3] = [Signal::TTIN, Signal::TTOU, Signal::XFSZ];

/// The signal by which the broker begins the timeout of its guard again.
#[cfg(target_os = "linux")]
pub(super) const POSTPONE: Signal = Signal::USR1;

/// Maximum time for the broker to end after the first stop signal: slightly more than the longest
/// orderly shutdown. The timeout of the guard is longer.
const END_TIMEOUT: Duration = Duration::from_secs(13);
/// Maximum time for the broker to end after the second stop signal.
const IMMEDIATE_END_TIMEOUT: Duration = Duration::from_secs(3);

/// Stop signals; a signal between two waits is not lost.
#[derive(Debug)]
pub struct Signals {
    orders: watch::Receiver<u32>,
    received: u32,
    end: EndTimeout,
}

/// The time that an orderly shutdown has, for the broker and its guard.
#[derive(Clone, Debug)]
pub struct EndTimeout {
    deadline: Arc<Deadline>,
    guard: Option<Pid>,
}

impl EndTimeout {
    /// Begins the time again, since the shutdown waits for calls and its threads run. Without effect before the first stop
    /// signal and after the second one. Called more often than `END_TIMEOUT` has room for.
    pub fn postpone(&self) {
        self.deadline.postpone(END_TIMEOUT, Exit::Failure);
        #[cfg(target_os = "linux")]
        if let Some(guard) = self.guard {
            // A guard that is gone has no timeout either.
            let _: rustix::io::Result<()> = rustix::process::kill_process(guard, POSTPONE);
        }
    }
}

/// Reload signals.
#[derive(Debug)]
pub struct ReloadSignals(watch::Receiver<u32>);

/// Starts the thread that receives the signals.
pub(super) fn listen(guard: Option<Pid>) -> io::Result<(Signals, ReloadSignals)> {
    let signals = BlockedSignals::block(&HANDLED_SIGNALS)?;
    BlockedSignals::block(&DEFERRED_SIGNALS)?;
    #[cfg(target_os = "linux")]
    if guard.is_some() {
        // The blocked signals are inherited from the guard.
        BlockedSignals::block_only(&[&HANDLED_SIGNALS[..], &DEFERRED_SIGNALS].concat())?;
        // So far the death of the guard would have killed this process; from here on it sends SIGTERM.
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    }
    // Started before the first signal, so that a signal needs no memory and no thread.
    let deadline = Arc::new(Deadline::new()?);
    let end = EndTimeout {
        deadline: Arc::clone(&deadline),
        guard,
    };
    let (stops, orders) = watch::channel(0);
    let (hangups, reloads) = watch::channel(0);
    thread::Builder::new()
        .name("mcp-signals".to_owned())
        .spawn(move || {
            let mut stop = StopCounter::default();
            loop {
                let taken = signals.take();
                #[cfg(target_os = "linux")]
                if guard.is_some_and(is_gone) {
                    end_without_guard();
                }
                match taken.signal {
                    Some(Signal::HUP) => hangups.send_modify(|count| *count += 1),
                    Some(Signal::TERM | Signal::INT) => {
                        let count = stop.count(&taken, guard);
                        // First, since the next step takes locks.
                        if count > 1 {
                            deadline.end_within(IMMEDIATE_END_TIMEOUT, Exit::Interrupted);
                        } else {
                            deadline.end_within(END_TIMEOUT, Exit::Failure);
                        }
                        stops.send_replace(count);
                    }
                    _ => {}
                }
            }
        })?;
    Ok((
        Signals {
            orders,
            received: 0,
            end,
        },
        ReloadSignals(reloads),
    ))
}

/// Makes a write beyond the limit on file sizes fail instead of ending the process. For programs other
/// than the broker; must be called before any thread is started.
pub fn fail_large_writes() -> io::Result<()> {
    BlockedSignals::block(&[Signal::XFSZ])?;
    Ok(())
}

/// Counts stop signals by their sender. `pkill`, a terminal and some service managers signal both guard
/// and broker, and the guard forwards its signal: this counts once, not twice.
#[derive(Debug, Default)]
struct StopCounter {
    forwarded: u32,
    direct: u32,
}

impl StopCounter {
    /// Returns the number of stop signals, including this one.
    fn count(&mut self, taken: &ReceivedSignal, guard: Option<Pid>) -> u32 {
        if guard.is_some() && taken.sender == guard {
            self.forwarded += 1;
        } else {
            self.direct += 1;
        }
        self.forwarded.max(self.direct)
    }
}

/// Whether the guard is gone. The parent of an orphan changes at once.
#[cfg(target_os = "linux")]
fn is_gone(guard: Pid) -> bool {
    rustix::process::getppid() != Some(guard)
}

/// Whether the guard is gone, and a thread ends the descendants and this process.
#[cfg(target_os = "linux")]
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Does not return if a thread ends the servers of this process and then the process, since its guard was killed. `main`
/// calls it last: a program that ends because its servers are gone would end before their containers are removed.
pub fn await_end_without_guard() {
    #[cfg(target_os = "linux")]
    while IS_ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// Ends the descendants and this process now: without the guard, the descendants would survive a kill of this process.
#[cfg(target_os = "linux")]
fn end_without_guard() -> ! {
    use crate::unix::end_process;
    use rustix::process::{getpid, kill_process};
    let us = getpid();
    IS_ENDING.store(true, Ordering::SeqCst);
    crate::spawner::refuse_starts();
    // A separate thread writes this line, and the line may be lost: this function does not wait for it.
    let _: io::Result<thread::JoinHandle<()>> = thread::Builder::new().spawn(|| {
        tracing::error!("the guard process was killed: the broker stops every source and ends");
    });
    super::kill_all::end_all(us, &mut Vec::new);
    crate::containers::remove_own();
    let _: rustix::io::Result<()> = kill_process(us, Signal::KILL);
    end_process(Exit::Failure.code());
}

impl Signals {
    /// Returns the time that the shutdown after the first signal has.
    pub fn end_timeout(&self) -> EndTimeout {
        self.end.clone()
    }

    /// Waits for the next stop signal.
    pub async fn stop(&mut self) {
        let received = self.received;
        // The thread has ended: no further signals come.
        if self
            .orders
            .wait_for(|orders| *orders > received)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
        self.received += 1;
    }
}

impl ReloadSignals {
    /// Waits for the next reload signal; several in the meantime count once.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_signal_to_both_processes_counts_once() {
        let guard = Pid::from_raw(7);
        let from = |pid| ReceivedSignal {
            signal: Some(Signal::TERM),
            sender: Pid::from_raw(pid),
        };
        let mut stops = StopCounter::default();
        // Both processes were signalled, and the guard forwarded the signal.
        assert_eq!(stops.count(&from(9), guard), 1);
        assert_eq!(stops.count(&from(7), guard), 1);
        // The same again; the forwarded signal arrived first.
        assert_eq!(stops.count(&from(7), guard), 2);
        assert_eq!(stops.count(&from(0), guard), 2);
        // Two signals from one sender count twice.
        for sender in [7, 9] {
            let mut stops = StopCounter::default();
            assert_eq!(stops.count(&from(sender), guard), 1);
            assert_eq!(stops.count(&from(sender), guard), 2);
        }
        let mut stops = StopCounter::default();
        assert_eq!(stops.count(&from(0), None), 1);
        assert_eq!(stops.count(&from(9), None), 2);
    }

    #[tokio::test]
    async fn stop_signals_between_two_waits_are_not_lost() {
        let (sender, orders) = watch::channel(0);
        let mut signals = Signals {
            orders,
            received: 0,
            end: EndTimeout {
                deadline: Arc::new(Deadline::new().expect("a thread can be started")),
                guard: None,
            },
        };
        sender.send_replace(2);
        signals.stop().await;
        signals.stop().await;
        let third = tokio::time::timeout(std::time::Duration::from_millis(1), signals.stop());
        assert!(third.await.is_err());
    }
}
