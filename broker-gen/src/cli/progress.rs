//! Shows the sources that have not answered: on a terminal one updated line per source, else a plain line
//! per source every few seconds. Makes no decision about sources.

use std::time::Duration;

use broker_model::terminal::Text;
use broker_model::text::shown_line;
use broker_model::{NodePath, text};
use broker_process::StderrTail;
use tokio::time::Instant;

use super::output::{self, say};

/// Time between two plain progress lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two updates on a terminal.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum lines on a terminal; a line that scrolled away cannot be updated.
const MAX_LINES: usize = 12;

/// The sources that have not answered.
#[derive(Debug)]
pub(super) struct Progress {
    waiting: Vec<PendingSource>,
    started: Instant,
    /// The lines that the terminal shows; `None` if standard error is not a terminal.
    drawn: Option<usize>,
    frame: usize,
}

#[derive(Debug)]
struct PendingSource {
    index: usize,
    source: NodePath,
    tail: StderrTail,
}

impl Progress {
    /// Draws on standard error if it is a terminal that can move its cursor.
    pub(super) fn new() -> Self {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Self {
            waiting: Vec::new(),
            started: Instant::now(),
            drawn: (output::is_watched() && !dumb).then_some(0),
            frame: 0,
        }
    }

    /// A launched source.
    pub(super) fn add(&mut self, index: usize, source: NodePath, tail: StderrTail) {
        self.waiting.push(PendingSource {
            index,
            source,
            tail,
        });
    }

    /// Time until the next [`Progress::tick`].
    pub(super) fn pause(&self) -> Duration {
        if self.drawn.is_some() {
            DRAW_INTERVAL
        } else {
            PLAIN_INTERVAL
        }
    }

    /// The source has answered.
    pub(super) fn remove(&mut self, index: usize) {
        self.waiting.retain(|waiting| waiting.index != index);
    }

    /// Shows the sources again.
    pub(super) fn tick(&mut self) {
        let seconds = self.started.elapsed().as_secs();
        match self.drawn {
            Some(before) => {
                self.frame += 1;
                let lines = self.lines(seconds);
                output::draw(&picture(before, &lines));
                self.drawn = Some(lines.len());
            }
            None => {
                for PendingSource { source, tail, .. } in &self.waiting {
                    say(text!(
                        "waiting for {} ({} s){}",
                        source,
                        seconds,
                        last(tail)
                    ));
                }
            }
        }
    }

    /// Removes the lines, so that other output begins on a clean line.
    pub(super) fn clear(&mut self) {
        if let Some(before) = self.drawn {
            output::draw(&picture(before, &[]));
            self.drawn = Some(0);
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

/// The control sequences that draw `lines` over the `before` lines above the cursor and clear the rest.
/// Wrapping is switched off meanwhile, so that the terminal cuts long lines.
fn picture(before: usize, lines: &[Text]) -> Text {
    if before == 0 && lines.is_empty() {
        return Text::new();
    }
    let mut out = Text::from("\x1b[?7l");
    if before > 0 {
        out.push(text!("\x1b[{}A", before));
    }
    out.push("\r\x1b[J");
    for line in lines {
        out.push(text!("{}\r\n", line));
    }
    out.push("\x1b[?7h");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal shows after these texts, as far as pictures go.
    fn screen(texts: &[Text]) -> Vec<String> {
        let mut lines = vec![String::new()];
        let mut at = 0;
        for text in texts {
            let mut rest = text.as_str();
            while let Some(c) = rest.chars().next() {
                if let Some(code) = rest.strip_prefix("\x1b[") {
                    let end = code.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    match &code[end..=end] {
                        "A" => at -= code[..end].parse::<usize>().unwrap(),
                        "J" => lines.truncate(at),
                        _ => {}
                    }
                    rest = &code[end + 1..];
                    lines.resize(lines.len().max(at + 1), String::new());
                    continue;
                }
                rest = &rest[c.len_utf8()..];
                match c {
                    '\r' => {}
                    '\n' => at += 1,
                    c => lines[at].push(c),
                }
                lines.resize(lines.len().max(at + 1), String::new());
            }
        }
        lines
    }

    #[test]
    fn progress_picture_replaces_the_one_before_it() {
        let lines = |names: &[&str]| {
            names
                .iter()
                .map(|name| Text::line(name))
                .collect::<Vec<_>>()
        };
        let (three, one) = (lines(&["a", "b", "c"]), lines(&["d"]));
        let texts = [picture(0, &three), picture(3, &one), picture(1, &three)];
        assert_eq!(screen(&texts[..1]), ["a", "b", "c", ""]);
        assert_eq!(screen(&texts[..2]), ["d", ""]);
        assert_eq!(screen(&texts), ["a", "b", "c", ""]);
        let cleared = [picture(0, &three), picture(3, &[])];
        assert_eq!(screen(&cleared), [""]);
        assert!(picture(0, &[]).is_empty());
    }

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
}
