//! Contains a panic of one request: the connection and all other requests continue.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A panic that was caught. The panic hook has logged its message.
#[derive(Debug)]
pub(super) struct CaughtPanic;

/// Runs `future` in place; a panic in any of its polls ends it and is returned.
///
/// Unwind safety is asserted: the future is never polled again, and what it shares with other
/// requests (core's state) keeps its own invariants under locks that are not held across calls.
pub(super) async fn contain<F: Future>(future: F) -> Result<F::Output, CaughtPanic> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(payload) => {
                discard(payload);
                Poll::Ready(Err(CaughtPanic))
            }
        },
    )
    .await
}

/// Drops a panic's payload, whose own drop may panic again.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_of_one_request_is_contained() {
        assert_eq!(contain(async { 7 }).await.unwrap(), 7);
        let later = contain(async {
            tokio::task::yield_now().await;
            if std::hint::black_box(true) {
                panic!("planned");
            }
        });
        assert!(later.await.is_err());
    }
}
