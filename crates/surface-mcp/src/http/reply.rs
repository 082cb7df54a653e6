//! Replies with at most one message.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use broker_wire::protocol::INVALID_REQUEST;
use broker_wire::write::{self, Outgoing};
use broker_wire::{Id, RpcError};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::stream::{EventStream, joined};

pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The number of headers that a reply has room for: headers of the message, of the listener, and for a page.
const HEADERS: usize = 8;
/// The body of a reply.
#[derive(Debug)]
pub enum ReplyBody {
    /// The parts of one message, in order; empty for an empty reply.
    Parts(VecDeque<Bytes>),
    /// Messages over time.
    Stream(Box<EventStream>),
}

impl HttpBody for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Parts(parts) => Poll::Ready(parts.pop_front().map(|part| Ok(Frame::data(part)))),
            Self::Stream(stream) => Pin::new(&mut **stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Parts(parts) => parts.is_empty(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Parts(parts) => {
                SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum())
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// Marks a reply that is a stream: its connection waits for no request until the stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamReply {
    /// The messages and the answer of one request.
    Answer,
    /// A stream that stays open without a request.
    Open,
}

/// A reply without a body.
pub fn empty(status: StatusCode) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Parts(VecDeque::new()));
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    response
}

/// A reply with one message.
pub(super) fn message(status: StatusCode, message: Outgoing) -> Response<ReplyBody> {
    with_parts(status, joined(message.into_parts()))
}

/// A reply with a JSON text.
pub(super) fn json(status: StatusCode, text: Bytes) -> Response<ReplyBody> {
    with_parts(status, vec![text])
}

fn with_parts(status: StatusCode, parts: Vec<Bytes>) -> Response<ReplyBody> {
    let mut response = empty(status);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    *response.body_mut() = ReplyBody::Parts(parts.into());
    response
}

/// A reply with a stream of messages.
pub(super) fn stream(mark: StreamReply, stream: EventStream) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Stream(Box::new(stream)));
    response.extensions_mut().insert(mark);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would otherwise hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A reply with an error that belongs to no message.
pub fn error_reply(status: StatusCode, refused: RpcError) -> Response<ReplyBody> {
    message(status, write::error(None, refused))
}

/// The refusal of a request.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) error: RpcError,
}

impl Refused {
    /// A refusal with 400.
    pub(super) fn bad_request(error: RpcError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) const fn new(status: StatusCode, error: RpcError) -> Self {
        Self { status, error }
    }

    /// Returns the refusal of a caller that does not accept these forms.
    pub(super) fn not_acceptable(forms: &str) -> Self {
        let message = format!("the `Accept` header must allow {forms}");
        let error = RpcError::new(INVALID_REQUEST, message);
        Self::new(StatusCode::NOT_ACCEPTABLE, error)
    }

    /// The reply to the request with this id.
    pub(super) fn reply(self, id: Option<&Id>) -> Response<ReplyBody> {
        let Self { status, error } = self;
        tracing::debug!(code = error.code, "refused: {}", error.message);
        message(status, write::error(id, error))
    }
}
