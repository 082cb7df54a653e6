//! The output of the command line: data on standard output, everything else on standard error. All of it
//! is [`Text`]; nothing else of this program writes there.

use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

use broker_model::Diagnostic;
use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::text;

/// A line for people.
pub(super) fn say(line: impl Into<Text>) {
    draw(&text!("{}\n", line.into()));
}

/// Writes text to standard error as it is, without a line end.
pub(super) fn draw(text: &Text) {
    // When standard error is gone, there is no other place to report it.
    let _ = write(&mut io::stderr().lock(), text);
}

/// Why data could not be written, once that happened.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Data for pipes. Where it cannot be written, [`settle`] tells of it.
pub(super) fn data(text: &Text) {
    note(write(&mut io::stdout().lock(), text));
}

fn note(written: io::Result<()>) {
    // A reader such as `head` reads as much as it wants.
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // The first error is enough.
        drop(UNWRITTEN.set(error));
    }
}

/// The exit code of the program, which is not 0 where data could not be written.
pub(super) fn settle(exit: Exit) -> Exit {
    match UNWRITTEN.get() {
        Some(error) => exit.or(failure(&format!(
            "standard output cannot be written: {error}"
        ))),
        None => exit,
    }
}

/// A part of a conversation on standard output.
pub(super) fn ask(text: &Text) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

fn write(stream: &mut impl Write, text: &Text) -> io::Result<()> {
    stream.write_all(text.as_str().as_bytes())?;
    stream.flush()
}

/// Whether standard input and output are a terminal.
pub(super) fn is_conversation() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub(super) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Every diagnostic in the order found; the exit code that they ask for.
pub(super) fn diagnostics(list: &[Diagnostic]) -> Exit {
    list.iter().for_each(|problem| say(problem.text()));
    Exit::of_diagnostics(list)
}

/// A failure of ours.
pub(super) fn failure(message: &str) -> Exit {
    say(text!("error: {}", message));
    Exit::Failure
}

/// What clap has to say: help and version are fine, everything else is usage.
pub(super) fn usage(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        draw(&Text::lines("", &error.render().to_string()));
        return Exit::Usage;
    }
    // Only our own words, in bold where the terminal can.
    let _ = error.print();
    Exit::Ok
}

/// Completions for a shell, of nothing but our own command line.
pub(super) fn completions(shell: clap_complete::Shell, command: &mut clap::Command) {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "broker-gen", &mut script);
    note(io::stdout().lock().write_all(&script));
}
