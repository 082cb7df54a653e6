//! The older transport HTTP+SSE (revision 2024-11-05): the server sends every message on one stream of events, and
//! names the URL to which the client posts its own. Two pipes are between them and the connection; it is the connection
//! type of a process.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_http_client::Response;
use broker_model::SourceCause;
use broker_model::text::shown_line;
use broker_wire::{SseDecoder, SseError};
use bytes::{Bytes, BytesMut};
use http::Method;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::auth::{Challenge, is_refusal};
use super::body::without_newline;
use super::client::Client;
use super::headers::{self, EVENT_STREAM};
use super::lost_session::LostSession;
use super::pause;
use super::spec::HttpSpec;
use crate::connection::{Connection, pipes};
use crate::failure::SourceFailure;
use crate::masks::Masks;
use crate::opening::Opening;
use crate::spec::SourceSpec;

/// Maximum time for the server to name the URL for messages.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the server to take a message.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// A link over HTTP+SSE. Dropping it ends the stream.
#[derive(Debug)]
pub(crate) struct EventLink {
    pub(crate) connection: Connection,
    pub(crate) masks: Masks,
    _stop: DropGuard,
    // Without a process these never change; the connection watches them.
    _no_exit: watch::Sender<Option<broker_process::ExitReport>>,
    _no_stderr: watch::Sender<bool>,
}

impl EventLink {
    /// Opens the stream of the server and reads the URL for messages.
    pub(crate) async fn open(
        http: &HttpSpec,
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let client = Arc::new(Client::new(http, spec, opening).await?);
        let mut decoder = SseDecoder::new(spec.line_bytes, spec.memory.whole_account());
        let found = timeout(ENDPOINT_TIMEOUT, open_stream(&client, &mut decoder));
        let (stream, endpoint) = found.await.unwrap_or_else(|_| {
            let message =
                "the server opened a stream of events and did not name its URL for messages";
            Err(SourceFailure::new(SourceCause::HandshakeFailed, message))
        })?;
        let pipes = pipes::open().map_err(|error| {
            let message = format!("no pipes could be opened: {error}");
            SourceFailure::new(SourceCause::SpawnFailed, message)
        })?;
        let (no_exit, exit) = watch::channel(None);
        let (no_stderr, stderr_ended) = watch::channel(true);
        let (stdin, stdout) = (pipes.stdin, pipes.stdout);
        let connection = Connection::open(stdin, stdout, exit, stderr_ended, spec, opening);
        let stopped = CancellationToken::new();
        let closer = connection.closer();
        let incoming = take_events(client.clone(), stream, decoder, pipes.output);
        let outgoing = post_lines(client, endpoint, pipes.input);
        let until = stopped.clone();
        opening.tasks.spawn(async move {
            let (failure, refused) = tokio::select! {
                () = until.cancelled() => return,
                failure = incoming => (failure, None),
                failed = outgoing => failed,
            };
            closer.close(failure, refused).await;
        });
        Ok(Self {
            connection,
            masks: Masks::new(spec),
            _stop: stopped.drop_guard(),
            _no_exit: no_exit,
            _no_stderr: no_stderr,
        })
    }

    /// Ends the connection and the stream; pending requests fail with `reason`.
    pub(crate) async fn close(&self, reason: SourceFailure) {
        self.connection.close(reason).await;
    }
}

/// Opens the stream, up to the event that names the URL for messages.
async fn open_stream(
    client: &Client,
    decoder: &mut SseDecoder,
) -> Result<(Response, Url), SourceFailure> {
    let sent = client
        .send(&Method::GET, &headers::new_stream(), None)
        .await;
    let mut answer = sent.map_err(|error| error.failure)?;
    if is_refusal(answer.status()) {
        let challenge = Challenge::read(answer.headers());
        return Err(client.refusal(answer.status(), &challenge).await);
    }
    if !answer.status().is_success() || !headers::is_media(answer.headers(), EVENT_STREAM) {
        let status = answer.status().as_u16();
        let url = client.shown_url();
        let message = format!(
            "`{url}` supports neither streamable HTTP nor HTTP+SSE: it answered a GET with HTTP status {status} and no stream of events"
        );
        return Err(SourceFailure::new(SourceCause::HandshakeFailed, message));
    }
    loop {
        // A server that sends text without an event must not keep this worker.
        tokio::task::coop::consume_budget().await;
        let chunk = answer
            .chunk()
            .await
            .map_err(|error| client.transport_failure(error))?;
        let Some(chunk) = chunk else {
            return Err(ended());
        };
        decoder.push(&chunk);
        while let Some(event) = decoder.next_event().map_err(unreadable)? {
            if event.name == "endpoint" {
                let endpoint = endpoint(client, &event.data)?;
                return Ok((answer, endpoint));
            }
        }
    }
}

