//! Takes connections and bounds them: how many there may be, how long a request's head may take to
//! arrive, and how long a reply waits for its reader. Knows nothing of what is asked.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::reader::Reader;
use super::{Surface, handle};

/// How long the head of a request may take, from the end of the one before; so also how long a
/// connection may say nothing.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of a head.
const HEAD_BYTES: usize = 32 << 10;
/// How long a reply waits for its reader to take the next byte.
const READS_WITHIN: Duration = Duration::from_secs(30);
/// The most connections that are served, where the process may have files enough.
const MOST_CONNECTIONS: usize = 1024;
/// Files that are kept for sources and the log, and as a part of all files that there may be.
const LEAST_OTHER_FILES: usize = 36;
const OTHER_FILES: usize = 4;
/// One connection of so many more is taken to say that there are too many.
const ONE_REFUSED_OF: usize = 16;
/// How long nothing is taken after the system refused a connection.
const REST: Duration = Duration::from_millis(100);
/// How often the log says that there are too many connections.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Places for connections.
struct Places {
    served: Arc<Semaphore>,
    refused: Arc<Semaphore>,
    said: Option<Instant>,
}

/// A place of a connection. One that is crowded is told so and gets nothing but health.
struct Place {
    crowded: bool,
    _permit: OwnedSemaphorePermit,
}

/// Serves until `stop`, then until every reply that is under way is sent.
pub(super) async fn serve(surface: Arc<Surface>, listener: TcpListener, stop: CancellationToken) {
    let mut places = Places::new(files());
    let connections = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                // Dropped, and so closed, where there is not even a place to say why.
                if let Some(place) = places.take() {
                    let connection = connection(surface.clone(), stream, place, stop.clone());
                    connections.spawn(connection);
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

async fn connection(
    surface: Arc<Surface>,
    stream: TcpStream,
    place: Place,
    stop: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let answer = handle(surface.clone(), request.map(Body::new), place.crowded);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_header_size(HEAD_BYTES);
    let stream = TokioIo::new(Reader::new(stream, READS_WITHIN));
    let mut served = std::pin::pin!(builder.serve_connection(stream, service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

impl Places {
    fn new(files: usize) -> Self {
        let others = LEAST_OTHER_FILES.max(files / OTHER_FILES);
        let all = files.saturating_sub(others);
        let refused = MOST_CONNECTIONS.min(all) / ONE_REFUSED_OF;
        let served = MOST_CONNECTIONS.min(all - refused.min(all));
        Self {
            served: Arc::new(Semaphore::new(served.max(1))),
            refused: Arc::new(Semaphore::new(refused.max(1))),
            said: None,
        }
    }

    fn take(&mut self) -> Option<Place> {
        if let Ok(permit) = self.served.clone().try_acquire_owned() {
            return Some(Place {
                crowded: false,
                _permit: permit,
            });
        }
        self.say("too many connections; more are refused");
        let permit = self.refused.clone().try_acquire_owned().ok()?;
        Some(Place {
            crowded: true,
            _permit: permit,
        })
    }

    /// A warning, now and then.
    fn say(&mut self, what: &str) {
        let now = Instant::now();
        if self.said.is_none_or(|said| now - said >= SAY_EVERY) {
            self.said = Some(now);
            tracing::warn!("{what}");
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_34_f_50_connections_leave_files_for_everything_else() {
        for files in [0, 40, 64, 256, 1024, 4096, usize::MAX] {
            let places = Places::new(files);
            let (served, refused) = (
                places.served.available_permits(),
                places.refused.available_permits(),
            );
            assert!(served >= 1 && refused >= 1);
            assert!(served <= MOST_CONNECTIONS, "{served} of {files} files");
            if files >= 64 {
                assert!(served + refused + LEAST_OTHER_FILES <= files, "{files}");
            }
        }
        let plenty = Places::new(usize::MAX);
        assert_eq!(plenty.served.available_permits(), MOST_CONNECTIONS);
    }

    #[test]
    fn f_34_a_crowd_is_told_so_and_then_turned_away() {
        let mut places = Places::new(64);
        let mut taken: Vec<Place> = std::iter::from_fn(|| places.take()).collect();
        let crowded = taken.iter().filter(|place| place.crowded).count();
        assert_eq!((crowded, taken.len() - crowded), (1, 27));
        taken.remove(0);
        assert!(places.take().is_some_and(|place| !place.crowded));
    }
}
