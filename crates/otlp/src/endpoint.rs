//! One URL of a receiver: sends a message, and again if the receiver asks for it.

use std::fs;
use std::time::Duration;

use broker_http_client::{HttpTransport, Proxies, Target, certificates, root_message};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use crate::settings::Signal;

/// The maximum number of times that a message is sent.
const MAX_ATTEMPTS: u32 = 4;
/// The wait before the second attempt; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The maximum wait that a receiver can ask for.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The maximum bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 64 << 10;
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// A URL of a receiver.
#[derive(Debug)]
pub(crate) struct Endpoint {
    transport: HttpTransport,
    target: Target,
    signal: Signal,
}

/// Why an attempt failed.
struct Failed {
    reason: String,
    /// Whether the receiver asks for the message once more.
    may_retry: bool,
    wait: Option<Duration>,
}

impl Endpoint {
    /// Prepares requests. Reads the files of certificates.
    pub(crate) fn open(signal: Signal) -> Result<Self, String> {
        let more = match &signal.certificate {
            None => Vec::new(),
            Some(file) => {
                let pem = fs::read(file)
                    .map_err(|error| format!("`{}` cannot be read: {error}", file.display()))?;
                certificates(&pem).map_err(|reason| format!("`{}` {reason}", file.display()))?
            }
        };
        let proxies = match is_loopback(&signal.url) {
            true => Proxies::None,
            false => Proxies::Environment,
        };
        let transport = HttpTransport::new(&signal.url, more, proxies)
            .map_err(|error| root_message(&*error))?;
        let target = transport
            .target(signal.url.clone())
            .map_err(|error| error.to_string())?;
        Ok(Self {
            transport,
            target,
            signal,
        })
    }

    /// Sends a message. After a cancellation it is not sent again.
    ///
    /// # Errors
    ///
    /// The reason why it was not taken.
    pub(crate) async fn send(
        &self,
        message: Bytes,
        closing: &CancellationToken,
    ) -> Result<(), String> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let sent = timeout(self.signal.timeout, self.attempt(message.clone())).await;
            let failed = match sent {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(failed)) => failed,
                Err(_elapsed) => Failed {
                    reason: "it does not answer in time".to_owned(),
                    may_retry: true,
                    wait: None,
                },
            };
            if !failed.may_retry || attempt == MAX_ATTEMPTS || closing.is_cancelled() {
                return Err(failed.reason);
            }
            tokio::select! {
                () = sleep(failed.wait.unwrap_or(wait).min(MAX_WAIT)) => {}
                () = closing.cancelled() => {}
            }
            wait *= 2;
        }
        Ok(())
    }

    async fn attempt(&self, message: Bytes) -> Result<(), Failed> {
        let broken = |reason: String| Failed {
            reason,
            may_retry: true,
            wait: None,
        };
        let mut headers = self.signal.headers.clone();
        headers.insert(CONTENT_TYPE, PROTOBUF);
        let sent = self
            .transport
            .send(Method::POST, &self.target, headers, message);
        let mut answer = sent.await.map_err(|error| broken(root_message(&error)))?;
        let status = answer.status();
        let wait = answer.headers().get(RETRY_AFTER);
        let wait = wait.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let mut read = 0;
        while let Some(chunk) = answer
            .chunk()
            .await
            .map_err(|error| broken(root_message(&error)))?
        {
            read += chunk.len();
            if read > MAX_ANSWER_BYTES {
                break;
            }
        }
        if status.is_success() {
            return Ok(());
        }
        Err(Failed {
            reason: format!("it answers with HTTP status {}", status.as_u16()),
            may_retry: matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ),
            wait: wait.map(Duration::from_secs),
        })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
