//! A connection of HTTP/1.1. The task of its request drives it.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::ext::on_informational;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::task::coop::unconstrained;

use crate::head_limit::{HeadAllowance, HeadLimited};
use crate::{MAX_HEADERS, TransportError};

type Request = http::Request<Full<Bytes>>;
type Driver = http1::Connection<TokioIo<HeadLimited<TokioIo<Box<dyn Stream>>>>, Full<Bytes>>;

/// A stream of bytes, with TLS or without.
pub(crate) trait Stream: Read + Write + Send + Sync + Unpin {}

impl<T: Read + Write + Send + Sync + Unpin> Stream for T {}

/// A connection that carries one request at a time. It moves only while it is driven.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection has ended.
    driver: Option<Driver>,
    head_allowance: HeadAllowance,
}

impl Connection {
    /// Begins HTTP on a stream.
    pub(crate) async fn open(stream: Box<dyn Stream>) -> Result<Box<Self>, TransportError> {
        let head_allowance = HeadAllowance::unlimited();
        let stream = HeadLimited::new(TokioIo::new(stream), head_allowance.clone());
        let stream = TokioIo::new(stream);
        let mut builder = http1::Builder::new();
        let opened = builder.max_headers(MAX_HEADERS).handshake(stream).await;
        let (sender, driver) = opened.map_err(TransportError::broken)?;
        Ok(Box::new(Self {
            sender,
            driver: Some(driver),
            head_allowance,
        }))
    }

    /// Sends a request and waits for the head of its answer. The error has the request if no byte of it was written.
    pub(crate) async fn send(
        mut self: Box<Self>,
        mut request: Request,
    ) -> Result<(http::Response<Incoming>, Box<Self>), TrySendError<Request>> {
        self.head_allowance.begin();
        let allowance = self.head_allowance.clone();
        on_informational(&mut request, move |_| allowance.count_interim());
        // Only driving the connection brings the answer, and this task does that, so the answer needs not wake it. A
        // wait for the budget of the task would, so it must not have a budget.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let answer = poll_fn(|context| {
            self.drive(context);
            answer.as_mut().poll(&mut unwoken())
        });
        let answer = answer.await?;
        Ok((answer, self))
    }

    /// Ends the limits on data before the head of an answer: the head has arrived.
    ///
    /// # Errors
    ///
    /// The limit that was exceeded.
    pub(crate) fn head_arrived(&self) -> Result<(), String> {
        self.head_allowance.end()
    }

    /// Lets the connection read and write what it can.
    pub(crate) fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(end) = Pin::new(driver).poll(context)
        {
            // The request has its own error.
            if let Err(error) = end {
                tracing::trace!(%error, "a connection ended");
            }
            // Requests that it has not taken fail with its end.
            self.driver = None;
        }
    }

    /// Whether the connection can take a request. From now on it wakes no task.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.drive(&mut unwoken());
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Returns the context of a poll that no task waits for.
pub(crate) const fn unwoken() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
