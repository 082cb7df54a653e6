//! The chaos broker with a simulated bug: every refused request blocks its worker thread of the runtime
//! forever. A log subscriber does that.

use std::fmt::Debug;
use std::io::Write as _;
use std::process::ExitCode;
use std::thread;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

mcp_broker::include_catalog!();

fn main() -> ExitCode {
    // The broker sets up its log later, which has no effect.
    if tracing::subscriber::set_global_default(Blocker).is_err() {
        return ExitCode::FAILURE;
    }
    mcp_broker::main(&CATALOG)
}

/// Writes the message of each event to standard error, and blocks the thread of a refusal.
struct Blocker;

impl Subscriber for Blocker {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let line = format!("{}\n", message.0);
        // If the write fails, the test sees no line and fails.
        drop(std::io::stderr().write_all(line.as_bytes()));
        if message.0 == "refused" {
            loop {
                thread::park();
            }
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
