//! Accepts connections, limits the time of a request head, and ends connections. Independent of the
//! requests.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use broker_core::Broker;
use broker_surface_mcp::http::StreamReply;
use bytes::Bytes;
use hyper::body::Frame;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::task::TaskTracker;

mod caller;
mod connection_limits;
mod connection_shares;
mod peers;
mod write_timeout;

pub(crate) use caller::Caller;
pub use connection_limits::WANTED_FILES;
pub(crate) use peers::Peers;

use crate::HttpSurface;
use crate::listener_role::ListenerRole;
use crate::routes::handle;
use connection_limits::{ConnectionLimits, ConnectionSlot, Phase};

use write_timeout::{WriteBounds, WriteTimeout};

/// Maximum time from the begin of a connection until its first head is complete. The time for a later head is that between
/// two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of looks for connections that wait too long.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The largest value of `limits.idle_timeout`. A reload may set it while a connection is open.
const MAX_IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// The maximum bytes of a head.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// The maximum bytes that are read ahead on a connection.
const MAX_READ_BYTES: usize = 32 << 10;
/// Maximum time that a reply waits until its caller accepts the next byte.
const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The minimum read rate of a caller for its reply, in bytes per second, on average over `RATE_INTERVAL`.
const MIN_REPLY_RATE: usize = 16 << 10;
const RATE_INTERVAL: Duration = Duration::from_secs(30);
/// The delay after the system failed to accept a connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Serves until the drain is finished, then until every pending reply is sent.
pub(crate) async fn serve(
    surface: Arc<HttpSurface<impl Broker>>,
    listener: TcpListener,
    role: ListenerRole,
) {
    let finished = surface.drain.finished();
    let memory = surface.broker.services().memory().limit();
    let mut limits = match role {
        ListenerRole::Broker => ConnectionLimits::new(max_open_files(), memory),
        ListenerRole::Metrics => ConnectionLimits::for_metrics(),
    };
    let mut peers = surface.peers();
    let connections = TaskTracker::new();
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let accepted = tokio::select! {
            biased;
            () = finished.cancelled() => break,
            accepted = listener.accept() => accepted,
            _ = looks.tick() => {
                close_silent(&mut limits, &surface);
                continue;
            }
        };
        match accepted {
            Ok((stream, address)) => {
                // Dropped, and so closed, if there is no slot to refuse it.
                let Some((peer, half_open)) = peers.connect(address.ip()) else {
                    tracing::debug!("an address has too many connections without a request");
                    continue;
                };
                if let Some(slot) = limits.take(half_open, finished.child_token()).await {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection keeps its delay");
                    }
                    let mut caller = Caller::new(peer, address.ip(), role);
                    caller.port = Some(address.port());
                    connections.spawn(connection(surface.clone(), stream, slot, caller));
                }
            }
            Err(error) if is_client_error(&error) => {
                tracing::debug!(%error, "a client left before its connection was accepted")
            }
            Err(error) => {
                limits.warn(&format!("connections cannot be accepted: {error}"));
                sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Serves one connection from a loopback address, over any stream.
pub(crate) async fn serve_stream(
    surface: Arc<HttpSurface<impl Broker>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let end = surface.drain.finished().child_token();
    let mut limits =
        ConnectionLimits::new(max_open_files(), surface.broker.services().memory().limit());
    let mut peers = surface.peers();
    let address = std::net::Ipv4Addr::LOCALHOST.into();
    if let Some((peer, half_open)) = peers.connect(address)
        && let Some(slot) = limits.take(half_open, end).await
    {
        let caller = Caller::new(peer, address, ListenerRole::Broker);
        let looks = async {
            loop {
                sleep(LOOK_INTERVAL).await;
                close_silent(&mut limits, &surface);
            }
        };
        tokio::select! {
            () = connection(surface.clone(), stream, slot, caller) => {}
            () = looks => {}
        }
    }
}

fn close_silent(limits: &mut ConnectionLimits, surface: &HttpSurface<impl Broker>) {
    limits.close_silent(HEAD_TIMEOUT, surface.settings.load().idle_timeout);
}

async fn connection(
    surface: Arc<HttpSurface<impl Broker>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    slot: ConnectionSlot,
    caller: Caller,
) {
    let caller = Caller {
        phase: Some(Arc::clone(&slot.phase)),
        ..caller
    };
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let admitted = slot.phase.begin_request();
        let answer = handle(surface.clone(), request.map(Body::new), caller.clone());
        let phase = Arc::clone(&slot.phase);
        async move {
            if !admitted {
                // The connection is being closed for another one, and this future is dropped with it.
                std::future::pending::<()>().await;
            }
            let answer = answer.await;
            // The phase ends with the body of a stream, since a stream may be silent for long, and with an upgraded
            // connection.
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                phase.begin_stream();
                return Ok::<_, Infallible>(answer);
            }
            Ok(match answer.extensions().get::<StreamReply>() {
                Some(reply) => {
                    if *reply == StreamReply::Open {
                        phase.begin_stream();
                    }
                    answer.map(|body| Body::new(StreamBody { body, phase }))
                }
                None => {
                    phase.end_request();
                    answer
                }
            })
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // `close_silent` closes earlier, by the settings in force. Without this timeout, a request takes more instructions.
        .header_read_timeout(MAX_IDLE_TIMEOUT)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_READ_BYTES);
    let bounds = WriteBounds {
        stall: WRITE_STALL_TIMEOUT,
        rate: MIN_REPLY_RATE,
        interval: RATE_INTERVAL,
    };
    let phase = Arc::clone(&slot.phase);
    let stream = TokioIo::new(WriteTimeout::new(stream, bounds, move || phase.written()));
    let mut served = std::pin::pin!(builder.serve_connection(stream, service).with_upgrades());
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = slot.phase.end().cancelled() => {
            if slot.phase.is_evicted() {
                return;
            }
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    // The slot is taken as long as an upgraded connection is served.
    caller.upgrades.close();
    caller.upgrades.wait().await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The body of a stream. Its connection is busy until it is dropped, so that it is not closed for another one.
struct StreamBody {
    body: Body,
    phase: Arc<Phase>,
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        self.phase.end_stream();
    }
}

/// The limit of open files of the process.
fn max_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX))
}

/// Whether the error concerns only the connection that was to be accepted.
fn is_client_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
