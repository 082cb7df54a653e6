//! The output of the command line: data on standard output, everything else on standard error, all of it
//! as [`Text`]. No other module of this program writes there.

use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::counted;
use broker_model::{Diagnostic, Severity};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Maximum number of consecutive warnings of one kind that are printed.
const MAX_WARNINGS: usize = 5;

/// A line for people.
pub(super) fn say(line: impl Into<Text>) {
    draw(&text!("{}\n", line.into()));
}

fn draw(text: &Text) {
    // If standard error is closed, there is no other place to report it.
    let _ = write(&mut io::stderr().lock(), &text.clone().without_commands());
}

/// The first error of writing data.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Writes text for people to standard output. [`settle`] reports an error.
pub(super) fn data(text: &Text) {
    document(&text.clone().without_commands());
}

/// Writes a document for programs to standard output, as it is. [`settle`] reports an error.
pub(super) fn document(text: &Text) {
    note(write(&mut io::stdout().lock(), text));
}

fn note(written: io::Result<()>) {
    // A reader such as `head` closes the pipe when it has enough.
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // Only the first error is kept.
        drop(UNWRITTEN.set(error));
    }
}

/// Returns the exit code of the program. It is not 0 if data could not be written.
pub(super) fn settle(exit: Exit) -> Exit {
    match UNWRITTEN.get() {
        Some(error) => exit.or(failure(&format!(
            "standard output cannot be written: {error}"
        ))),
        None => exit,
    }
}

/// Writes a part of a dialogue to standard output.
pub(super) fn ask(text: &Text) -> io::Result<()> {
    write(&mut io::stdout().lock(), &text.clone().without_commands())
}

fn write(stream: &mut impl Write, text: &Text) -> io::Result<()> {
    stream.write_all(text.as_str().as_bytes())?;
    stream.flush()
}

/// Whether standard input and output are a terminal.
pub(super) fn is_conversation() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Lines of a terminal that are drawn again in place, on standard error.
#[derive(Debug)]
pub(super) struct LiveLines {
    all: MultiProgress,
    lines: Vec<ProgressBar>,
}

impl LiveLines {
    /// `None` if standard error is not a terminal that can move its cursor.
    pub(super) fn new() -> Option<Self> {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        (io::stderr().is_terminal() && !dumb).then(|| Self {
            // The caller decides how often.
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(u8::MAX)),
            lines: Vec::new(),
        })
    }

    /// Shows these lines instead of the last ones, each cut at the width of the terminal.
    pub(super) fn show(&mut self, lines: &[Text]) {
        for line in self.lines.drain(lines.len().min(self.lines.len())..) {
            self.all.remove(&line);
        }
        for (index, text) in lines.iter().enumerate() {
            if index == self.lines.len() {
                let style = ProgressStyle::with_template("{wide_msg}").expect("a template");
                let line = ProgressBar::new_spinner().with_style(style);
                self.lines.push(self.all.add(line));
            }
            self.lines[index].set_message(text.as_str().to_owned());
        }
        if lines.is_empty() {
            // An error of standard error cannot be reported anywhere else.
            let _ = self.all.clear();
        }
    }
}

/// Turns problems into warnings, where the command goes on without what they concern.
pub(super) fn as_warnings(problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut warnings = problems;
    for problem in &mut warnings {
        problem.severity = Severity::Warning;
    }
    warnings
}

/// Prints the diagnostics in order, the remedy once for consecutive ones of one kind, and of many warnings of
/// one kind their number; returns their exit code.
pub(super) fn diagnostics(list: &[Diagnostic]) -> Exit {
    for kind in list.chunk_by(Diagnostic::is_like) {
        let [first, ..] = kind else { continue };
        let shown = match kind.len() {
            many if many > MAX_WARNINGS && !first.is_error() => MAX_WARNINGS,
            all => all,
        };
        let (shown, folded) = kind.split_at(shown);
        shown.iter().for_each(|problem| say(problem.problem()));
        if !folded.is_empty() {
            say(text!(
                "  … and {} of this kind",
                counted(folded.len(), "more warning")
            ));
        }
        say(text!("  help: {}", first.remedy()));
    }
    Exit::from_diagnostics(list)
}

/// Reports an internal failure.
pub(super) fn failure(message: &str) -> Exit {
    say(text!("error: {}", message));
    Exit::Failure
}

/// Prints a message of clap: help and version are a success, everything else is a usage error.
pub(super) fn usage(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        draw(&Text::lines("", &error.render().to_string()));
        return Exit::Usage;
    }
    // Only literals of this program, in bold if the terminal supports it.
    let _ = error.print();
    Exit::Ok
}

/// Prints a text that is generated from literals of this program, as it is.
pub(super) fn bytes(text: &[u8]) {
    note(io::stdout().lock().write_all(text));
}
