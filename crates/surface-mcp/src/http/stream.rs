//! Replies with more than one message: a stream of server-sent events, as the HTML standard defines them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use broker_wire::write::Outgoing;
use bytes::{Bytes, BytesMut};
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};

use crate::answer_limit::AnswerLimit;
use broker_core::RequestId;

/// The maximum number of announced changes that wait to be written.
pub(super) const MAX_WAITING_CHANGES: usize = 1;
/// The interval of comments on a silent stream. They show proxies and clients that it is alive.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

const EVENT: &[u8] = b"event: message\ndata: ";
const END: &[u8] = b"\n\n";
const COMMENT: &[u8] = b": keep-alive\n\n";

/// The end of a stream: the answer of its request, or `None` if the stream ends without one.
pub(super) type StreamEnd = Pin<Box<dyn Future<Output = Option<Outgoing>> + Send>>;

/// A message of at most this many bytes is copied into one piece. This costs less than to write its parts.
const MAX_JOINED_BYTES: usize = 16 << 10;

/// The limit of the messages of a stream, and the id of its request for the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventLimit {
    pub(super) messages: AnswerLimit,
    pub(super) request_id: RequestId,
}

/// The body of a stream: messages, then its end. Dropping it drops the end. This cancels the request if the end runs
/// it.
pub struct EventStream {
    messages: Option<mpsc::Receiver<Outgoing>>,
    /// `None` once it has resolved.
    end: Option<StreamEnd>,
    keep_alive: Pin<Box<Sleep>>,
    limit: EventLimit,
    /// Bytes to write next.
    waiting: VecDeque<Bytes>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

impl EventStream {
    pub(super) fn new(
        messages: Option<mpsc::Receiver<Outgoing>>,
        end: StreamEnd,
        limit: EventLimit,
    ) -> Self {
        Self {
            limit,
            messages,
            end: Some(end),
            keep_alive: Box::pin(sleep(KEEP_ALIVE_INTERVAL)),
            waiting: VecDeque::new(),
        }
    }

    /// Puts a message at the beginning of the stream.
    pub(super) fn starting_with(mut self, message: Outgoing) -> Self {
        self.push(message);
        self
    }

    /// Puts the event that names the URL for messages of the transport HTTP+SSE at the beginning of the stream.
    pub(super) fn starting_with_endpoint(mut self, url: &str) -> Self {
        let event = format!("event: endpoint\ndata: {url}\n\n");
        self.waiting.push_back(event.into());
        self
    }

    fn push(&mut self, message: Outgoing) {
        let EventLimit {
            messages,
            request_id,
        } = self.limit;
        let Some(message) = messages.fit(message, || request_id) else {
            return;
        };
        let mut parts = message.into_parts();
        parts.insert(0, Bytes::from_static(EVENT));
        parts.push(Bytes::from_static(END));
        self.waiting.extend(joined(parts));
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        match &mut self.messages {
            Some(messages) => messages.poll_recv(cx),
            None => Poll::Ready(None),
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(chunk) = self.waiting.pop_front() {
                return Poll::Ready(Some(chunk));
            }
            if let Poll::Ready(Some(message)) = self.poll_message(cx) {
                self.push(message);
                continue;
            }
            let Some(end) = &mut self.end else {
                return Poll::Ready(None);
            };
            if let Poll::Ready(answer) = end.as_mut().poll(cx) {
                self.end = None;
                // Messages that the request sent before its answer come before it.
                while let Poll::Ready(Some(message)) = self.poll_message(cx) {
                    self.push(message);
                }
                if let Some(answer) = answer {
                    self.push(answer);
                }
                continue;
            }
            // The request may have sent a message when it was polled.
            if let Poll::Ready(Some(message)) = self.poll_message(cx) {
                self.push(message);
                continue;
            }
            if self.keep_alive.as_mut().poll(cx).is_ready() {
                let next = Instant::now() + KEEP_ALIVE_INTERVAL;
                self.keep_alive.as_mut().reset(next);
                self.waiting.push_back(Bytes::from_static(COMMENT));
                continue;
            }
            return Poll::Pending;
        }
    }
}

/// The same bytes, in one part if they are short.
pub(super) fn joined(parts: Vec<Bytes>) -> Vec<Bytes> {
    let length = parts.iter().map(Bytes::len).sum();
    if parts.len() < 2 || length > MAX_JOINED_BYTES {
        return parts;
    }
    let mut joined = BytesMut::with_capacity(length);
    for part in &parts {
        joined.extend_from_slice(part);
    }
    vec![joined.freeze()]
}

impl HttpBody for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.poll_chunk(cx);
        chunk.map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use broker_wire::Id;
    use broker_wire::write::{notification, result};
    use tokio::sync::watch;

    use super::*;
    use crate::answer_limit::Way;
    use crate::subscription::report_changes;

    fn limit() -> EventLimit {
        EventLimit {
            messages: AnswerLimit {
                way: Way::Event,
                bytes: 1000,
            },
            request_id: RequestId::default(),
        }
    }

    async fn text_of(mut stream: EventStream) -> String {
        let mut all = Vec::new();
        while let Some(chunk) = poll_fn(|cx| stream.poll_chunk(cx)).await {
            all.extend_from_slice(&chunk);
        }
        String::from_utf8(all).unwrap()
    }

    #[tokio::test]
    async fn messages_sent_before_the_answer_come_before_it() {
        let (sender, messages) = mpsc::channel(4);
        let end = Box::pin(async move {
            sender.send(notification("a", None)).await.unwrap();
            tokio::task::yield_now().await;
            sender.send(notification("b", None)).await.unwrap();
            Some(result(&Id::Integer(1), b"{}".to_vec().into()))
        });
        let expected = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n\
             event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"b\"}\n\n\
             event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
        assert_eq!(
            text_of(EventStream::new(Some(messages), end, limit())).await,
            expected
        );
    }

    #[tokio::test]
    async fn changes_that_are_not_read_wait_as_one_message_of_a_stream() {
        let (sender, messages) = mpsc::channel(MAX_WAITING_CHANGES);
        let counter = watch::Sender::new(0);
        let changes = counter.subscribe();
        let end = Box::pin(async move {
            report_changes(changes.into(), &sender, None, || {}).await;
            None
        });
        let mut stream = EventStream::new(Some(messages), end, limit());
        // Polled once, as by a connection that cannot write any more.
        let first = poll_fn(|cx| Poll::Ready(stream.poll_chunk(cx))).await;
        assert!(first.is_pending());
        for _ in 0..100_000 {
            counter.send_modify(|count| *count += 1);
            tokio::task::yield_now().await;
        }
        drop(counter);
        let text = text_of(stream).await;
        assert_eq!(text.matches("tools/list_changed").count(), 1, "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn silent_stream_has_comments_until_its_end() {
        let (_sender, messages) = mpsc::channel(1);
        let end = Box::pin(async {
            sleep(2 * KEEP_ALIVE_INTERVAL + Duration::from_secs(1)).await;
            None
        });
        let text = text_of(EventStream::new(Some(messages), end, limit())).await;
        assert_eq!(text, ": keep-alive\n\n".repeat(2));
    }
}
