//! Contains a panic of one request: the connection and all other requests continue.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// A panic that was caught. The panic hook has logged its message.
#[derive(Debug)]
pub struct CaughtPanic;

/// Runs `future` in place; a panic in any of its polls ends it and is returned. The caller pins it, since an
/// `async fn` would hold it twice: as its argument and as its variable.
///
/// Unwind safety is asserted: the future is never polled again, and what it shares with other
/// requests (core's state) keeps its own invariants under locks that are not held across calls.
pub async fn contain<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, CaughtPanic> {
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
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn panic_of_one_request_is_contained() {
        assert_eq!(contain(pin!(async { 7 })).await.unwrap(), 7);
        let later = pin!(async {
            tokio::task::yield_now().await;
            if std::hint::black_box(true) {
                panic!("planned");
            }
        });
        assert!(contain(later).await.is_err());
    }
}
