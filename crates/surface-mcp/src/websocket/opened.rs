//! A connection that was upgraded: its two halves, and its end.

use broker_core::{Account, Drain};
use futures_util::StreamExt as _;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::charged_read::{ChargedRead, ReadCharge};
use super::close::Close;
use super::output::{Frames, Output};

/// The bytes that are read ahead on a connection.
const READ_BYTES: usize = 16 << 10;
/// Maximum time until a client has read the reason of a close, and to read the rest of what it sends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for connections that are open when the broker ends.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);

/// An upgraded connection.
pub(super) struct Opened<S> {
    pub(super) frames: Frames<S>,
    pub(super) output: Output<S>,
    pub(super) reading: ReadCharge,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Opened<S> {
    /// Opens a connection whose client sends messages of at most `message_bytes`, charged to `account`.
    pub(super) async fn new(stream: S, account: &Account, message_bytes: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_frame_size(Some(message_bytes))
            .max_message_size(Some(message_bytes));
        let (stream, reading) = ChargedRead::new(stream, account.clone());
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        let (sink, frames) = socket.split();
        Self {
            frames,
            output: Output::new(sink, account.clone()),
            reading,
        }
    }

    /// Closes the connection for a reason. If its client does not read it in time, the connection ends as it is.
    pub(super) async fn close(self, closed: Close, drain: &Drain) {
        tracing::debug!(reason = ?closed, "a WebSocket connection ends");
        let Self {
            frames, mut output, ..
        } = self;
        let end = async {
            if output.close(closed).await.is_err() {
                return;
            }
            if let Ok(mut socket) = output.into_socket(frames) {
                let mut unread = [0; 4096];
                let stream = socket.get_mut().get_mut();
                // The server closes first (RFC 6455, 7.1.1): clients wait for it. A client that still sends would lose
                // the reason if the connection were reset, so only this direction ends.
                if stream.shutdown().await.is_err() {
                    return;
                }
                while stream.read(&mut unread).await.is_ok_and(|read| read > 0) {}
            }
        };
        let ending = drain.finished();
        let last = async {
            ending.cancelled().await;
            sleep(LAST_TIMEOUT).await;
        };
        tokio::select! {
            _ = timeout(CLOSE_TIMEOUT, end) => {}
            () = last => {}
        }
    }
}
