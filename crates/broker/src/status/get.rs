//! One request on a new connection: follows no redirect, and limits the length of the reply.

use std::error::Error;
use std::io;
use std::path::Path;

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use broker_http_client::{
    Certificate, HttpTransport, Proxies, Response, TransportError, certificates, root_message,
};
use broker_model::CallCode;
use broker_model::redact::Secret;
use broker_model::text::shown_line;
use bytes::Bytes;
use serde_json::Value;
use tokio::task::spawn_blocking;
use url::Url;

use super::target::Target;

/// The maximum length of a reply.
const MAX_REPLY_BYTES: usize = 8 << 20;
/// The maximum length of a file with certificates.
const MAX_CA_BYTES: usize = 4 << 20;
/// The maximum characters of a text of another program in an error.
const MAX_SHOWN_CHARS: usize = 300;
/// The header of the credential.
static API_KEY: HeaderName = HeaderName::from_static("x-api-key");
static JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The reply of a route, parsed and as text. The status may be 200, or 503 for "not ready".
pub(super) async fn json(
    target: &Target,
    route: &str,
    secret: Option<&Secret>,
) -> Result<(Value, String), String> {
    ask(target, (Method::GET, route), secret).await
}

/// Sends a request without a body, and returns its reply like [`json`].
pub(super) async fn ask(
    target: &Target,
    (method, route): (Method, &str),
    secret: Option<&Secret>,
) -> Result<(Value, String), String> {
    let response = send(target, (method, route), secret).await?;
    read(&target.shown(), response).await
}

/// Requests a route like [`json`]; `None` if the caller has no right to see it.
pub(super) async fn json_if_permitted(
    target: &Target,
    route: &str,
    secret: Option<&Secret>,
) -> Result<Option<(Value, String)>, String> {
    let response = send(target, (Method::GET, route), secret).await?;
    let reply = Reply::receive(&target.shown(), response).await?;
    match reply.is_forbidden() {
        true => Ok(None),
        false => reply.accept(&target.shown()).map(Some),
    }
}

/// A reply that goes on until its end.
pub(super) enum Opened {
    Stream(Response),
    /// The broker refused the request, for this reason.
    Refused(String),
}

/// Requests a route whose reply is a stream. An error says why the broker gave no answer, or that it cannot serve now.
pub(super) async fn open(
    target: &Target,
    route: &str,
    secret: Option<&Secret>,
) -> Result<Opened, String> {
    let response = send(target, (Method::GET, route), secret).await?;
    let status = response.status().as_u16();
    if status == 200 {
        return Ok(Opened::Stream(response));
    }
    let refused = match read(&target.shown(), response).await {
        Ok((value, _)) => format!(
            "`{}` answered {status}: {}",
            target.shown(),
            super::shown(&value["error"]["message"], MAX_SHOWN_CHARS)
        ),
        Err(reason) => reason,
    };
    match status {
        503 => Err(refused),
        _ => Ok(Opened::Refused(refused)),
    }
}

/// Sends a request without a body.
async fn send(
    target: &Target,
    (method, route): (Method, &str),
    secret: Option<&Secret>,
) -> Result<Response, String> {
    let shown = target.shown();
    let mut headers = HeaderMap::from_iter([(ACCEPT, JSON.clone())]);
    if let Some(secret) = secret {
        let value = HeaderValue::from_str(secret.expose());
        let mut value = value.map_err(|_| "the secret cannot be sent in a header".to_owned())?;
        value.set_sensitive(true);
        headers.insert(API_KEY.clone(), value);
    }
    let transport = transport(target).await?;
    let url = parse(&format!("{shown}{route}"))?;
    let of_client = transport
        .target(url)
        .map_err(|error| format!("`{shown}` is not a URL that can be asked: {error}"))?;
    let asked = transport.send(method, &of_client, headers, Bytes::new());
    asked.await.map_err(|error| failed(&shown, &error))
}

/// Reads a reply of 200 or 503.
async fn read(shown: &str, response: Response) -> Result<(Value, String), String> {
    Reply::receive(shown, response).await?.accept(shown)
}

/// A reply of any status.
struct Reply {
    status: u16,
    text: String,
    /// The text as JSON.
    value: Option<Value>,
}

