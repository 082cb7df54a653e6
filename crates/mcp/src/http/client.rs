//! Sends requests to one server: headers of the config, token and redirects. Explains refused credentials.

use std::num::NonZeroU16;
use std::time::Duration;

use broker_http_client::{HttpTransport, Response, Target, TransportError};
use broker_memory::Account;
use broker_model::SourceCause;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;
use url::Url;

use super::auth::{Challenge, TokenSource, is_refusal};
use super::body;
use super::headers::JSON;
use super::spec::HttpSpec;
use super::token_cache::Token;
use super::transport::{connections, transport_failure};
use crate::failure::SourceFailure;
use crate::masks::Masks;
use crate::opening::Opening;
use crate::right::CallRight;
use crate::spec::SourceSpec;

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 3;
/// Maximum bytes of the document that names the authorization servers, and the maximum time to get it.
const MAX_METADATA_BYTES: usize = 64 << 10;
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum characters of the name of an authorization server.
const MAX_ISSUER_CHARS: usize = 200;

/// Sends requests to one server.
#[derive(Debug)]
pub(super) struct Client {
    http: HttpTransport,
    target: Target,
    shown_url: String,
    headers: HeaderMap,
    token: Option<TokenSource>,
    masks: Masks,
    account: Account,
}

/// The reaction to a server's refusal of a request's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenRenewal {
    /// The token is replaced, and the request is sent again with the next one.
    Resend,
    /// The token is replaced for later requests.
    Replace,
    /// The token stays.
    Keep,
}

/// A request as it is sent to a target.
#[derive(Clone, Copy)]
struct Outgoing<'a> {
    method: &'a Method,
    headers: &'a HeaderMap,
    body: Option<&'a Bytes>,
    /// Whether it may still be sent, once there is a connection for it.
    may_send: &'a (dyn Fn() -> bool + Sync),
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) struct SendError {
    pub(super) failure: SourceFailure,
    /// Whether the server may have got the request.
    pub(super) begun: bool,
    /// The status of a redirect that is not followed.
    pub(super) redirect: Option<u16>,
}

impl SendError {
    fn unsent(failure: SourceFailure) -> Self {
        Self {
            failure,
            begun: false,
            redirect: None,
        }
    }
}

#[derive(Deserialize)]
struct ResourceMetadata<'a> {
    #[serde(borrow, default)]
    authorization_servers: Vec<&'a RawValue>,
}

impl Client {
    /// Makes a client for the server of `http`. Fails if the file with certificates cannot be used.
    pub(super) async fn new(
        http: &HttpSpec,
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let redactor = &spec.redactor;
        let auth = http.auth.as_ref();
        let token = match auth {
            Some(auth) => Some(TokenSource::new(auth, http, spec, opening).await?),
            None => None,
        };
        let (client, target) = connections(&http.url, http, redactor).await?;
        opening
            .counters
            .watch_certificate(client.certificate_expiry());
        Ok(Self {
            http: client,
            target,
            shown_url: shown_line(&redactor.redact(&http.url.to_string()), 300),
            headers: http.headers.clone(),
            token,
            masks: Masks::new(spec),
            account: spec.memory.whole_account(),
        })
    }

    /// Returns the URL of the server.
    pub(super) const fn url(&self) -> &Url {
        self.target.url()
    }

    /// Returns the account that is charged for answers.
    pub(super) const fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the URL without its query and without secrets, for messages.
    pub(super) fn shown_url(&self) -> &str {
        &self.shown_url
    }

    /// Masks the secrets of the config, the current token and the one before it.
    pub(super) fn redactor(&self) -> Redactor {
        self.masks.now()
    }

