//! The `toolbox-mcp` binary: reads one JSON-RPC message per line from stdin and writes answers to stdout until
//! stdin ends. It has the flags and exit codes, and is independent of protocol and tools.

mod lines;
mod output;
mod pending;
mod protocol;
mod tools;

use std::io::Write as _;
use std::process::ExitCode;

use crate::lines::{Line, Lines};
use crate::output::Output;
use crate::protocol::Server;

const HELP: &str = "\
A small MCP server with time, text, data and hashing tools.

It speaks MCP over stdin and stdout and ends when stdin ends.

Usage: toolbox-mcp [--help] [--version]

Options:
  -h, --help     Print this help
  -V, --version  Print the version
";

/// Exit code of a wrong command line.
const EXIT_USAGE: u8 = 2;
/// Exit code if stdin or stdout fails while the server runs.
const EXIT_IO: u8 = 1;

enum Command {
    Serve,
    Print(String),
    Refuse(String),
}

fn main() -> ExitCode {
    match command(std::env::args_os().skip(1)) {
        Command::Serve => serve(),
        Command::Print(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(EXIT_IO),
        },
        Command::Refuse(message) => {
            complain(&message);
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn command(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> Command {
    let Some(argument) = arguments.next() else {
        return Command::Serve;
    };
    match argument.to_str() {
        Some("-h" | "--help") => Command::Print(HELP.to_owned()),
        Some("-V" | "--version") => {
            Command::Print(format!("toolbox-mcp {}\n", env!("CARGO_PKG_VERSION")))
        }
        _ => Command::Refuse(format!(
            "unexpected argument `{}`; see `toolbox-mcp --help`",
            argument.to_string_lossy().escape_debug()
        )),
    }
}

/// Returns when stdin ends; a slow call in progress ends with the process.
fn serve() -> ExitCode {
    let mut server = Server::new(Output::stdout());
    let mut lines = Lines::new(std::io::stdin().lock());
    loop {
        let answered = match lines.next_line() {
            Ok(Line::Text(line)) => server.receive(&line),
            Ok(Line::TooLong) => server.refuse_long_line(),
            Ok(Line::End) => return ExitCode::SUCCESS,
            Err(error) => {
                complain(&format!("cannot read stdin: {error}"));
                return ExitCode::from(EXIT_IO);
            }
        };
        if let Err(error) = answered {
            complain(&format!("cannot write to stdout: {error}"));
            return ExitCode::from(EXIT_IO);
        }
    }
}

fn complain(message: &str) {
    // If stderr is closed as well, the error is lost.
    drop(writeln!(std::io::stderr(), "error: {message}"));
}
