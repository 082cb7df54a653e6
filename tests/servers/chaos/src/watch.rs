//! Watches the script for a higher `generation` or another `notify`, and then announces a changed tool list.

use std::sync::Arc;
use std::time::Duration;

use crate::script::Script;
use crate::state::State;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn start(
    state: &Arc<State>,
    announce: impl Fn() + Send + 'static,
) -> Result<(), String> {
    if !state.source.changes() {
        return Ok(());
    }
    // Read before the thread runs, which may be late: a change in between counts as well.
    let first = state.script();
    let state = Arc::clone(state);
    match std::thread::Builder::new().spawn(move || watch(&state, first, &announce)) {
        Ok(_detached) => Ok(()),
        Err(error) => Err(format!("cannot watch the script: {error}")),
    }
}

fn watch(state: &State, first: Arc<Script>, announce: &dyn Fn()) {
    let mut seen = first;
    loop {
        std::thread::sleep(POLL_INTERVAL);
        let now = state.source.current();
        if now.generation > seen.generation || now.notify != seen.notify {
            announce();
        }
        seen = now;
    }
}
