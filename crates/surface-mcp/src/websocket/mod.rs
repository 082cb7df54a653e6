//! The transport over WebSocket: one text frame for a message in both directions. The connection is the legacy session,
//! and modern requests are served as well. Its upgrade is in `broker-surface-http`.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use broker_wire::write::{self, Outgoing};
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message;

mod charged_read;
mod close;
mod control_frames;
mod job_followers;
mod opened;
mod output;
mod push;

pub(super) use job_followers::{JobFollowers, JobFollowing};
pub use push::{PushFrame, PushSocket};

use super::Client;
use super::answer_limit::AnswerLimit;
use super::connection::Connection;
use broker_core::{Account, Broker, CallTrace};
use broker_surface::StreamState;
use close::Close;
use control_frames::ControlFrames;
use opened::Opened;

/// The maximum bytes of a frame and of a message of a client.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The maximum number of open requests of a connection.
const MAX_IN_FLIGHT: usize = 32;
/// A connection without messages gets a ping this often, so that proxies keep it open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// The maximum number of pings without an answer or any other frame. The next ping closes the connection.
const MAX_UNANSWERED_PINGS: usize = 2;
/// The greeting that clients of simple adapters expect after the result of `initialize`.
const INITIALIZED: &str = "notifications/initialized";

/// A client whose connection is being upgraded.
#[derive(Debug)]
pub struct WebSocketClient<B> {
    pub(super) client: Arc<Client<B>>,
    pub(super) account: Account,
    /// The trace context of the request for the upgrade. It is the one over HTTP of each call.
    pub(super) trace: Option<Box<CallTrace>>,
    /// The maximum bytes of a message.
    pub(super) message_bytes: usize,
    /// The maximum of a message to the client.
    pub(super) answer_limit: AnswerLimit,
    /// Whether the result of `initialize` is followed by `notifications/initialized`.
    pub(super) is_greeted: bool,
    /// The jobs of its calls, whose progress follows.
    pub(super) followers: Option<JobFollowers>,
    /// Counts the connection for its owner until it is dropped.
    pub(super) owned: Box<dyn Debug + Send + Sync>,
    /// The state of the connection in the table of connections.
    pub(super) state: Option<Arc<StreamState>>,
}

impl<B: Broker> WebSocketClient<B> {
    /// Serves the client over its upgraded connection, until one of both closes it. Its open requests are cancelled
    /// then.
    pub async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send) {
        let mut opened = Opened::new(stream, &self.account, self.message_bytes).await;
        let mut followers = self.followers.take();
        let closed = self.exchange(&mut opened, &mut followers).await;
        drop(followers);
        opened
            .close(closed, self.client.broker.services().drain())
            .await;
        drop(self.owned);
    }

    /// Exchanges messages; returns the reason of the end.
    async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        Opened {
            frames,
            output,
            reading,
        }: &mut Opened<S>,
        followers: &mut Option<JobFollowers>,
    ) -> Close {
        let broker = &self.client.broker;
        let (draining, finished) = (
            broker.services().drain().draining(),
            broker.services().drain().finished(),
        );
        let right_ended = broker.services().right_ended(&self.client.identity);
        tokio::pin!(right_ended);
        let (connection, mut messages) = Connection::new(
            Arc::clone(&self.client),
            self.account.clone(),
            MAX_IN_FLIGHT,
        );
        let mut connection = connection.taking_empty_initialize();
        connection.trace = self.trace.clone();
        connection.answer_bytes = self.answer_limit.bytes;
        let mut control = ControlFrames::default();
        let mut keep_alive = interval(KEEP_ALIVE_INTERVAL);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        keep_alive.reset();
        let crowded_out = async {
            match &self.state {
                Some(state) => state.ended().cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(crowded_out);
        let mut unanswered = 0;
        let mut is_draining = false;
        loop {
            // The events of jobs stay in their store while their reader is slow.
            let has_room = output.is_empty();
            let followed = async {
                match followers.as_mut() {
                    Some(jobs) => jobs.next(&self.client, &self.account, has_room).await,
                    None => std::future::pending().await,
                }
            };
            let ready: Vec<Outgoing> = tokio::select! {
                biased;
                () = finished.cancelled() => return Close::GoingAway,
                () = &mut right_ended => return Close::RightEnded,
                () = &mut crowded_out => return Close::CrowdedOut,
                () = draining.cancelled(), if !is_draining => {
                    is_draining = true;
                    connection.end_subscriptions();
                    Vec::new()
                }
                written = output.write() => match written {
                    Ok(()) => Vec::new(),
                    Err(_) => return Close::Lost,
                },
                // The notifications of a request are sent before its answer.
                Some(message) = messages.recv() => vec![message],
                ready = connection.in_flight.next(), if !connection.in_flight.is_empty() => {
                    // The request may have sent one since the last look.
                    let before = std::iter::from_fn(|| messages.try_recv().ok());
                    before.chain(ready).collect()
                }
                message = followed => vec![message],
                frame = frames.next() => {
                    unanswered = 0;
                    match frame {
                    Some(Ok(Message::Text(text))) => {
                        let line = reading.whole_message(text.into());
                        let is_open = connection.is_open();
                        let mut ready = connection.take_text(&line);
                        if self.is_greeted && !is_open && connection.is_open() {
                            ready.push(write::notification(INITIALIZED, Some("{}")));
                        }
                        ready
                    }
                    Some(Ok(Message::Binary(_))) => return Close::Binary,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) if control.is_too_many() => {
                        return Close::TooManyPings;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
                        reading.nothing_kept();
                        Vec::new()
                    }
                    Some(Ok(Message::Close(_))) | None => return Close::Left,
                    Some(Err(error)) => return Close::from_error(&error, self.message_bytes),
                }
                }
                _ = keep_alive.tick() => {
                    if unanswered >= MAX_UNANSWERED_PINGS {
                        return Close::Silent;
                    }
                    unanswered += 1;
                    output.ping();
                    Vec::new()
                }
            };
            if let Some(state) = &self.state {
                state.record(!connection.in_flight.is_empty());
            }
            for message in ready {
                let fitting = self.answer_limit.fit(message, || self.client.ids.next());
                if let Some(message) = fitting
                    && let Err(full) = output.queue(message)
                {
                    return full;
                }
            }
            if is_draining && connection.in_flight.is_empty() && output.is_empty() {
                return Close::GoingAway;
            }
        }
    }
}
