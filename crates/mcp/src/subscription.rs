//! Keeps the subscription to changes of a modern server's tool list open. Changes while it was closed
//! were not announced, so every new opening is reported.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::connection::Subscription;
use crate::link::Link;
use crate::request;
use crate::spec::{ItemLists, Timing};

/// A subscription that was open for this time counts as kept by the server.
const MIN_OPEN_TIME: Duration = Duration::from_secs(60);
/// After this number of consecutive earlier ends, the subscription is not opened again.
const MAX_ENDS: u32 = 8;

/// The subscription of one session.
#[derive(Debug, Default)]
pub(crate) struct Subscriber(Mutex<Option<Subscription>>);

impl Subscriber {
    /// Opens it for the first time.
    pub(crate) fn open(link: &Link, lists: ItemLists, meta: &str) -> Self {
        Self(Mutex::new(ask(link, lists, meta)))
    }

    /// Opens it again whenever the server ended it, and notifies `reopened`. Never returns.
    pub(crate) async fn keep(
        &self,
        link: &Link,
        lists: ItemLists,
        meta: &str,
        timing: Timing,
        reopened: &Notify,
    ) -> Infallible {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut open = first;
        let mut ends = 0;
        while let Some(subscription) = open.take() {
            let since = Instant::now();
            subscription.ended().await;
            ends = if since.elapsed() >= MIN_OPEN_TIME {
                1
            } else {
                ends + 1
            };
            if ends > MAX_ENDS {
                tracing::warn!(
                    "the server does not keep its subscription; changes of its tools are noticed at its next start only"
                );
                break;
            }
            let delay = timing.backoff.saturating_mul(1 << (ends - 1));
            sleep(delay.min(timing.backoff_cap)).await;
            open = ask(link, lists, meta);
            reopened.notify_one();
        }
        std::future::pending().await
    }
}

fn ask(link: &Link, lists: ItemLists, meta: &str) -> Option<Subscription> {
    link.subscribe(|id| request::listen(id, lists, meta))
}
