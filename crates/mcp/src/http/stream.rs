//! Streams that stay open: the announcements of a legacy server, and the subscription of a modern one.

use std::sync::Arc;
use std::time::Duration;

use broker_http_client::Response;
use broker_wire::SseDecoder;
use bytes::Bytes;
use http::header::HeaderMap;
use http::{Method, StatusCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::LinkState;
use super::body::without_newline;
use super::headers::{self, EVENT_STREAM, LAST_EVENT_ID};
use super::messages::Announcement;
use crate::connection::Subscription;
use crate::request;

/// The wait before a stream that ended is opened again; it doubles up to the maximum.
const REOPEN_DELAY: Duration = Duration::from_secs(1);
/// Bounds of the wait; the server's `retry:` may be shorter than the default.
const MIN_REOPEN_DELAY: Duration = Duration::from_millis(100);
const MAX_REOPEN_DELAY: Duration = Duration::from_secs(60);
/// A stream that was open for this time counts as kept by the server.
const MIN_OPEN_TIME: Duration = Duration::from_secs(60);

/// Keeps the stream of announcements of a legacy server open, if the server has one. Changes before it was opened
/// were not announced, so each opening counts as an announcement.
pub(super) async fn follow(state: Arc<LinkState>) {
    let stop = state.ended.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = keep_open(state) => {}
    }
}

async fn keep_open(state: Arc<LinkState>) {
    let mut delay = REOPEN_DELAY;
    let mut last_event = None;
    let mut was_open = false;
    loop {
        let mut headers = headers::new_stream();
        state.add_session(&mut headers);
        if let Some(last) = last_event.take() {
            headers.insert(LAST_EVENT_ID, last);
        }
        state.pause.ended().await;
        let opened = Instant::now();
        match state.client.send(&Method::GET, &headers, None).await {
            Ok(answer) if is_stream(&answer) => {
                was_open = true;
                state.tools_changed();
                let decoder = read(&state, answer, None).await;
                last_event = decoder.last_id().and_then(headers::visible_value);
                if opened.elapsed() >= MIN_OPEN_TIME {
                    delay = REOPEN_DELAY;
                }
                if let Some(asked) = decoder.retry() {
                    delay = asked.clamp(MIN_REOPEN_DELAY, MAX_REOPEN_DELAY);
                }
            }
            Ok(answer) if state.postpone(&answer) => {}
            Ok(answer) => {
                let status = answer.status();
                // A server that had the stream does not know the session any more.
                if was_open
                    && headers.contains_key(headers::SESSION_ID)
                    && state.client.lost_session(answer).await.is_some()
                {
                    return state.session_ended(status);
                }
                // 405, or any refusal of the first request: the server has no such stream. Later a server may refuse it
                // for a while, for example since it has not noticed the end of the last one. A server that does not
                // know the last event may open another stream.
                let has_no_stream = status == StatusCode::METHOD_NOT_ALLOWED
                    || (!was_open && status.is_client_error());
                if has_no_stream && !headers.contains_key(LAST_EVENT_ID) {
                    return;
                }
            }
            Err(_) => {}
        }
        sleep(delay).await;
        delay = (delay * 2).min(MAX_REOPEN_DELAY);
    }
}

/// Sends a `subscriptions/listen`; the subscription ends with its stream.
pub(super) fn subscribe(state: Arc<LinkState>, id: u64, line: Bytes) -> Subscription {
    let (ended, reply) = oneshot::channel();
    let tasks = state.tasks.clone();
    tasks.spawn(async move {
        let stop = state.ended.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = listen(&state, id, line) => {}
        }
        // The receiver learns the end by the drop of this sender.
        drop(ended);
    });
    Subscription::new(reply)
}

async fn listen(state: &Arc<LinkState>, id: u64, line: Bytes) {
    let mut headers: HeaderMap = headers::new_post();
    headers::add_modern(&mut headers, request::LISTEN);
    let body = without_newline(line);
    state.pause.ended().await;
    match state
        .client
        .send(&Method::POST, &headers, Some(&body))
        .await
    {
        Ok(answer) if is_stream(&answer) => {
            read(state, answer, Some(id)).await;
        }
        Ok(answer) => {
            state.postpone(&answer);
            let status = answer.status().as_u16();
            tracing::debug!(source = %state.source, status, "the server refused the subscription to changes of its tools");
        }
        Err(error) => {
            tracing::debug!(source = %state.source, reason = %error.failure, "the subscription to changes of the tools failed");
        }
    }
}

fn is_stream(answer: &Response) -> bool {
    answer.status().is_success() && headers::is_media(answer.headers(), EVENT_STREAM)
}

/// Reads a stream to its end, to an event that cannot be read, or to the end of the subscription `id`.
async fn read(state: &Arc<LinkState>, mut answer: Response, id: Option<u64>) -> SseDecoder {
    if state.check_stream_headers(answer.headers()).is_err() {
        tracing::debug!(source = %state.source, "a stream of the server cannot be read");
        return SseDecoder::new(0, state.account.clone());
    }
    let mut decoder = SseDecoder::new(state.line_bytes, state.account.clone());
    while let Ok(Some(chunk)) = answer.chunk().await {
        // A server that sends many events, or text without events, must not keep this worker.
        tokio::task::coop::consume_budget().await;
        state.note_read();
        decoder.push(&chunk);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => match state.take_announcements(event.data, id) {
                    Announcement::End => return decoder,
                    Announcement::Message => decoder.note_message(),
                    Announcement::Noise => {}
                },
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(source = %state.source, ?error, "the broker stopped reading a stream");
                    return decoder;
                }
            }
            tokio::task::coop::consume_budget().await;
        }
    }
    decoder
}
