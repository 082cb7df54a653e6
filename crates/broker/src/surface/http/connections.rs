//! Takes connections: how long a request's head may take to arrive, and how a connection ends. Knows
//! nothing of the requests themselves.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::peers::{Peer, Peers};
use super::places::{Place, Places};
use super::reader::{Bounds, Reader};
use super::{Caller, Surface, handle};

/// How long the head of a request may take, from the end of the one before; so also how long a
/// connection may say nothing.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of a head.
const HEAD_BYTES: usize = 32 << 10;
/// The most bytes that are read ahead of a connection.
const MAX_READ_BYTES: usize = 32 << 10;
/// How long a reply waits for its reader to take the next byte.
const READS_WITHIN: Duration = Duration::from_secs(30);
/// The bytes of a second that a reader takes at least, on average over `RATE_INTERVAL`.
const MIN_REPLY_RATE: usize = 16 << 10;
const RATE_INTERVAL: Duration = Duration::from_secs(30);
/// How long nothing is taken after the system refused a connection.
const REST: Duration = Duration::from_millis(100);

/// Serves until `stop`, then until every reply that is under way is sent.
pub(super) async fn serve(surface: Arc<Surface>, listener: TcpListener, stop: CancellationToken) {
    let (mut places, mut peers) = (
        Places::new(files()),
        Peers::new(surface.core.memory().clone()),
    );
    let connections = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, address)) => {
                // Dropped, and so closed, where there is not even a place to say why.
                let Some((peer, half_open)) = peers.connect(address.ip()) else {
                    tracing::debug!("an address has too many connections without a request");
                    continue;
                };
                if let Some(place) = places.take(half_open, stop.child_token()).await {
                    connections.spawn(connection(surface.clone(), stream, place, peer));
                }
            }
            Err(error) if is_the_callers(&error) => tracing::debug!(%error, "a caller left"),
            Err(error) => {
                places.say(&format!("connections cannot be taken: {error}"));
                sleep(REST).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn connection(surface: Arc<Surface>, stream: TcpStream, place: Place, peer: Arc<Peer>) {
    let caller = Caller {
        account: peer.account().clone(),
        crowded: place.crowded,
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let admitted = place.phase.begin_request();
        let answer = handle(surface.clone(), request.map(Body::new), caller.clone());
        let phase = Arc::clone(&place.phase);
        async move {
            if !admitted {
                // The connection is being closed for another, and this future with it.
                std::future::pending::<()>().await;
            }
            let answer = answer.await;
            phase.end_request();
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_header_size(HEAD_BYTES)
        .max_buf_size(MAX_READ_BYTES);
    let bounds = Bounds {
        stall: READS_WITHIN,
        rate: MIN_REPLY_RATE,
        interval: RATE_INTERVAL,
    };
    let phase = Arc::clone(&place.phase);
    let stream = TokioIo::new(Reader::new(stream, bounds, move || phase.written()));
    let mut served = std::pin::pin!(builder.serve_connection(stream, service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = place.phase.end().cancelled() => {
            if place.phase.is_evicted() {
                tracing::debug!("a connection that waited for a request is closed for a new one");
                return;
            }
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// How many files the process may have open.
fn files() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX))
}

/// Whether the connection that was about to be taken is at fault, and no other.
fn is_the_callers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
