//! A line of a server: one message, or a batch. Text that is not UTF-8 is repaired.

use broker_memory::Account;
use bytes::Bytes;

use crate::batch::Batch;
use crate::lenient::{answered, read};
use crate::repair::repaired;
use crate::{Incoming, Problem};

#[cfg(test)]
mod tests;

/// A line of a server.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerLine {
    /// Its messages.
    pub messages: Messages,
    /// Whether the text had invalid UTF-8 that was replaced.
    pub repaired: bool,
}

/// One message, or a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Messages {
    /// The usual line.
    One(Incoming),
    /// A batch, to be walked.
    Many(Batch),
}

/// Reads a line of a server. Invalid UTF-8 is replaced; the copy is charged to `account`.
pub fn read_server_line(line: Bytes, account: &Account) -> ServerLine {
    let Ok(text) = std::str::from_utf8(&line) else {
        let messages = match repaired(&line, account) {
            Ok(text) => read_server_line(text, account).messages,
            Err(_) => Messages::One(Incoming::Invalid {
                id: answered(&line),
                problem: Problem::OutOfMemory,
            }),
        };
        return ServerLine {
            messages,
            repaired: true,
        };
    };
    let messages = if text.starts_with('[') {
        Messages::Many(Batch::new(line))
    } else {
        Messages::One(read(&line, text))
    };
    ServerLine {
        messages,
        repaired: false,
    }
}