/// Returns the URL for messages. It must have the origin of the configured one, since messages carry the credentials.
fn endpoint(client: &Client, text: &[u8]) -> Result<Url, SourceFailure> {
    let text = String::from_utf8_lossy(text);
    let found = client.url().join(text.trim()).ok().filter(|url| {
        url.origin() == client.url().origin()
            && url.username().is_empty()
            && url.password().is_none()
    });
    found.ok_or_else(|| {
        let shown = shown_line(&client.redactor().redact(&text), 200);
        let message = format!("the server names `{shown}` for messages, which is not in the origin of the configured URL; nothing was sent there");
        SourceFailure::new(SourceCause::Protocol, message)
    })
}

/// Writes the data of each event as one line.
async fn take_events(
    client: Arc<Client>,
    mut stream: Response,
    mut decoder: SseDecoder,
    mut output: ChildStdin,
) -> SourceFailure {
    loop {
        loop {
            match decoder.next_event() {
                Ok(Some(event)) if event.name == "message" => {
                    decoder.note_message();
                    if output.write_all(&one_line(event.data)).await.is_err() {
                        return ended();
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return unreadable(error),
            }
        }
        // A server that sends many events, or text without events, must not keep this worker.
        tokio::task::coop::consume_budget().await;
        match stream.chunk().await {
            Ok(Some(chunk)) => decoder.push(&chunk),
            Ok(None) => return ended(),
            Err(error) => return client.transport_failure(error),
        }
    }
}

/// Returns the data as a line; a newline between tokens of JSON becomes a blank.
fn one_line(data: Bytes) -> BytesMut {
    let mut line = BytesMut::from(&data[..]);
    for byte in line
        .iter_mut()
        .filter(|byte| matches!(**byte, b'\n' | b'\r'))
    {
        *byte = b' ';
    }
    line.extend_from_slice(b"\n");
    line
}

/// Posts each line, in order. Returns why that ended, and the id of the request that the server refused with its
/// session, without executing it.
async fn post_lines(
    client: Arc<Client>,
    endpoint: Url,
    input: ChildStdout,
) -> (SourceFailure, Option<u64>) {
    let mut input = BufReader::new(input);
    let headers = headers::new_post();
    loop {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return (ended(), None),
            Ok(_) => {}
        }
        let body = without_newline(line.into());
        let sent = client.send_to(endpoint.clone(), &Method::POST, &headers, Some(&body));
        match timeout(POST_TIMEOUT, sent).await {
            Ok(Ok(answer)) if answer.status().is_success() => {}
            Ok(Ok(answer)) => return refused(&client, answer, &body).await,
            Ok(Err(error)) => return (error.failure, None),
            Err(_) => {
                let seconds = POST_TIMEOUT.as_secs();
                let message = format!("the server took no message within {seconds} s");
                let failure = SourceFailure::new(SourceCause::Unreachable, message);
                return (failure, None);
            }
        }
    }
}

/// Returns the end of the link after a message that the server refused, and the id of the request in it if the server
/// does not know the session. The URL for messages names the session.
async fn refused(client: &Client, answer: Response, body: &[u8]) -> (SourceFailure, Option<u64>) {
    let (status, challenge) = (answer.status(), Challenge::read(answer.headers()));
    let retry_after = pause::asked_wait(&answer, SystemTime::now());
    let lost = client.lost_session(answer).await;
    if is_refusal(status) && lost.is_none() {
        return (client.refusal(status, &challenge).await, None);
    }
    let request = match lost {
        Some(LostSession::Refused) => serde_json::from_slice::<PostedId>(body).ok(),
        Some(LostSession::Error) | None => None,
    };
    let cause = match lost {
        Some(_) => SourceCause::SessionEnded,
        None => SourceCause::Unreachable,
    };
    let message = format!(
        "the server refused a message with HTTP status {}",
        status.as_u16()
    );
    let failure = SourceFailure {
        retry_after,
        ..SourceFailure::new(cause, message)
    };
    (failure, request.and_then(|request| request.id))
}

/// The id of a request of the broker.
#[derive(Deserialize)]
struct PostedId {
    id: Option<u64>,
}

fn ended() -> SourceFailure {
    SourceFailure::new(
        SourceCause::Unreachable,
        "the server ended its stream of events",
    )
}

fn unreadable(error: SseError) -> SourceFailure {
    let message = match error {
        SseError::TooLarge => "the server sent an event that is too long",
        SseError::OutOfMemory => "the broker has no memory for an event that the server sent",
        SseError::NoMessage => "the server sent 1 MiB or 10 000 events without a message",
    };
    SourceFailure::new(SourceCause::Protocol, message)
}
