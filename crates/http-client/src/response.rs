//! Answers, whose bodies are read in chunks.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::GzipDecoder;
use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _, ReadBuf};

use crate::TransportError;
use crate::connection::{Connection, unwoken};
use crate::pool::Pool;

/// Maximum bytes of a chunk of a decompressed body.
const CHUNK_BYTES: usize = 16 << 10;
/// Maximum number of chunks that are skipped so that the connection of an unread body is used again.
const MAX_SKIPPED_CHUNKS: usize = 4;

/// The head of an answer, and its decompressed body.
#[derive(Debug)]
pub struct Response {
    head: Parts,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Plain(ConnectionBody),
    Gzip(Box<GzipDecoder<BodyReader>>),
}

impl Response {
    pub(crate) fn new(
        answer: http::Response<Incoming>,
        connection: Box<Connection>,
        pool: &Arc<Pool>,
    ) -> Self {
        let (mut head, incoming) = answer.into_parts();
        let body = ConnectionBody {
            incoming,
            connection: Some(connection),
            pool: Arc::downgrade(pool),
        };
        let is_gzip = head.headers.get(CONTENT_ENCODING);
        let body = match is_gzip.is_some_and(|encoding| encoding == "gzip") {
            true => {
                head.headers.remove(CONTENT_ENCODING);
                head.headers.remove(CONTENT_LENGTH);
                let mut decoder = GzipDecoder::new(BodyReader::new(body));
                decoder.multiple_members(true);
                Body::Gzip(Box::new(decoder))
            }
            false => Body::Plain(body),
        };
        Self { head, body }
    }

    /// Returns the status.
    pub const fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Returns the headers, without the encoding of a body that is decompressed.
    pub const fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the length of the rest of the body, if it is known before it is read.
    pub fn content_length(&self) -> Option<u64> {
        match &self.body {
            Body::Plain(body) => body.incoming.size_hint().exact(),
            Body::Gzip(_) => None,
        }
    }

    /// Returns the next chunk of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        match &mut self.body {
            Body::Plain(body) => {
                let chunk = poll_fn(|context| body.poll_chunk(context)).await;
                chunk.transpose().map_err(TransportError::broken)
            }
            Body::Gzip(decoder) => {
                let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
                let read = decoder.read_buf(&mut chunk).await;
                let length = read.map_err(TransportError::broken)?;
                Ok((length > 0).then(|| chunk.freeze()))
            }
        }
    }
}

/// A body as the server sends it. Its connection is used again once it has been read.
#[derive(Debug)]
struct ConnectionBody {
    incoming: Incoming,
    /// `None` once the body has been read.
    connection: Option<Box<Connection>>,
    pool: Weak<Pool>,
}

impl ConnectionBody {
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        let mut is_driven = false;
        loop {
            match Pin::new(&mut self.incoming).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(chunk) = frame.into_data() {
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.connection = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => {
                    self.release();
                    return Poll::Ready(None);
                }
                Poll::Pending if is_driven => return Poll::Pending,
                Poll::Pending => {
                    if let Some(connection) = &mut self.connection {
                        connection.drive(context);
                    }
                    is_driven = true;
                }
            }
        }
    }

    /// Gives the connection back.
    fn release(&mut self) {
        if let Some(connection) = self.connection.take()
            && let Some(pool) = self.pool.upgrade()
        {
            pool.put(connection);
        }
    }
}

impl Drop for ConnectionBody {
    /// Keeps the connection if the rest of the body is short and there already; closes it otherwise.
    fn drop(&mut self) {
        for _ in 0..MAX_SKIPPED_CHUNKS {
            if self.connection.is_none() || self.poll_chunk(&mut unwoken()).is_pending() {
                return;
            }
        }
    }
}

/// Reads the bytes of a body.
#[derive(Debug)]
struct BodyReader {
    body: ConnectionBody,
    chunk: Bytes,
}

impl BodyReader {
    const fn new(body: ConnectionBody) -> Self {
        Self {
            body,
            chunk: Bytes::new(),
        }
    }
}

impl AsyncBufRead for BodyReader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        while this.chunk.is_empty() {
            match ready!(this.body.poll_chunk(context)) {
                Some(chunk) => this.chunk = chunk.map_err(io::Error::other)?,
                None => break,
            }
        }
        Poll::Ready(Ok(&this.chunk))
    }

    fn consume(self: Pin<&mut Self>, bytes: usize) {
        self.get_mut().chunk.advance(bytes);
    }
}

impl AsyncRead for BodyReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = ready!(self.as_mut().poll_fill_buf(context))?;
        let length = bytes.len().min(buffer.remaining());
        buffer.put_slice(&bytes[..length]);
        self.consume(length);
        Poll::Ready(Ok(()))
    }
}
