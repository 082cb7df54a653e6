//! The only writer of stdout: whole lines, one at a time, from any thread.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

#[derive(Clone)]
pub(crate) struct Output {
    sink: Arc<Mutex<dyn Write + Send>>,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Self::to(io::stdout())
    }

    pub(crate) fn to(sink: impl Write + Send + 'static) -> Self {
        Self {
            sink: Arc::new(Mutex::new(sink)),
        }
    }

    pub(crate) fn send(&self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write_all(line.as_bytes())?;
        sink.flush()
    }
}
