//! A connection on which only the broker sends: text frames that another task writes, until that task ends.

use std::fmt;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use broker_core::{Account, Drain};
use broker_surface::StreamState;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_tungstenite::tungstenite::Message;

use super::close::Close;
use super::control_frames::ControlFrames;
use super::opened::Opened;
use super::{KEEP_ALIVE_INTERVAL, MAX_UNANSWERED_PINGS};

/// The maximum bytes of a frame of a client, whose frames have no meaning here.
const MAX_FRAME_BYTES: usize = 4 << 10;
/// The time for which a frame may wait for its client. It is shorter than the time after which the listener ends a
/// connection that takes no byte, so that a client that reads again learns the reason.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A frame to send: one JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushFrame {
    /// One of the frames.
    Next(Bytes),
    /// The error that ends them.
    Failed(Bytes),
}

/// A client whose connection is being upgraded.
pub struct PushSocket {
    /// The drain of the broker. Its begin ends the connection.
    pub drain: Drain,
    /// Waits for the end of the caller's right.
    pub right_ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The account that is charged for the frames that wait.
    pub account: Account,
    /// The state of the connection in the table of connections.
    pub state: Option<Arc<StreamState>>,
    /// Counts the connection for its owner until it is dropped.
    pub owned: Box<dyn Debug + Send + Sync>,
}

impl fmt::Debug for PushSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushSocket")
            .field("owned", &self.owned)
            .finish_non_exhaustive()
    }
}

impl PushSocket {
    /// Sends the frames until their channel ends; then the connection is closed with 1000. A frame is taken only when
    /// the client has the one before it, so that a slow client holds one.
    pub async fn serve(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send,
        mut frames: mpsc::Receiver<PushFrame>,
    ) {
        let mut opened = Opened::new(stream, &self.account, MAX_FRAME_BYTES).await;
        let closed = self.exchange(&mut opened, &mut frames).await;
        drop(frames);
        opened.close(closed, &self.drain).await;
        drop(self.owned);
    }

