//! Progress of a call: the `notifications/progress` that a server sends before the result.

use broker_wire::Raw;
use serde::Deserialize;
use serde_json::Number;
use tokio::sync::mpsc;

/// Longer notifications are dropped.
const MAX_PROGRESS_BYTES: usize = 16 << 10;

/// One `notifications/progress` of a call, without its token, which the broker chose.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Progress {
    /// Grows with each notification; the unit is the server's.
    pub progress: Number,
    /// The value at the end, if the server knows it.
    pub total: Option<Number>,
    /// A text for people, written by the server.
    pub message: Option<String>,
}

/// Receives the progress of one call. A call with a sink asks its server for progress.
#[derive(Clone, Debug)]
pub struct ProgressSink(mpsc::Sender<Progress>);

impl ProgressSink {
    /// A sink that keeps at most `capacity` notifications that were not received; it drops further ones.
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<Progress>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self(sender), receiver)
    }

    /// Accepts the `params` of a notification, if they can be read and there is room.
    pub(crate) fn offer(&self, params: &Raw) {
        let bytes = params.bytes();
        if bytes.len() > MAX_PROGRESS_BYTES || self.0.capacity() == 0 {
            return;
        }
        if let Ok(progress) = serde_json::from_slice(bytes)
            && self.0.try_send(progress).is_err()
        {
            tracing::trace!("progress of a call was dropped: its receiver is gone or full");
        }
    }
}

/// The request whose progress the `params` of a notification are: the token of a request is its id.
pub(crate) fn token(params: &Raw) -> Option<u64> {
    #[derive(Deserialize)]
    struct Token {
        #[serde(rename = "progressToken")]
        token: u64,
    }
    let bytes = params.bytes();
    if bytes.len() > MAX_PROGRESS_BYTES {
        return None;
    }
    let read = serde_json::from_slice::<Token>(bytes).ok();
    read.map(|read| read.token)
}
