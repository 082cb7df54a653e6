//! The `chaos-mcp` binary: an MCP server for tests. A script file, which is read again while it runs, defines
//! its tools, answers and faults. This file has the life of the process: the actions before the first message,
//! the reading loop, and the end of stdin.

mod calls;
mod default_tools;
mod eras;
mod faults;
mod flags;
mod http;
mod journal;
mod output;
mod paging;
mod replay;
mod reply;
mod script;
mod server;
mod source;
mod startup;
mod state;
mod tasks;
mod waiting;
mod watch;

use std::io::BufRead as _;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::flags::{Command, Flags};
use crate::journal::Journal;
use crate::output::{Output, complain};
use crate::server::Server;
use crate::source::Source;
use crate::state::State;

/// Exit code of a wrong command line, or of a script that cannot be read at the start.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let flags = match flags::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(flags)) => flags,
        Ok(Command::Print(text)) => {
            return match Output::stdout().raw(text.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(message) => return refuse(&message),
    };
    match run(flags) {
        Ok(code) => code,
        Err(message) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    complain(message);
    ExitCode::from(EXIT_USAGE)
}

fn run(flags: Flags) -> Result<ExitCode, String> {
    let journal = Journal::open(flags.journal.as_deref(), flags.brief)?;
    if flags.mute {
        return Ok(mute(&journal));
    }
    let source = Source::open(&flags.from)?;
    let script = source.current();
    if script.ignore_sigterm && !flags.term_ignored {
        return Err(startup::restart_with_term_ignored());
    }
    journal.write("start", json!({"arguments": flags.shown}));
    let output = Output::stdout();
    if let Some(code) = startup::play(&script, &output, &journal)? {
        return Ok(ExitCode::from(code));
    }
    let state = Arc::new(State::new(source, journal, flags.shown));
    if let Some(address) = flags.http {
        http::run(address, state, &output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let server = Arc::new(Server::new(Arc::clone(&state), output));
    let watched = Arc::clone(&server);
    watch::start(&state, move || watched.notify_list_changed())?;
    serve(&server);
    Ok(ExitCode::SUCCESS)
}

fn serve(server: &Arc<Server>) {
    for (before, line) in (0_u64..).zip(std::io::stdin().lock().split(b'\n')) {
        // An error of stdin ends the process like its end.
        let Ok(line) = line else { break };
        server.receive(&line);
        let limit = server.state.script().no_drain_after;
        if limit.is_some_and(|limit| before + 1 >= limit) {
            server.state.journal.write("stopped-reading", json!({}));
            wait_for_ever();
        }
    }
    server.state.journal.write("eof", json!({}));
    if server.state.script().ignore_eof {
        wait_for_ever();
    }
}

/// A server that has closed its stdout: it runs until stdin ends, and writes nothing.
fn mute(journal: &Journal) -> ExitCode {
    journal.write("muted", json!({}));
    for line in std::io::stdin().lock().split(b'\n') {
        let Ok(_ignored) = line else { break };
    }
    journal.write("eof", json!({}));
    ExitCode::SUCCESS
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}
