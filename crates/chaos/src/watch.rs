//! Watches the script for a higher `generation` or another `notify`, and then announces a changed tool list.

use std::sync::Arc;
use std::time::Duration;

use crate::script::Script;
use crate::server::Server;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn start(server: &Arc<Server>) -> Result<(), String> {
    if !server.source.changes() {
        return Ok(());
    }
    // Read before the thread runs, which may be late: a change in between counts as well.
    let first = server.script();
    let server = Arc::clone(server);
    match std::thread::Builder::new().spawn(move || watch(&server, first)) {
        Ok(_detached) => Ok(()),
        Err(error) => Err(format!("cannot watch the script: {error}")),
    }
}

fn watch(server: &Server, first: Arc<Script>) {
    let mut seen = first;
    loop {
        std::thread::sleep(POLL_INTERVAL);
        let now = server.source.current();
        if now.generation > seen.generation || now.notify != seen.notify {
            server.notify_list_changed();
        }
        seen = now;
    }
}
