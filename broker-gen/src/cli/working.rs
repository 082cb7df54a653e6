//! Shows that a step without another output goes on: on a terminal one line that is drawn again, else a plain line every few
//! seconds on standard error. A step that ends within two seconds shows no line.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use broker_model::text;
use tokio::time::Instant;

use super::output::{LiveLines, say};

/// Time of a step without a line.
const FIRST_LINE_DELAY: Duration = Duration::from_secs(2);
/// Time between two updates on a terminal.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// A step that goes on until this is dropped. The step itself prints no line.
#[derive(Debug)]
pub(super) struct Working {
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Working {
    /// Begins a step, such as "generating the types".
    pub(super) fn begin(step: impl Into<String>) -> Self {
        let step = step.into();
        let started = Instant::now();
        let (ended, receiver) = channel();
        let show = move || {
            let mut wait = FIRST_LINE_DELAY;
            let mut drawn: Option<LiveLines> = None;
            while receiver.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                drawn = drawn.or_else(LiveLines::new);
                let line = text!("{} ({} s)", step, started.elapsed().as_secs());
                wait = match &mut drawn {
                    Some(drawn) => {
                        drawn.show(&[line]);
                        DRAW_INTERVAL
                    }
                    None => {
                        say(line);
                        PLAIN_INTERVAL
                    }
                };
            }
            if let Some(drawn) = &mut drawn {
                drawn.show(&[]);
            }
        };
        Self {
            ended: Some(ended),
            // Without a thread the step is silent.
            thread: thread::Builder::new().spawn(show).ok(),
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        drop(self.ended.take());
        if let Some(thread) = self.thread.take() {
            // The line is gone before the next output.
            drop(thread.join());
        }
    }
}
