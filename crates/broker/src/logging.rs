//! The output for people: the log, and reports. It goes to stderr through one sink that masks known
//! secrets and escapes terminal controls, and through one thread, so that no other thread waits if
//! stderr is not read.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, LazyLock};

mod queue;

use arc_swap::ArcSwap;
use broker_drift::Report;
use broker_model::public_names::PublicNames;
use broker_model::redact::Redactor;
use broker_model::terminal::Text;
use broker_terminal::{WIDTH, middle};
use serde_json::{Value, json};
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use queue::Queue;

use crate::core::DRIFT_LOG;

/// Goes to the begin of a line of a terminal, and erases it.
const REWRITE_LINE: &str = "\r\x1b[K";

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One readable line for each event.
    Human,
    /// One JSON object for each event.
    Json,
}

/// Public names. They are rarely needed: only if drift is reported and a secret is the same as one.
type Names = LazyLock<PublicNames, Box<dyn FnOnce() -> PublicNames + Send>>;

/// The sink. Cheap to clone; all clones know the same secrets.
#[derive(Clone, Debug)]
pub(crate) struct LogOutput {
    format: Format,
    redactor: Arc<ArcSwap<Redactor>>,
    names: Arc<ArcSwap<Option<Names>>>,
    queue: Arc<Queue>,
}

impl LogOutput {
    /// A sink without secrets. It queues lines until [`LogOutput::start`].
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            redactor: Arc::new(ArcSwap::from_pointee(Redactor::default())),
            names: Arc::new(ArcSwap::from_pointee(None)),
            queue: Arc::new(Queue::new(format, notice)),
        }
    }

    /// Starts the writing thread. It inherits the blocked signals of this thread.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.queue.start()
    }

    /// Waits at the end of the process until all lines are written, at most 1 s for the log and 10 s
    /// for a report.
    pub(crate) fn finish(&self) {
        self.queue.finish();
    }

    /// Makes `tracing` write here. A process has one log: a second call has no effect.
    pub(crate) fn install(&self, level: Level) {
        let builder = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(self.clone());
        let installed = match self.format {
            // Colours are not compiled in: the same bytes reach a terminal and a file.
            Format::Human => builder.with_target(false).try_init(),
            Format::Json => builder.json().flatten_event(true).try_init(),
        };
        if installed.is_err() {
            tracing::debug!("the log was set up before");
        }
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string);
            let message = panic.payload_as_str().unwrap_or("no message");
            tracing::error!(place, "panic: {message}");
        }));
    }

    /// Also masks these secrets from now on.
    pub(crate) fn mask(&self, redactor: &Redactor) {
        self.redactor.rcu(|known| (**known).clone().merge(redactor));
    }

    /// Shows these names in reports and log lines about drift, even if a secret is the same.
    pub(crate) fn show_names(&self, names: impl FnOnce() -> PublicNames + Send + 'static) {
        let names: Names = LazyLock::new(Box::new(names));
        self.names.store(Arc::new(Some(names)));
    }

    /// Writes a report: the text for people, or the object as one line of JSON.
    pub(crate) fn report(&self, human: &Text, json: &Value) {
        let text = match self.format {
            Format::Human => self.human_text(human),
            Format::Json => self.json_text(&json.to_string()),
        };
        self.queue.push_report(&line(&text.trimmed()));
    }

    /// Writes a drift report that shows the public names.
    pub(crate) fn drift_report(&self, human: &Text, report: &Report) {
        let text = match self.format {
            Format::Human => self.named_text(human),
            Format::Json => self.named_json_text(&report.to_json().to_string()),
        };
        self.queue.push_report(&line(&text.trimmed()));
    }

    /// Writes a one-line note for people to stderr, next to a result on stdout.
    pub(crate) fn note(&self, text: &Text) {
        self.queue.push_report(&line(&self.human_text(text)));
    }

    /// Writes the progress of a wait to stderr: a line, or on a terminal in the place of the one before.
    pub(crate) fn progress(&self, text: &Text) {
        match is_watched() {
            true => {
                let text = self.human_text(text);
                let shown = middle(text.as_str().trim_end(), WIDTH - 1);
                self.queue.push_report(&format!("{REWRITE_LINE}{shown}"));
            }
            false => self.note(text),
        }
    }

    /// Ends the line of [`Self::progress`] on a terminal, if there is one.
    pub(crate) fn end_progress(&self, has_progress: bool) {
        if has_progress && is_watched() {
            self.queue.push_report("\n");
        }
    }

    /// JSON text as one line for stdout, with secrets masked and invisible characters escaped.
    pub(crate) fn json_text(&self, json: &str) -> Text {
        Text::json_text(&self.masked(json))
    }

    /// Makes the same line with the public names as they are.
    pub(crate) fn named_json_text(&self, json: &str) -> Text {
        Text::json_text(&self.masked_except_names(json))
    }

    /// Makes text for people as [`Self::human_text`] does, with the public names as they are.
    pub(crate) fn named_text(&self, text: &Text) -> Text {
        let masked = text.masked_by(|text| self.masked_except_names(text));
        masked.without_commands()
    }

    /// Text for people, with secrets masked and without commands of CI runners.
    pub(crate) fn human_text(&self, text: &Text) -> Text {
        text.redacted(&self.redactor.load()).without_commands()
    }

    /// Writes a requested text to stdout, and fails if it cannot be written.
    pub(crate) fn print(text: &Text) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_str().as_bytes())?;
        stdout.flush()
    }

    /// Masks secrets except in public names. The names are collected only if the text contains a secret.
    fn masked_except_names(&self, text: &str) -> String {
        let (redactor, names) = (self.redactor.load(), self.names.load());
        match &**names {
            Some(names) if redactor.redact(text) != text => redactor.redact_except(text, names),
            _ => redactor.redact(text),
        }
    }

    fn masked(&self, text: &str) -> String {
        self.redactor.load().redact(text)
    }

    fn write_event(&self, event: &str, is_about_drift: bool) {
        let event = event.trim_end_matches('\n');
        let event = match is_about_drift {
            true => self.masked_except_names(event),
            false => self.masked(event),
        };
        let text = match self.format {
            // One line for each event: foreign text must not be able to begin another line.
            Format::Human => Text::line(&event).without_commands(),
            Format::Json => Text::json_text(&event).trimmed(),
        };
        self.queue.push_line(&line(&text));
    }
}