    async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        Opened {
            frames: received,
            output,
            reading,
        }: &mut Opened<S>,
        frames: &mut mpsc::Receiver<PushFrame>,
    ) -> Close {
        let draining = self.drain.draining();
        let crowded_out = async {
            match &self.state {
                Some(state) => state.ended().cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(crowded_out);
        let mut control = ControlFrames::default();
        let mut keep_alive = interval(KEEP_ALIVE_INTERVAL);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        keep_alive.reset();
        let mut stalled_at = Instant::now();
        let (mut unanswered, mut has_failed) = (0, false);
        loop {
            tokio::select! {
                biased;
                () = draining.cancelled() => return Close::GoingAway,
                () = &mut self.right_ended => return Close::RightEnded,
                () = &mut crowded_out => return Close::CrowdedOut,
                written = output.write() => match written {
                    Ok(()) if has_failed => return Close::Failed,
                    Ok(()) => {}
                    Err(_) => return Close::Lost,
                },
                () = sleep_until(stalled_at), if !output.is_empty() => return Close::SlowReader,
                frame = received.next() => {
                    unanswered = 0;
                    match frame {
                        Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_)))
                            if control.is_too_many() => return Close::TooManyPings,
                        Some(Ok(Message::Binary(_))) => return Close::Binary,
                        Some(Ok(Message::Close(_))) | None => return Close::Left,
                        Some(Ok(_)) => reading.nothing_kept(),
                        Some(Err(error)) => return Close::from_error(&error, MAX_FRAME_BYTES),
                    }
                }
                frame = frames.recv(), if output.is_empty() => {
                    let text = match frame {
                        None => return Close::Finished,
                        Some(PushFrame::Next(text)) => text,
                        Some(PushFrame::Failed(text)) => {
                            has_failed = true;
                            text
                        }
                    };
                    stalled_at = Instant::now() + STALL_TIMEOUT;
                    if let Err(full) = output.queue_text(text) {
                        return full;
                    }
                }
                _ = keep_alive.tick() => {
                    if unanswered >= MAX_UNANSWERED_PINGS {
                        return Close::Silent;
                    }
                    unanswered += 1;
                    if output.is_empty() {
                        stalled_at = Instant::now() + STALL_TIMEOUT;
                        output.ping();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use broker_core::MemoryBudget;
    use tokio::io::duplex;
    use tokio::time::advance;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// The bytes that a connection of these tests holds.
    const BUFFER_BYTES: usize = 1 << 10;

    type Client = WebSocketStream<tokio::io::DuplexStream>;

    async fn connect(drain: &Drain) -> (Client, mpsc::Sender<PushFrame>) {
        let (near, far) = duplex(BUFFER_BYTES);
        let (sender, frames) = mpsc::channel(1);
        let socket = PushSocket {
            drain: drain.clone(),
            right_ended: Box::pin(std::future::pending()),
            account: MemoryBudget::new(1 << 20).account(),
            state: None,
            owned: Box::new(()),
        };
        tokio::spawn(socket.serve(far, frames));
        let client = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        (client, sender)
    }

    /// Returns the texts that a client gets, and the code with which it is closed.
    async fn read_all(client: &mut Client) -> (Vec<String>, Option<u16>) {
        let mut texts = Vec::new();
        loop {
            match client.next().await {
                Some(Ok(Message::Text(text))) => texts.push(text.to_string()),
                Some(Ok(Message::Close(frame))) => {
                    return (texts, frame.map(|frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return (texts, None),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connection_ends_with_1000_behind_the_last_frame_and_with_1011_behind_an_error() {
        let drain = Drain::default();
        let text = |text: &str| Bytes::from(text.to_owned());
        let (mut client, frames) = connect(&drain).await;
        for name in ["a", "b"] {
            frames.send(PushFrame::Next(text(name))).await.unwrap();
        }
        drop(frames);
        let expected = (vec!["a".to_owned(), "b".to_owned()], Some(1000));
        assert_eq!(read_all(&mut client).await, expected);
        let (mut client, frames) = connect(&drain).await;
        frames.send(PushFrame::Failed(text("c"))).await.unwrap();
        assert_eq!(
            read_all(&mut client).await,
            (vec!["c".to_owned()], Some(1011))
        );
        let (mut client, _frames) = connect(&drain).await;
        drain.begin_draining();
        assert_eq!(read_all(&mut client).await, (Vec::new(), Some(1001)));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_client_holds_one_frame_and_is_closed_with_1013() {
        let (mut client, frames) = connect(&Drain::default()).await;
        let long = || PushFrame::Next(vec![b'x'; 2 * BUFFER_BYTES].into());
        frames.send(long()).await.unwrap();
        // The second one waits in the channel, and a third one finds no place, until the client is given up.
        frames.send(long()).await.unwrap();
        let third = tokio::spawn({
            let frames = frames.clone();
            async move { frames.send(long()).await }
        });
        advance(STALL_TIMEOUT / 2).await;
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        assert!(third.await.unwrap().is_err(), "the channel has ended");
        let (texts, code) = read_all(&mut client).await;
        assert_eq!((texts.len(), code), (1, Some(1013)));
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_answers_no_ping_or_sends_many_frames_is_closed() {
        let (mut client, _frames) = connect(&Drain::default()).await;
        for _ in 0..50 {
            use futures_util::SinkExt as _;
            if client.send(Message::text("hi")).await.is_err() {
                break;
            }
        }
        assert_eq!(read_all(&mut client).await.1, Some(1002));
        let (near, far) = duplex(BUFFER_BYTES);
        let socket = PushSocket {
            drain: Drain::default(),
            right_ended: Box::pin(std::future::pending()),
            account: MemoryBudget::new(1 << 20).account(),
            state: None,
            owned: Box::new(()),
        };
        let (_sender, frames) = mpsc::channel(1);
        let begun = Instant::now();
        socket.serve(far, frames).await;
        drop(near);
        assert!(begun.elapsed() >= KEEP_ALIVE_INTERVAL * (MAX_UNANSWERED_PINGS as u32 + 1));
    }
}
