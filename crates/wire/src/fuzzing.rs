//! The entry points for the fuzz targets: frames and messages as plain data.

use broker_memory::MemoryBudget;
use bytes::{BufMut as _, Bytes};

use crate::{
    ClientLine, Frame, Framer, Id, Incoming, LineLimit, Messages, Peer, Problem, read_client_line,
    read_server_line,
};

/// A frame of a stream of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line.
    Line(Vec<u8>),
    /// A line over the limit, with the id of its request.
    Oversize(Option<String>),
    /// A line over every limit.
    Endless,
}

/// Returns the frames of `bytes` when they arrive in pieces of these sizes, over and over, and the most memory that was
/// held.
pub fn frames(peer: Peer, bytes: &[u8], limit: usize, pieces: &[usize]) -> (Vec<Piece>, usize) {
    let account = MemoryBudget::new(usize::MAX).whole_account();
    let mut framer = Framer::new(peer, LineLimit::new(limit), account);
    let (mut out, mut held) = (Vec::new(), 0);
    let piece = |frame| match frame {
        Frame::Line(line) => Piece::Line(line.to_vec()),
        Frame::Oversize { id } | Frame::OutOfMemory { id, .. } => {
            Piece::Oversize(id.map(|id| id.to_string()))
        }
        Frame::Endless => Piece::Endless,
    };
    let (mut rest, mut sizes) = (bytes, pieces.iter().copied().cycle());
    while !rest.is_empty() {
        let (now, later) = rest.split_at(sizes.next().unwrap_or(1).clamp(1, rest.len()));
        framer.buffer().put_slice(now);
        held = held.max(framer.buffer().capacity());
        rest = later;
        out.extend(std::iter::from_fn(|| framer.next_frame()).map(piece));
    }
    out.extend(framer.finish().map(piece));
    (out, held)
}

/// One message of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedMessage {
    /// The kind of the message.
    pub kind: &'static str,
    /// Its id.
    pub id: Option<Id>,
    /// The raw values that are forwarded.
    pub payload: Option<Vec<u8>>,
}

/// Returns the messages of a line of a server, and whether it had invalid UTF-8.
pub fn server_messages(line: &[u8]) -> (Vec<ParsedMessage>, bool) {
    let account = MemoryBudget::new(usize::MAX).whole_account();
    let read = read_server_line(Bytes::copy_from_slice(line), &account);
    let messages = match read.messages {
        Messages::One(message) => vec![message],
        Messages::Many(batch) => batch.collect(),
    };
    (messages.into_iter().map(found).collect(), read.repaired)
}

/// Returns the messages of a line of a client.
pub fn client_messages(line: &[u8]) -> Vec<ParsedMessage> {
    let messages = match read_client_line(&Bytes::copy_from_slice(line)) {
        ClientLine::One(message) => vec![message],
        ClientLine::Batch(messages) => messages,
    };
    messages.into_iter().map(found).collect()
}

fn found(message: Incoming) -> ParsedMessage {
    let (kind, id, payload) = match message {
        Incoming::Request { id, params, .. } => ("request", Some(id), params),
        Incoming::Notification { params, .. } => ("notification", None, params),
        Incoming::Response {
            id,
            outcome: Ok(result),
        } => ("result", id, Some(result)),
        Incoming::Response {
            id,
            outcome: Err(error),
        } => ("error", id, Some(error)),
        Incoming::Invalid { id, problem } => {
            let kind = match problem {
                Problem::Noise => "noise",
                Problem::Unreadable(_) => "unreadable",
                Problem::Malformed(_) => "malformed",
                Problem::OutOfMemory => "no room",
            };
            (kind, id, None)
        }
    };
    let payload = payload.map(|payload| payload.bytes().to_vec());
    ParsedMessage { kind, id, payload }
}
