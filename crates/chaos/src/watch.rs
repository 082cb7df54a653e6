//! Watches the script for a higher `generation` or another `notify`, and says then that the list of
//! tools has changed.

use std::sync::Arc;
use std::time::Duration;

use crate::server::Server;

const PERIOD: Duration = Duration::from_millis(20);

pub(crate) fn start(server: &Arc<Server>) -> Result<(), String> {
    if !server.source.changes() {
        return Ok(());
    }
    let server = Arc::clone(server);
    match std::thread::Builder::new().spawn(move || watch(&server)) {
        Ok(_detached) => Ok(()),
        Err(error) => Err(format!("cannot watch the script: {error}")),
    }
}

fn watch(server: &Server) {
    let mut seen = server.script();
    loop {
        std::thread::sleep(PERIOD);
        let now = server.source.current();
        if now.generation > seen.generation || now.notify != seen.notify {
            server.notify_list_changed();
        }
        seen = now;
    }
}
