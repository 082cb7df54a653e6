//! What the command line prints: data on standard output, everything else on standard error.

use std::fmt::Display;
use std::io::{self, Write as _};

use broker_model::Diagnostic;
use broker_model::exit::Exit;

/// A line for people.
pub(super) fn say(line: impl Display) {
    // When standard error is gone nobody is left to tell.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Data for pipes.
pub(super) fn data(text: impl Display) {
    let _ = write!(io::stdout().lock(), "{text}");
}

/// One JSON value, indented.
pub(super) fn data_json(value: &serde_json::Value) {
    data(format_args!("{value:#}\n"));
}

/// Every diagnostic in the order found; the exit code that they ask for.
pub(super) fn diagnostics(list: &[Diagnostic]) -> Exit {
    list.iter().for_each(say);
    Exit::of_diagnostics(list)
}

/// A failure of ours.
pub(super) fn failure(message: &str) -> Exit {
    say(format_args!("error: {message}"));
    Exit::Failure
}

/// What clap has to say: help and version are fine, everything else is usage.
pub(super) fn usage(error: &clap::Error) -> Exit {
    let _ = error.print();
    if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Ok
    }
}
