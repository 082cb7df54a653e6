//! A seam for the fuzz targets: what comes out of framing and envelopes, as plain data.

use bytes::{BufMut as _, Bytes};
use serde_json::{Map, Value};

use crate::envelope::{self, Message, Messages};
use crate::framing::{Frame, Framer};
use crate::list;

/// What came out of a stream of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line.
    Line(Vec<u8>),
    /// A line over the limit, and which request it answers.
    Oversize(Option<u64>),
    /// A line without end.
    Endless,
}

/// The frames of `bytes` when they arrive in pieces of these sizes, over and over, and the most memory
/// that was held.
pub fn frames(bytes: &[u8], limit: usize, pieces: &[usize]) -> (Vec<Piece>, usize) {
    let account = crate::MemoryBudget::new(usize::MAX).whole_account();
    let mut framer = Framer::new(limit, account);
    let (mut out, mut held) = (Vec::new(), 0);
    let piece = |frame| match frame {
        Frame::Line(line) => Piece::Line(line.to_vec()),
        Frame::Oversize { id } | Frame::NoRoom { id } => Piece::Oversize(id),
        Frame::Endless => Piece::Endless,
    };
    let (mut rest, mut sizes) = (bytes, pieces.iter().copied().cycle());
    while !rest.is_empty() {
        let (now, later) = rest.split_at(sizes.next().unwrap_or(1).clamp(1, rest.len()));
        framer.buffer().put_slice(now);
        held = held.max(framer.buffer().capacity());
        rest = later;
        out.extend(std::iter::from_fn(|| framer.next()).map(piece));
    }
    out.extend(framer.finish().map(piece));
    (out, held)
}

/// One message of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub kind: &'static str,
    /// The request of ours that it is about.
    pub id: Option<u64>,
    /// What is handed on as it came.
    pub payload: Option<Vec<u8>>,
}

/// What a line says, and whether its text had to be repaired.
pub fn messages(line: &[u8]) -> (Vec<Found>, bool) {
    let account = crate::MemoryBudget::new(usize::MAX).whole_account();
    let parsed = envelope::parse(Bytes::copy_from_slice(line), &account);
    let messages = match parsed.messages {
        Messages::One(message) => vec![message],
        Messages::Many(mut batch) => std::iter::from_fn(|| batch.next()).collect(),
    };
    (messages.into_iter().map(found).collect(), parsed.repaired)
}

/// A tool's name and its members.
pub type Listed = (String, Map<String, Value>);

/// Reads the pages of a list up to the last page. Gives the tools by name with their members, or the
/// reason why the list is refused.
pub fn listing(pages: &[&[u8]], limit: usize) -> Result<Vec<Listed>, String> {
    let listed = list::read(pages, limit).map_err(|failure| failure.message)?;
    let tools = listed.iter();
    Ok(tools
        .map(|tool| (tool.name().to_owned(), tool.read()))
        .collect())
}

fn found(message: Message) -> Found {
    let (kind, id, payload) = match message {
        Message::Result { id, result } => ("result", Some(id), Some(result)),
        Message::Error { id, error } => ("error", Some(id), Some(error)),
        Message::Broken { id, .. } => ("broken", Some(id), None),
        Message::Stray => ("stray", None, None),
        Message::Request { id, .. } => ("request", None, Some(id)),
        Message::Cancelled { id } => ("cancelled", Some(id), None),
        Message::Notification { .. } => ("notification", None, None),
        Message::NoRoom { id } => ("no room", id, None),
        Message::Noise => ("noise", None, None),
    };
    Found {
        kind,
        id,
        payload: payload.map(|payload| payload.to_vec()),
    }
}