impl Reply {
    async fn receive(shown: &str, mut response: Response) -> Result<Self, String> {
        let failed = |error: TransportError| failed(shown, &error);
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_REPLY_BYTES {
                return Err(format!("the reply of `{shown}` is too long"));
            }
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(body).map_err(|_| no_broker(shown))?;
        let value = serde_json::from_str(&text).ok();
        Ok(Self {
            status,
            text,
            value,
        })
    }

    /// Whether a broker knows the caller, or lets it in without a credential, and shows it less than it asked for.
    fn is_forbidden(&self) -> bool {
        let code = self.value.as_ref().map(|value| &value["error"]["code"]);
        self.status == 403 && code.is_some_and(|code| code == CallCode::Forbidden.as_str())
    }

    /// Returns the value and the text of a reply of 200 or 503.
    fn accept(self, shown: &str) -> Result<(Value, String), String> {
        let status = self.status;
        match (status, self.value) {
            (200 | 503, Some(value)) => Ok((value, self.text)),
            (_, Some(value)) if value["error"]["message"].is_string() => {
                let message = value["error"]["message"].as_str().unwrap_or_default();
                let message = shown_line(message, MAX_SHOWN_CHARS);
                Err(format!("`{shown}` answered {status}: {message}"))
            }
            (300..400, _) => Err(format!(
                "`{shown}` answered {status}, a redirect, which is not followed"
            )),
            _ => Err(no_broker(shown)),
        }
    }
}

fn no_broker(shown: &str) -> String {
    format!("the server at `{shown}` is not an mcp-broker")
}

/// Returns a client for the broker. Files with certificates are read on another thread.
async fn transport(target: &Target) -> Result<HttpTransport, String> {
    let target = target.clone();
    let made = spawn_blocking(move || {
        let url = parse(&target.shown())?;
        let trusted = match &target.ca_file {
            Some(file) => read_certificates(file)?,
            None => Vec::new(),
        };
        // As for sources. Without TLS a proxy would read the credential.
        let proxies = match target.is_tls && !target.is_loopback() {
            true => Proxies::Environment,
            false => Proxies::None,
        };
        HttpTransport::new(&url, trusted, proxies).map_err(|error| {
            let reason = root_message(&*error);
            format!(
                "a connection to `{}` cannot be set up: {reason}",
                target.shown()
            )
        })
    });
    made.await
        .map_err(|_| "the certificates cannot be read".to_owned())?
}

fn parse(url: &str) -> Result<Url, String> {
    Url::parse(url).map_err(|error| format!("`{}` is not a URL: {error}", url.escape_debug()))
}

fn read_certificates(file: &Path) -> Result<Vec<Certificate>, String> {
    let refused = |reason: &str| {
        let file = shown_line(&file.to_string_lossy(), MAX_SHOWN_CHARS);
        format!("the certificates of `--ca-file` `{file}` cannot be used: {reason}")
    };
    let bytes = broker_files::read(file, MAX_CA_BYTES);
    let bytes = bytes.map_err(|error| refused(&error.to_string()))?;
    let read = certificates(&bytes).map_err(refused)?;
    match read.is_empty() {
        true => Err(refused("it has none in PEM form")),
        false => Ok(read),
    }
}

/// Returns the message of a request without an answer.
pub(super) fn failed(shown: &str, error: &TransportError) -> String {
    let kind = io_error(error);
    let reason = shown_line(&root_message(error), MAX_SHOWN_CHARS);
    match (error.is_connect(), kind) {
        (true, _) if error.is_tls() => {
            let help =
                "give the file of its authority by `--ca-file` if the system does not trust it";
            format!("no connection with TLS to `{shown}`: {reason}; {help}")
        }
        (true, Some(io::ErrorKind::ConnectionRefused)) => format!("nothing listens at `{shown}`"),
        (true, _) => format!("cannot reach `{shown}`: {reason}"),
        (false, Some(_)) => format!("`{shown}` closed the connection: {reason}"),
        // The answer is not one of HTTP.
        (false, None) => no_broker(shown),
    }
}

/// Returns the kind of the error of the network, if it is one.
fn io_error(error: &TransportError) -> Option<io::ErrorKind> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        source = error.source();
    }
    None
}
