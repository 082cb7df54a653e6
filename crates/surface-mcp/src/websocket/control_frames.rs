//! The limit on pings and pongs of a client. Each of them costs work without being a request.

use std::time::Duration;

use tokio::time::Instant;

/// The maximum number of pings and pongs in one window.
const MAX_PER_SECOND: usize = 10;
/// The time for which frames are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// The control frames of a connection in the current second.
#[derive(Debug, Default)]
pub(super) struct ControlFrames {
    since: Option<Instant>,
    count: usize,
}

impl ControlFrames {
    /// Counts a frame; whether it is one more than a client may send.
    pub(super) fn is_too_many(&mut self) -> bool {
        let now = Instant::now();
        match self.since {
            Some(since) if now - since < WINDOW => self.count += 1,
            _ => (self.since, self.count) = (Some(now), 1),
        }
        self.count > MAX_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_frames_in_each_second_are_taken() {
        let mut frames = ControlFrames::default();
        for _ in 0..3 {
            for _ in 0..MAX_PER_SECOND {
                assert!(!frames.is_too_many());
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        for _ in 0..MAX_PER_SECOND {
            assert!(!frames.is_too_many());
        }
        assert!(frames.is_too_many());
    }
}
