//! Walks a line that is an array of messages, one at a time, without collecting them.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::lenient::read;
use crate::{Incoming, Problem};

/// The maximum number of elements of a batch that are not messages; then the rest of the line is
/// skipped.
pub(crate) const MAX_BATCH_NOISE: usize = 100;

/// A line that is an array, read one message at a time. It only takes the memory of the line, regardless of the number
/// of messages.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    line: Bytes,
    /// The offset of the next element, or of the end.
    at: usize,
    begun: bool,
    noise: usize,
}

impl Batch {
    /// Makes a batch of `line`. It begins with a bracket.
    pub(crate) fn new(line: Bytes) -> Self {
        Self {
            line,
            at: 1,
            begun: false,
            noise: 0,
        }
    }

    /// Returns the number of bytes that were walked so far.
    pub fn walked(&self) -> usize {
        self.at
    }

    /// Returns the next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.line[self.at..];
        let blanks = rest.len() - rest.trim_ascii_start().len();
        self.at += blanks;
        self.line.get(self.at).copied()
    }

    fn skip_rest(&mut self) -> Option<Incoming> {
        self.at = self.line.len();
        Some(noise())
    }
}

impl Iterator for Batch {
    type Item = Incoming;

    /// Returns the next message. If the rest of the line is not a valid array, the batch returns noise once and ends.
    fn next(&mut self) -> Option<Incoming> {
        let first = !std::mem::replace(&mut self.begun, true);
        let Some(next) = self.peek() else {
            return first.then(noise);
        };
        match next {
            b']' => {
                self.at += 1;
                let trailing = self.peek().is_some();
                self.at = self.line.len();
                return trailing.then(noise);
            }
            b',' if !first => self.at += 1,
            _ if first => {}
            _ => return self.skip_rest(),
        }
        if self.noise >= MAX_BATCH_NOISE {
            return self.skip_rest();
        }
        let rest = &self.line[self.at..];
        let mut elements = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        let Some(Ok(element)) = elements.next() else {
            return self.skip_rest();
        };
        let message = read(&self.line, element.get());
        self.at += elements.byte_offset();
        self.noise += usize::from(message == noise());
        Some(message)
    }
}

const fn noise() -> Incoming {
    Incoming::problem_without_id(Problem::Noise)
}
