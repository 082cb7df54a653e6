//! Tests that load the whole machine run while no other test of the same program has a broker: both
//! would exceed their time limits otherwise.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a test waits for the tests that load the machine.
const LOAD_TIMEOUT: Duration = Duration::from_secs(45 * 60);

static USERS: Mutex<Users> = Mutex::new(Users {
    brokers: 0,
    loaded: false,
});
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Whether the test of this thread has the machine.
    static HAS_MACHINE: Cell<bool> = const { Cell::new(false) };
}

struct Users {
    /// The running brokers of tests that do not load the machine.
    brokers: usize,
    /// Whether a test loads the machine.
    loaded: bool,
}

/// The right to load the machine, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct WholeMachine(());

/// Waits until no other test has a broker. Later brokers of other tests wait until the value is dropped; the
/// test starts its brokers in its thread, or in threads that call [`WholeMachine::share`].
pub fn whole_machine() -> WholeMachine {
    let mut users = wait(|users| users.loaded || users.brokers > 0);
    users.loaded = true;
    HAS_MACHINE.set(true);
    WholeMachine(())
}

impl WholeMachine {
    /// Lets this thread, which the test has started, start brokers as well.
    pub fn share(&self) {
        HAS_MACHINE.set(true);
    }
}

impl Drop for WholeMachine {
    fn drop(&mut self) {
        HAS_MACHINE.set(false);
        lock().loaded = false;
        CHANGED.notify_all();
    }
}

/// A running broker.
#[derive(Debug)]
pub(crate) struct BrokerSlot {
    is_counted: bool,
}

impl BrokerSlot {
    /// Waits while another test loads the machine.
    pub(crate) fn take() -> Self {
        let is_counted = !HAS_MACHINE.get();
        if is_counted {
            wait(|users| users.loaded).brokers += 1;
        }
        Self { is_counted }
    }
}

impl Drop for BrokerSlot {
    fn drop(&mut self) {
        if self.is_counted {
            lock().brokers -= 1;
            CHANGED.notify_all();
        }
    }
}

fn lock() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits as long as `is_busy`.
fn wait(is_busy: impl FnMut(&mut Users) -> bool) -> MutexGuard<'static, Users> {
    let (users, waited) = CHANGED
        .wait_timeout_while(lock(), LOAD_TIMEOUT, is_busy)
        .unwrap_or_else(PoisonError::into_inner);
    assert!(
        !waited.timed_out(),
        "other tests kept the machine for {LOAD_TIMEOUT:?}"
    );
    users
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn broker_of_another_test_waits_for_a_test_that_loads_the_machine() {
        let machine = whole_machine();
        let own = BrokerSlot::take();
        let (started, starts) = mpsc::channel();
        let other = thread::spawn(move || {
            let slot = BrokerSlot::take();
            started.send(()).expect("the test waits");
            slot
        });
        assert!(starts.recv_timeout(Duration::from_millis(50)).is_err());
        drop((own, machine));
        starts.recv().expect("the other test starts its broker");
        let slot = other.join().expect("it does not panic");
        let (loaded, loads) = mpsc::channel();
        thread::spawn(move || {
            let machine = whole_machine();
            loaded.send(()).expect("the test waits");
            drop(machine);
        });
        assert!(loads.recv_timeout(Duration::from_millis(50)).is_err());
        drop(slot);
        loads.recv().expect("the test that loads the machine runs");
    }
}
