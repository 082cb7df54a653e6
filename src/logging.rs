//! Everything the broker writes for people: the log, and reports. All of it goes to stderr, through
//! one sink that masks known secrets and shows what would otherwise act on a terminal, and through
//! one thread, so that nothing else waits where stderr is not read.

use std::io::{self, Write};
use std::sync::Arc;

mod queue;

use arc_swap::ArcSwap;
use broker_model::redact::Redactor;
use broker_model::text::{is_invisible, shown};
use serde_json::{Value, json};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use queue::Queue;

/// How the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One readable line an event.
    Human,
    /// One JSON object an event.
    Json,
}

/// The sink. Cheap to clone; all clones know the same secrets.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    format: Format,
    redactor: Arc<ArcSwap<Redactor>>,
    queue: Arc<Queue>,
}

impl Output {
    /// A sink that knows no secret yet. It keeps what it is given until [`Output::start`].
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            redactor: Arc::new(ArcSwap::from_pointee(Redactor::default())),
            queue: Arc::new(Queue::new(format, notice)),
        }
    }

    /// Starts the thread that writes. It blocks the signals that this one blocks.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.queue.start()
    }

    /// Waits at the end of the process until what it was given is written, 1 s at most for the log
    /// and 10 s for a report.
    pub(crate) fn finish(&self) {
        self.queue.finish();
    }

    /// Makes `tracing` write here. A process has one log: a second call changes nothing.
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

    /// From here on these secrets are masked as well.
    pub(crate) fn mask(&self, redactor: &Redactor) {
        self.redactor.rcu(|known| (**known).clone().merge(redactor));
    }

    /// Writes a report: the text for people, or the object as one line of JSON.
    pub(crate) fn report(&self, human: &str, json: &Value) {
        let text = match self.format {
            Format::Human => shown(self.masked(human).trim_end()),
            Format::Json => json_line(&self.masked(&json.to_string())),
        };
        self.queue.push_report(&(text + "\n"));
    }

    /// Says something to people beside a result on stdout, in one line.
    pub(crate) fn note(&self, text: &str) {
        let line = shown(&self.masked(text)).replace('\n', " ");
        self.queue.push_report(&(line + "\n"));
    }

    /// JSON text as one line for stdout, secrets masked and nothing invisible in it.
    pub(crate) fn json_text(&self, json: &str) -> String {
        json_line(&self.masked(json)) + "\n"
    }

    /// Text for people on stdout, secrets masked and nothing in it that acts on a terminal.
    pub(crate) fn human_text(&self, text: &str) -> String {
        shown(&self.masked(text))
    }

    /// Writes what was asked for to stdout, and fails where nobody can read it.
    pub(crate) fn print(text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Masks first: what `shown` rewrites could otherwise hide a secret from the redactor.
    fn masked(&self, text: &str) -> String {
        self.redactor.load().redact(text)
    }

    fn write_event(&self, event: &str) {
        let event = self.masked(event.trim_end_matches('\n'));
        let line = match self.format {
            // One event, one line: text from elsewhere must not be able to begin another.
            Format::Human => shown(&event).replace('\n', "\\n"),
            Format::Json => json_line(&event),
        };
        self.queue.push_line(&(line + "\n"));
    }
}

/// The line that stands where lines are missing. It is made by hand, at every level of the log: a
/// reader of errors alone is to know that some are missing.
fn notice(format: Format, lost: u64) -> String {
    const MESSAGE: &str = "lines of the log are missing here: standard error did not take them";
    let mut time = String::new();
    // A time that cannot be told is left out.
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

/// JSON text in which nothing invisible is left: in JSON it can only stand inside strings.
fn json_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !is_invisible(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

impl<'a> MakeWriter<'a> for Output {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            output: self,
            buffer: Vec::new(),
        }
    }
}

/// One event, held until it is whole, so that a secret is never split between two writes.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    output: &'a Output,
    buffer: Vec<u8>,
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
                .write_event(&String::from_utf8_lossy(&self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_and_shows_what_hides() {
        let text = serde_json::json!({ "a": "x\u{202e}\u{1b}[31m\u{e0041}é\n" }).to_string();
        let line = json_line(&text);
        assert_eq!(line, r#"{"a":"x\u202e\u001b[31m\udb40\udc41é\n"}"#);
        assert_eq!(
            serde_json::from_str::<Value>(&line).unwrap(),
            serde_json::from_str::<Value>(&text).unwrap()
        );
    }
}
