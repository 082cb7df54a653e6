//! The grant `client_credentials` of a token endpoint (RFC 6749, section 4.4; RFC 8707).

use std::sync::atomic::{AtomicBool, Ordering};

use broker_http_client::{HttpTransport, Target};
use broker_memory::Account;
use broker_model::SourceCause;
use broker_model::redact::{Redactor, Secret};
use broker_model::text::shown_line;
use bytes::Bytes;
use data_encoding::BASE64;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use tokio::time::timeout;

use super::FETCH_TIMEOUT;
use super::grant::{Grant, TokenType};
use crate::failure::SourceFailure;
use crate::http::body::{self, BodyError};
use crate::http::headers::JSON;
use crate::http::spec::{ClientCredentials, HttpSpec};
use crate::http::transport::{connections, transport_failure};
use crate::spec::SourceSpec;

/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Maximum characters of a text of the endpoint in a message.
const MAX_SHOWN: usize = 200;

/// A token endpoint, and the client that asks it. `Debug` shows no secret.
#[derive(Debug)]
pub(super) struct TokenEndpoint {
    http: HttpTransport,
    target: Target,
    shown_url: String,
    client: ClientCredentials,
    /// The sent forms of the secret. The endpoint may repeat them.
    sent_secrets: Redactor,
    account: Account,
    /// Whether the endpoint accepts the secret in the body only.
    wants_body: AtomicBool,
}

/// The place of the client's secret in a request (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecretPlace {
    /// `client_secret_basic`
    Header,
    /// `client_secret_post`
    Body,
}

/// An answer of the endpoint.
struct Answer {
    status: StatusCode,
    body: Bytes,
}

/// The error of a token endpoint (RFC 6749, section 5.2).
#[derive(Default, Deserialize)]
struct GrantError {
    error: Option<String>,
    error_description: Option<String>,
}

impl TokenEndpoint {
    pub(super) async fn new(
        client: &ClientCredentials,
        http: &HttpSpec,
        spec: &SourceSpec,
    ) -> Result<Self, SourceFailure> {
        let shown_url = spec.redactor.redact(&client.token_url.to_string());
        let (http, target) = connections(&client.token_url, http, &spec.redactor).await?;
        let mut endpoint = Self {
            http,
            target,
            shown_url: shown_line(&shown_url, 300),
            client: client.clone(),
            sent_secrets: Redactor::default(),
            account: spec.memory.whole_account(),
            wants_body: AtomicBool::new(false),
        };
        let encoded = Secret::new(form_encoded(client.client_secret.expose()));
        let basic = Secret::new(endpoint.basic_credentials());
        endpoint.sent_secrets = Redactor::new([encoded, basic]);
        Ok(endpoint)
    }

