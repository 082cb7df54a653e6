//! The pause that a server asks for with 429 or 503, and its length.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_http_client::Response;
use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The wait after 429 and 503 without `Retry-After`.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const MIN_WAIT: Duration = Duration::from_secs(1);
/// A longer wait of a server is shortened to this.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The pause of one source. All of its links respect it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pause(Arc<watch::Sender<Option<Instant>>>);

impl Pause {
    /// Returns the time until a request may be sent; `None` for at once.
    pub(crate) fn rest(&self) -> Option<Duration> {
        let until = (*self.0.borrow())?;
        Some(until.saturating_duration_since(Instant::now())).filter(|rest| !rest.is_zero())
    }

    /// Records that the server asked for a pause. A longer one stays.
    pub(super) fn extend(&self, wait: Duration) {
        let new = Some(Instant::now() + wait);
        self.0.send_if_modified(|until| {
            let is_longer = *until < new;
            if is_longer {
                *until = new;
            }
            is_longer
        });
    }

    /// Returns when requests may be sent.
    pub(crate) async fn ended(&self) {
        while let Some(rest) = self.rest() {
            sleep(rest).await;
        }
    }

    /// Returns the ends of the pauses. Receivers must ignore one that has passed.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Instant>> {
        self.0.subscribe()
    }
}

/// Returns the wait that an answer asks for, if its status is 429 or 503.
pub(super) fn asked_wait(answer: &Response, now: SystemTime) -> Option<Duration> {
    let is_busy = matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    is_busy.then(|| retry_after(answer.headers(), now))
}

/// Returns the wait that an answer asks for with 429, or with 503 and `Retry-After`.
pub(super) fn named_wait(answer: &Response, now: SystemTime) -> Option<Duration> {
    let is_named = answer.headers().contains_key(RETRY_AFTER);
    asked_wait(answer, now).filter(|_| is_named || answer.status() == StatusCode::TOO_MANY_REQUESTS)
}

/// Returns the wait in the header of such an answer: seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Duration {
    let text = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let wait = text.map(str::trim).and_then(|text| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number that is too large for the type is also longer than the maximum.
        let seconds = is_number.then(|| text.parse().map_or(MAX_WAIT, Duration::from_secs));
        seconds.or_else(|| {
            httpdate::parse_http_date(text)
                .ok()?
                .duration_since(now)
                .ok()
        })
    });
    wait.unwrap_or(DEFAULT_WAIT).clamp(MIN_WAIT, MAX_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pause_lasts_for_the_longest_wait() {
        let pause = Pause::default();
        assert_eq!(pause.rest(), None);
        pause.extend(Duration::from_secs(9));
        pause.clone().extend(Duration::from_secs(3));
        assert_eq!(pause.rest(), Some(Duration::from_secs(9)));
        pause.ended().await;
        assert_eq!(pause.rest(), None);
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_date_and_bounded() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let wait = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now).as_secs()
        };
        assert_eq!(wait("30"), 30);
        assert_eq!(wait("0"), 1);
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:57 GMT"), 20);
        assert_eq!(
            wait("Sun, 06 Nov 1994 08:00:00 GMT"),
            5,
            "a date in the past"
        );
        assert_eq!(wait("soon"), 5);
        assert_eq!(wait("99999999999"), 3600);
        assert_eq!(wait("99999999999999999999999999"), 3600);
        assert_eq!(wait("-1"), 5);
        assert_eq!(wait("+1"), 5, "only digits");
        assert_eq!(retry_after(&HeaderMap::new(), now), DEFAULT_WAIT);
    }
}