/// Whether standard error is a terminal.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Writes the message of the command line parser. The writing thread is not started yet.
pub(crate) fn usage(error: &clap::Error) {
    if error.use_stderr() {
        let text = Text::lines("", &error.render().to_string()).trimmed();
        // If the text cannot be written, only the exit code reports the error.
        drop(io::stderr().lock().write_all(line(&text).as_bytes()));
    } else {
        // Only text of the parser, in bold if the terminal supports it.
        drop(error.print());
    }
}

fn line(text: &Text) -> String {
    format!("{}\n", text.as_str())
}

/// The line that replaces lost lines. It is formatted by hand and written at every log level, so that
/// the loss is visible even if only errors are logged.
fn notice(format: Format, lost: u64) -> String {
    const MESSAGE: &str = "lines of the log were dropped here: standard error was not read in time";
    let mut time = String::new();
    // A time that cannot be formatted is left out.
    let _: std::fmt::Result = SystemTime.format_time(&mut Writer::new(&mut time));
    match format {
        Format::Human => format!("{time}  WARN {MESSAGE} lines={lost}\n"),
        Format::Json => {
            let event =
                json!({"timestamp": time, "level": "WARN", "message": MESSAGE, "lines": lost});
            format!("{event}\n")
        }
    }
}

impl<'a> MakeWriter<'a> for LogOutput {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            output: self,
            buffer: Vec::new(),
            is_about_drift: false,
        }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Line<'a> {
        let mut line = self.make_writer();
        line.is_about_drift = event.target() == DRIFT_LOG;
        line
    }
}

/// One event, buffered until it is complete, so that a secret is never split between two writes.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    output: &'a LogOutput,
    buffer: Vec<u8>,
    is_about_drift: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            self.output
                .write_event(&String::from_utf8_lossy(&self.buffer), self.is_about_drift);
        }
    }
}