    /// Sends a request to the URL of the server.
    pub(super) async fn send(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Response, SendError> {
        let request = Outgoing {
            method,
            headers,
            body,
            may_send: &|| true,
        };
        let sent = self.send_to_target(&self.target, request, TokenRenewal::Resend);
        sent.await.map(|(answer, _)| answer)
    }

    /// Sends a message to the URL of the server, unless the `right` to it ends before it could be sent. Returns also
    /// whether the token of the source was replaced.
    pub(super) async fn send_message(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
        right: Option<&CallRight<'_>>,
        renewal: TokenRenewal,
    ) -> Result<(Response, bool), SendError> {
        let request = Outgoing {
            method: &Method::POST,
            headers,
            body: Some(body),
            may_send: &|| !right.is_some_and(CallRight::has_ended),
        };
        self.send_to_target(&self.target, request, renewal).await
    }

    /// Fetches a public document of the server, if it has at most `max_bytes`. Sends neither credentials nor other
    /// headers of the config.
    pub(super) async fn public_document(&self, url: Url, max_bytes: usize) -> Option<Bytes> {
        let target = self.http.target(url).ok()?;
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(JSON))]);
        let sent = (self.http).send(Method::GET, &target, headers, Bytes::new());
        let answer = sent.await.ok()?;
        if answer.status() != StatusCode::OK {
            return None;
        }
        body::read(answer, max_bytes, &self.account).await.ok()
    }

    /// Sends a request to another URL of the same origin.
    pub(super) async fn send_to(
        &self,
        url: Url,
        method: &Method,
        headers: &HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Response, SendError> {
        let target = self.target(url).map_err(SendError::unsent)?;
        let request = Outgoing {
            method,
            headers,
            body,
            may_send: &|| true,
        };
        let sent = self.send_to_target(&target, request, TokenRenewal::Resend);
        sent.await.map(|(answer, _)| answer)
    }

    /// Sends a request. A token that the server refuses is replaced at most once, if there is another one; returns
    /// also whether it was.
    async fn send_to_target(
        &self,
        target: &Target,
        request: Outgoing<'_>,
        renewal: TokenRenewal,
    ) -> Result<(Response, bool), SendError> {
        let Some(source) = &self.token else {
            let answer = self.follow(target, request, None).await?;
            return Ok((answer, false));
        };
        let token = source.token(None).await.map_err(SendError::unsent)?;
        let answer = self.follow(target, request, Some(&token)).await?;
        if !is_refusal(answer.status()) {
            return Ok((answer, false));
        }
        source.note_refusal(&token);
        if renewal == TokenRenewal::Keep || !is_token_refused(&answer) {
            return Ok((answer, false));
        }
        let other = source.token(Some(&token)).await;
        let other = other.map_err(SendError::unsent)?;
        match renewal {
            TokenRenewal::Resend if other != token => {
                let answer = self.follow(target, request, Some(&other)).await?;
                if is_refusal(answer.status()) {
                    source.note_refusal(&other);
                }
                Ok((answer, true))
            }
            TokenRenewal::Resend | TokenRenewal::Replace | TokenRenewal::Keep => {
                Ok((answer, other != token))
            }
        }
    }

    /// Sends a request, and again to where 307 and 308 lead within the origin.
    async fn follow(
        &self,
        target: &Target,
        request: Outgoing<'_>,
        token: Option<&Token>,
    ) -> Result<Response, SendError> {
        let Outgoing {
            method,
            headers,
            body,
            may_send,
        } = request;
        let (mut begun, mut last_status) = (false, None);
        let mut redirected = None;
        for _ in 0..=MAX_REDIRECTS {
            let target = redirected.as_ref().unwrap_or(target);
            let headers = self.headers_of(headers, token);
            let body = body.cloned().unwrap_or_default();
            let sent = self
                .http
                .send_if(method.clone(), target, headers, body, may_send);
            let answer = sent.await.map_err(|error| SendError {
                begun: begun || !error.is_connect(),
                failure: self.transport_failure(error),
                redirect: None,
            })?;
            begun = true;
            let status = answer.status();
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                return Ok(answer);
            }
            last_status = Some(status.as_u16());
            let next = self.redirect(target.url(), &answer);
            let next = next.and_then(|url| self.target(url));
            redirected = Some(next.map_err(|failure| SendError {
                failure,
                begun,
                redirect: last_status,
            })?);
        }
        let message = format!("the server redirected the request more than {MAX_REDIRECTS} times");
        Err(SendError {
            failure: SourceFailure::new(SourceCause::Unreachable, message),
            begun,
            redirect: last_status,
        })
    }

    /// Returns a URL of the origin as the target of a request.
    fn target(&self, url: Url) -> Result<Target, SourceFailure> {
        self.http.target(url).map_err(|error| {
            let message = format!("a URL of `{}` cannot be asked: {error}", self.shown_url);
            SourceFailure::new(SourceCause::Unreachable, message)
        })
    }

    /// Returns all headers of a request: config headers do not replace protocol headers.
    fn headers_of(&self, headers: &HeaderMap, token: Option<&Token>) -> HeaderMap {
        let mut all = headers.clone();
        for (name, value) in &self.headers {
            if !headers.contains_key(name) {
                all.append(name, value.clone());
            }
        }
        if let Some(token) = token {
            all.insert(AUTHORIZATION, token.header());
        }
        all
    }

    /// Returns the target of a redirect that is followed.
    fn redirect(&self, from: &Url, answer: &Response) -> Result<Url, SourceFailure> {
        let status = answer.status().as_u16();
        let location = answer
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok());
        let target = location.and_then(|location| from.join(location).ok());
        let shown = match &target {
            Some(target) => shown_line(
                &self
                    .redactor()
                    .redact(&target.origin().ascii_serialization()),
                200,
            ),
            None => "no valid URL".to_owned(),
        };
        let refused = |why: &str| {
            let message = format!(
                "the server redirects with {status} to `{shown}`; {why}. If the new URL is right, put it into the config"
            );
            SourceFailure::new(SourceCause::Unreachable, message)
        };
        if !matches!(status, 307 | 308) {
            return Err(refused("only 307 and 308 are followed"));
        }
        match target {
            Some(target)
                if target.origin() == self.url().origin()
                    && target.username().is_empty()
                    && target.password().is_none() =>
            {
                Ok(target)
            }
            _ => Err(refused("only redirects within one origin are followed")),
        }
    }

    /// Returns the failure of a request without an answer, without queries and secrets.
    pub(super) fn transport_failure(&self, error: TransportError) -> SourceFailure {
        transport_failure(error, &self.shown_url, &self.redactor())
    }

    /// Returns the failure of a link whose credentials the server refused. Asks the server for its issuer.
    pub(super) async fn refusal(&self, status: StatusCode, challenge: &Challenge) -> SourceFailure {
        let issuer = timeout(METADATA_TIMEOUT, self.issuer(challenge)).await;
        self.refusal_by(status, challenge, issuer.ok().flatten())
    }

    /// Returns the same failure without a request to the server.
    pub(super) fn refusal_by(
        &self,
        status: StatusCode,
        challenge: &Challenge,
        issuer: Option<String>,
    ) -> SourceFailure {
        let issuer = issuer.map(|issuer| format!("names the authorization server `{issuer}`"));
        let asks = challenge.shown(&self.redactor());
        let asks = asks.map(|shown| format!("asks for `{shown}`"));
        let said: Vec<_> = asks.into_iter().chain(issuer).collect();
        let status = status.as_u16();
        let message = format!("the server refused the credentials (HTTP status {status})");
        SourceFailure {
            said: (!said.is_empty()).then(|| format!("it {}", said.join(" and ")).into()),
            http_status: NonZeroU16::new(status),
            ..SourceFailure::new(SourceCause::NeedsAuth, message)
        }
    }

    /// Returns the authorization server that the server names, redacted and printable.
    async fn issuer(&self, challenge: &Challenge) -> Option<String> {
        let url = challenge.metadata_url(self.url())?;
        let document = self.public_document(url, MAX_METADATA_BYTES).await?;
        let metadata: ResourceMetadata<'_> = serde_json::from_slice(&document).ok()?;
        let first = metadata.authorization_servers.first()?;
        let issuer: String = serde_json::from_str(first.get()).ok()?;
        let shown = shown_line(&self.redactor().redact(&issuer), MAX_ISSUER_CHARS);
        (!shown.is_empty()).then_some(shown)
    }
}

/// Whether another token may be accepted. A token that lacks a scope is like the next one.
fn is_token_refused(answer: &Response) -> bool {
    is_refusal(answer.status()) && !Challenge::read(answer.headers()).is_insufficient_scope()
}
