//! Cuts a byte stream into lines of bounded length; the rest of a longer line is skipped, so that
//! its tail is never read as a message.

use std::io::{self, BufRead};

/// Maximum length of a line, without its newline.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(Vec<u8>),
    TooLong,
    End,
}

pub(crate) struct Lines<R> {
    input: R,
    limit: usize,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            limit: MAX_LINE,
        }
    }

    /// The next line without its newline; a last line without one counts as a line.
    pub(crate) fn next_line(&mut self) -> io::Result<Line> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(match (too_long, line.is_empty()) {
                    (true, _) => Line::TooLong,
                    (false, true) => Line::End,
                    (false, false) => Line::Text(line),
                });
            }
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let body = &chunk[..newline.unwrap_or(chunk.len())];
            if !too_long && line.len() + body.len() > self.limit {
                too_long = true;
                line = Vec::new();
            }
            if !too_long {
                line.extend_from_slice(body);
            }
            let used = body.len() + usize::from(newline.is_some());
            self.input.consume(used);
            if newline.is_some() {
                return Ok(if too_long {
                    Line::TooLong
                } else {
                    Line::Text(line)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_over_the_limit_is_skipped_and_the_next_is_read() {
        let mut lines = Lines {
            input: io::BufReader::with_capacity(3, &b"ab\n\nabcdefgh\ncd"[..]),
            limit: 4,
        };
        let mut read = Vec::new();
        loop {
            let line = lines.next_line().unwrap();
            if line == Line::End {
                break;
            }
            read.push(line);
        }
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        assert_eq!(read, [text("ab"), text(""), Line::TooLong, text("cd")]);
    }
}
