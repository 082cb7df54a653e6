//! Outgoing messages: one that is being written, and a bounded number of bytes that wait behind it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, ready};

use broker_wire::write::Outgoing;
use bytes::{Bytes, BytesMut};
use futures_util::SinkExt as _;
use futures_util::stream::{SplitSink, SplitStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::charged_read::ChargedRead;
use super::close::Close;
use broker_core::{Account, Charge};

/// The maximum bytes that wait behind the message that is being written. One message may wait at any length.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// The memory of a message that is written, as a multiple of its length: it is joined, and copied for the frame.
const MAX_COPIES: usize = 2;

/// The connection with charges for what is read.
pub(super) type Socket<S> = WebSocketStream<ChargedRead<S>>;
/// Its incoming half.
pub(super) type Frames<S> = SplitStream<Socket<S>>;

/// The outgoing half of a connection.
pub(super) struct Output<S> {
    sink: SplitSink<Socket<S>, Message>,
    account: Account,
    /// The charge of the message that is being written.
    writing: Option<Charge>,
    waiting: VecDeque<(Message, Charge)>,
    waiting_bytes: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Output<S> {
    /// An output that charges its messages to `account`.
    pub(super) fn new(sink: SplitSink<Socket<S>, Message>, account: Account) -> Self {
        Self {
            sink,
            account,
            writing: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Whether every message was written.
    pub(super) fn is_empty(&self) -> bool {
        self.writing.is_none() && self.waiting.is_empty()
    }

    /// Adds a message. The reason to close the connection is returned if too much waits.
    pub(super) fn queue(&mut self, message: Outgoing) -> Result<(), Close> {
        self.queue_text(joined(message.into_parts()))
    }

    /// Adds a text frame, as [`Self::queue`] does.
    pub(super) fn queue_text(&mut self, text: Bytes) -> Result<(), Close> {
        let bytes = text.len();
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > MAX_WAITING_BYTES {
            return Err(Close::SlowReader);
        }
        let mut charge = Charge::default();
        let covered = charge.cover(&self.account, MAX_COPIES * bytes);
        covered.map_err(|_full| Close::NoMemory)?;
        // Messages are JSON, so they are UTF-8.
        let text = Utf8Bytes::try_from(text).map_err(|_| Close::Lost)?;
        self.waiting.push_back((Message::Text(text), charge));
        self.waiting_bytes += bytes;
        Ok(())
    }

    /// Adds a ping, unless a message is on its way.
    pub(super) fn ping(&mut self) {
        if self.is_empty() {
            let ping = Message::Ping(Bytes::new());
            self.waiting.push_back((ping, Charge::default()));
        }
    }

    /// Returns when one message was written; waits forever without one. Cancel-safe.
    pub(super) async fn write(&mut self) -> Result<(), Error> {
        poll_fn(|cx| {
            loop {
                if self.writing.is_some() {
                    ready!(self.sink.poll_flush_unpin(cx))?;
                    self.writing = None;
                    return Poll::Ready(Ok(()));
                }
                if self.waiting.is_empty() {
                    return Poll::Pending;
                }
                ready!(self.sink.poll_ready_unpin(cx))?;
                if let Some((message, charge)) = self.waiting.pop_front() {
                    self.waiting_bytes -= message_bytes(&message);
                    self.sink.start_send_unpin(message)?;
                    self.writing = Some(charge);
                }
            }
        })
        .await
    }

    /// Closes the connection: finishes the message that is being written, and sends the reason. Messages that wait are
    /// sent before it only if the broker ends.
    pub(super) async fn close(&mut self, reason: Close) -> Result<(), Error> {
        let frame = match (reason, reason.frame()) {
            // The reply to the frame of the client waits to be written.
            (Close::Left, _) => return self.sink.flush().await,
            (_, None) => return Err(Error::ConnectionClosed),
            (_, Some(frame)) => frame,
        };
        if reason != Close::GoingAway {
            self.waiting.clear();
        }
        while !self.is_empty() {
            self.write().await?;
        }
        self.sink.send(Message::Close(Some(frame))).await
    }

    /// The whole connection.
    pub(super) fn into_socket(self, frames: Frames<S>) -> Result<Socket<S>, ()> {
        self.sink.reunite(frames).map_err(|_| ())
    }
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::Text(text) => text.len(),
        _ => 0,
    }
}

fn joined(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut joined = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    for part in parts {
        joined.extend_from_slice(&part);
    }
    joined.freeze()
}
