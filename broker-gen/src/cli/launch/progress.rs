//! Shows the sources that have not answered: on a terminal one updated line per source, else a plain line
//! per source when it has written another line to stderr. Makes no decision about sources.

use std::time::Duration;

use broker_model::terminal::Text;
use broker_model::text::shown_line;
use broker_model::{NodePath, text};
use broker_process::StderrTail;
use tokio::time::Instant;

use crate::cli::output::{LiveLines, say};

/// Time between two searches for news, and until a source without news is named.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two updates on a terminal.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum lines on a terminal; a line that scrolled away cannot be updated.
const MAX_LINES: usize = 12;

/// The sources that have not answered.
#[derive(Debug)]
pub(in crate::cli) struct Progress {
    waiting: Vec<PendingSource>,
    started: Instant,
    /// `None`: plain lines.
    drawn: Option<LiveLines>,
    frame: usize,
}

#[derive(Debug)]
struct PendingSource {
    index: usize,
    source: NodePath,
    tail: StderrTail,
    /// The last line on stderr when its plain line was written; `None` before.
    shown: Option<String>,
}

impl Progress {
    /// Draws on standard error if it is a terminal that can move its cursor.
    pub(in crate::cli) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            started: Instant::now(),
            drawn: LiveLines::new(),
            frame: 0,
        }
    }

    /// A launched source.
    pub(in crate::cli) fn add(&mut self, index: usize, source: NodePath, tail: StderrTail) {
        self.waiting.push(PendingSource {
            index,
            source,
            tail,
            shown: None,
        });
    }

    /// Time until the next [`Progress::tick`].
    pub(in crate::cli) fn pause(&self) -> Duration {
        if self.drawn.is_some() {
            DRAW_INTERVAL
        } else {
            PLAIN_INTERVAL
        }
    }

    /// The source has answered.
    pub(in crate::cli) fn remove(&mut self, index: usize) {
        self.waiting.retain(|waiting| waiting.index != index);
    }

    /// Shows the sources again.
    pub(in crate::cli) fn tick(&mut self) {
        let seconds = self.started.elapsed().as_secs();
        self.frame += 1;
        if self.drawn.is_some() {
            let lines = self.lines(seconds);
            if let Some(drawn) = &mut self.drawn {
                drawn.show(&lines);
            }
        } else {
            self.news(seconds).into_iter().for_each(say);
        }
    }

    /// A plain line for each source that was not named before, or has written another line to stderr since.
    fn news(&mut self, seconds: u64) -> Vec<Text> {
        let mut lines = Vec::new();
        for waiting in &mut self.waiting {
            let last = last(&waiting.tail);
            if waiting.shown.as_ref() != Some(&last) {
                lines.push(text!(
                    "waiting for {} ({} s){}",
                    waiting.source,
                    seconds,
                    last
                ));
                waiting.shown = Some(last);
            }
        }
        lines
    }

    /// Removes the lines, so that other output begins on a clean line.
    pub(in crate::cli) fn clear(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            drawn.show(&[]);
        }
    }

    fn lines(&self, seconds: u64) -> Vec<Text> {
        const SPINNER: [char; 4] = ['|', '/', '-', '\\'];
        let turn = SPINNER[self.frame % SPINNER.len()];
        let shown = |waiting: &PendingSource| {
            let last = last(&waiting.tail);
            text!("{} {} {} s{}", turn, waiting.source, seconds, last)
        };
        let mut lines: Vec<_> = self.waiting.iter().take(MAX_LINES).map(shown).collect();
        let more = self.waiting.len().saturating_sub(MAX_LINES);
        if more > 0 {
            lines.push(text!("  and {} more", more));
        }
        lines
    }
}

/// The server's last line on stderr, safe to show.
fn last(tail: &StderrTail) -> String {
    let line = tail.lines(1).pop();
    line.map(|line| format!(": {}", shown_line(&line, 120)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_many_sources_shows_a_bounded_number_of_lines() {
        let mut progress = Progress::new();
        for index in 0..MAX_LINES + 3 {
            let path = NodePath::parse(&format!("/s{index}")).unwrap();
            progress.add(index, path, StderrTail::new(Default::default()));
        }
        let lines = progress.lines(2);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(
            (lines[0].as_str(), lines[MAX_LINES].as_str()),
            ("| /s0 2 s", "  and 3 more")
        );
        progress.remove(0);
        assert_eq!(progress.lines(3)[0].as_str(), "| /s1 3 s");
    }

    #[test]
    fn progress_without_a_terminal_is_shown_only_after_a_change() {
        let mut progress = Progress::new();
        let tail = StderrTail::new(Default::default());
        let path = NodePath::parse("/s").unwrap();
        progress.add(0, path, tail.clone());
        let mut news = |seconds| -> Vec<String> {
            let lines = progress.news(seconds);
            lines.iter().map(|line| line.as_str().to_owned()).collect()
        };
        assert_eq!(news(5), ["waiting for /s (5 s)"]);
        assert_eq!(news(10), [""; 0]);
        tail.push(b"fetching 1 of 2\n");
        assert_eq!(news(15), ["waiting for /s (15 s): fetching 1 of 2"]);
        assert_eq!(news(20), [""; 0]);
    }
}