    /// Asks for a token.
    pub(super) async fn ask(&self, masks: &Redactor) -> Result<Grant, SourceFailure> {
        let masks = masks.merge(&self.sent_secrets);
        match timeout(FETCH_TIMEOUT, self.granted(&masks)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let seconds = FETCH_TIMEOUT.as_secs();
                let reason = format!("did not answer within {seconds} s");
                Err(self.failure(SourceCause::Unreachable, &reason))
            }
        }
    }

    /// Asks with the secret in the header, and in the body if the endpoint does not read the header.
    async fn granted(&self, masks: &Redactor) -> Result<Grant, SourceFailure> {
        if self.wants_body.load(Ordering::Relaxed) {
            let answer = self.send(SecretPlace::Body, masks).await?;
            let granted = self.read(answer, masks);
            self.wants_body.store(granted.is_ok(), Ordering::Relaxed);
            return granted;
        }
        let answer = self.send(SecretPlace::Header, masks).await?;
        if answer.status != StatusCode::UNAUTHORIZED
            || answer.error().error.as_deref() != Some("invalid_client")
        {
            return self.read(answer, masks);
        }
        let answer = self.send(SecretPlace::Body, masks).await?;
        let granted = self.read(answer, masks)?;
        self.wants_body.store(true, Ordering::Relaxed);
        Ok(granted)
    }

    async fn send(&self, place: SecretPlace, masks: &Redactor) -> Result<Answer, SourceFailure> {
        let broken = |error| transport_failure(error, &self.shown_url, masks);
        let body = self.form(place).into();
        let headers = self.headers(place);
        let sent = self.http.send(Method::POST, &self.target, headers, body);
        let answer = sent.await.map_err(broken)?;
        let status = answer.status();
        let body = match body::read(answer, MAX_ANSWER_BYTES, &self.account).await {
            Ok(body) => body,
            // The status alone says that the token was refused.
            Err(_) if !status.is_success() => Bytes::new(),
            Err(BodyError::Broken(error)) => return Err(broken(error)),
            Err(BodyError::TooLarge) => {
                let reason = format!("answered with more than {MAX_ANSWER_BYTES} bytes");
                return Err(self.failure(SourceCause::NeedsAuth, &reason));
            }
            Err(BodyError::OutOfMemory) => {
                let reason =
                    "answered, but the memory budget of the broker has no room for the answer";
                return Err(self.failure(SourceCause::Unreachable, reason));
            }
        };
        Ok(Answer { status, body })
    }

    fn headers(&self, place: SecretPlace) -> HeaderMap {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(JSON));
        headers.insert(CONTENT_TYPE, form);
        if place == SecretPlace::Header
            && let Ok(mut basic) =
                HeaderValue::from_str(&format!("Basic {}", self.basic_credentials()))
        {
            basic.set_sensitive(true);
            headers.insert(AUTHORIZATION, basic);
        }
        headers
    }

    /// Returns the credentials of the scheme `Basic` (RFC 7617).
    fn basic_credentials(&self) -> String {
        let client = &self.client;
        let [id, secret] = [&client.client_id, client.client_secret.expose()].map(form_encoded);
        BASE64.encode(format!("{id}:{secret}").as_bytes())
    }

    fn form(&self, place: SecretPlace) -> String {
        let client = &self.client;
        let mut form = vec![("grant_type", "client_credentials")];
        form.extend(client.scope.as_deref().map(|scope| ("scope", scope)));
        let resource = client.resource.as_deref();
        form.extend(resource.map(|resource| ("resource", resource)));
        let secret = client.client_secret.expose();
        if place == SecretPlace::Body {
            form.push(("client_id", &client.client_id));
            form.push(("client_secret", secret));
        }
        let pairs: Vec<_> = form
            .iter()
            .map(|(name, value)| format!("{name}={}", form_encoded(value)))
            .collect();
        pairs.join("&")
    }

    fn read(&self, answer: Answer, masks: &Redactor) -> Result<Grant, SourceFailure> {
        let status = answer.status.as_u16();
        if answer.status.is_success() {
            return Grant::read(&answer.body, TokenType::Required).map_err(|reason| {
                let reason = format!("sent an answer that {reason}");
                self.failure(SourceCause::NeedsAuth, &reason)
            });
        }
        if answer.status.is_redirection() {
            let reason = format!(
                "redirects with HTTP status {status}, and secrets are not sent elsewhere; if the new URL is right, put it into `token_url`"
            );
            return Err(self.failure(SourceCause::Unreachable, &reason));
        }
        let is_refusal = answer.status.is_client_error()
            // These pass without a change of the credentials.
            && !matches!(
                answer.status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
            );
        let cause = match is_refusal {
            true => SourceCause::NeedsAuth,
            false => SourceCause::Unreachable,
        };
        let said = answer.error();
        let said = [said.error, said.error_description];
        let said: Vec<_> = said
            .iter()
            .flatten()
            .map(|text| format!(": {}", shown_line(&masks.redact(text), MAX_SHOWN)))
            .collect();
        let reason = format!("answered with HTTP status {status}{}", said.concat());
        Err(self.failure(cause, &reason))
    }

    fn failure(&self, cause: SourceCause, reason: &str) -> SourceFailure {
        let message = format!("the token endpoint `{}` {reason}", self.shown_url);
        SourceFailure::new(cause, message)
    }
}

impl Answer {
    fn error(&self) -> GrantError {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Returns `text` in the encoding of HTML forms, as RFC 6749 (appendix B) requires.
fn form_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
