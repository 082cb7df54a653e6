//! Where listings are parsed: on blocking threads, and no more than a few at one time in this process.

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Listings that are parsed at one time, over all sources and instances of this process.
static PARSING: Semaphore = Semaphore::const_new(4);

/// Runs `work` on a blocking thread when there is a place for it. Everything that parses tools of a
/// live listing runs here, since a parsed tool can take a hundred times the bytes of its text. Work that
/// has begun ends and keeps its place until then, also when the future is dropped.
pub async fn parse_aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // The semaphore is never closed.
    let permit = PARSING.acquire().await.ok();
    let run = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(run).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// With one blocking thread, work begins in the order in which it was handed over.
    #[test]
    fn at_most_four_listings_are_parsed_at_one_time() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let begun = Arc::<AtomicUsize>::default();
            let mut parts: Vec<_> = (0..16)
                .map(|_| {
                    let begun = begun.clone();
                    Box::pin(parse_aside(move || begun.fetch_add(1, Ordering::SeqCst)))
                })
                .collect();
            // Whatever has a place is handed over when it is polled for the first time.
            for part in &mut parts {
                tokio::select! {
                    biased;
                    _ = part => {}
                    () = std::future::ready(()) => {}
                }
            }
            let handed_over = begun.clone();
            let count = tokio::task::spawn_blocking(move || handed_over.load(Ordering::SeqCst));
            let count = count.await.unwrap();
            assert!(count <= 4, "{count} listings were parsed at one time");
            for part in parts {
                part.await.unwrap();
            }
            assert_eq!(begun.load(Ordering::SeqCst), 16);
        });
    }
}
