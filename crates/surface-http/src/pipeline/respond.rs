//! Turns core's answers and errors into HTTP: the only place that maps codes to statuses.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use broker_model::CallCode;
use broker_wire::RpcError;
use bytes::Bytes;
use serde::Serialize;

use super::protected_resource::ProtectedResource;
use broker_core::{CoreError, ErrorMembers, Identity, RequestId, Subject};
use broker_surface_mcp::http::{ReplyBody, StreamReply, error_reply};

/// The page that has a place for each code.
const ERRORS_PAGE: &str = "docs/errors.md";
/// The default of `Retry-After`, in seconds.
const RETRY_AFTER_SECONDS: u64 = 1;

const CATALOG_DIGEST: HeaderName = HeaderName::from_static("x-catalog-digest");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const PRIVATE: HeaderValue = HeaderValue::from_static("private");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// `WWW-Authenticate` of a request whose token is not valid, without a resource.
const INVALID_TOKEN: HeaderValue = HeaderValue::from_static("Bearer error=\"invalid_token\"");
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A refused request: the error of core or of the surface, and data for HTTP headers.
#[derive(Debug)]
pub(crate) struct Refusal {
    error: Box<CoreError>,
    allow: Option<&'static str>,
    challenge: Challenge,
}

/// What `WWW-Authenticate` says about the credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Challenge {
    /// That one is needed.
    #[default]
    Needed,
    /// The one that was sent is not valid.
    InvalidToken,
    /// It is a token whose scope gives too few rights.
    LacksScope,
}

/// A successful reply.
#[derive(Debug)]
pub(crate) struct HttpReply {
    /// 200, unless the broker is not ready.
    pub(crate) status: StatusCode,
    pub(crate) body: ReplyContent,
    /// The media type of the body.
    pub(crate) media: HeaderValue,
    /// As sent, quotes included.
    pub(crate) etag: Option<String>,
}

/// The body of a reply.
#[derive(Debug)]
pub(crate) enum ReplyContent {
    /// All of it.
    Whole(Bytes),
    /// Pieces over time.
    Stream(Body),
}

impl<T: Into<Bytes>> From<T> for ReplyContent {
    fn from(bytes: T) -> Self {
        Self::Whole(bytes.into())
    }
}

impl Refusal {
    /// A refusal of the surface itself, with the code's hint.
    pub(crate) fn new(code: CallCode, message: impl Into<String>) -> Self {
        Self {
            error: Box::new(CoreError::new(code, message)),
            allow: None,
            challenge: Challenge::default(),
        }
    }

    /// Adds suggestions.
    pub(crate) fn did_you_mean(mut self, names: Vec<String>) -> Self {
        self.error.did_you_mean = names;
        self
    }

    /// Marks it as retryable.
    pub(crate) fn retryable(mut self) -> Self {
        self.error.retryable = true;
        self
    }

    /// Adds the challenge for this caller.
    pub(crate) fn for_caller(mut self, identity: &Identity) -> Self {
        let has_token = matches!(identity.subject(), Subject::Token { .. });
        // A refusal of arguments has details of them; another token would not change it.
        let is_of_entry = self.error.details.is_none();
        let code = self.code();
        if has_token && code == CallCode::Unauthorized {
            self.challenge = Challenge::InvalidToken;
        } else if has_token && code == CallCode::Forbidden && is_of_entry {
            self.challenge = Challenge::LacksScope;
        }
        self
    }

    /// Adds the challenge for a request whose header `Authorization` has a token or key.
    pub(crate) fn for_bearer(mut self) -> Self {
        if self.code() == CallCode::Unauthorized {
            self.challenge = Challenge::InvalidToken;
        }
        self
    }

    /// Adds an `Allow` header.
    pub(crate) fn allow(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    /// The error.
    pub(crate) fn error(&self) -> &CoreError {
        &self.error
    }

    /// The code.
    pub(crate) fn code(&self) -> CallCode {
        self.error.code
    }
}

impl From<Box<CoreError>> for Refusal {
    fn from(error: Box<CoreError>) -> Self {
        Self {
            error,
            allow: None,
            challenge: Challenge::default(),
        }
    }
}

/// The HTTP status of a code.
pub(crate) fn status_of(code: CallCode) -> StatusCode {
    use CallCode as C;
    match code {
        C::JsonInvalid
        | C::PathInvalid
        | C::PathIsTool
        | C::PathIsNode
        | C::FieldUnknown
        | C::FieldInvalid
        | C::HeaderInvalid => StatusCode::BAD_REQUEST,
        C::Unauthorized => StatusCode::UNAUTHORIZED,
        C::Forbidden | C::HostForbidden | C::OriginForbidden => StatusCode::FORBIDDEN,
        C::PathNotFound | C::RouteNotFound | C::JobNotFound => StatusCode::NOT_FOUND,
        C::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        C::ToolWithdrawn
        | C::LockStale
        | C::IdempotencyMismatch
        | C::JobNotFinished
        | C::JobFinished => StatusCode::CONFLICT,
        C::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        C::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        C::ArgsInvalid | C::NotDurable => StatusCode::UNPROCESSABLE_ENTITY,
        C::Overloaded => StatusCode::TOO_MANY_REQUESTS,
        C::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        C::SourceError
        | C::SourceExited
        | C::SourceProtocol
        | C::UpstreamHttp
        | C::OutputTooLarge
        | C::JobLost => StatusCode::BAD_GATEWAY,
        C::AuditUnavailable
        | C::StoreUnavailable
        | C::IdentityUnavailable
        | C::SourceUnavailable
        | C::Starting
        | C::StartRefused
        | C::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        C::CallTimeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Whether the connection is closed after a reply with this code.
fn ends_connection(code: CallCode) -> bool {
    [CallCode::BodyTooLarge, CallCode::ShuttingDown].contains(&code)
}

/// Whether replies with this code carry `Retry-After`.
fn has_retry_after(code: CallCode) -> bool {
    matches!(
        status_of(code),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// `{"error":…}`
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorMembers<'a>,
}

/// The reply to one request. Every reply, including errors, names the catalog and the request.
pub(crate) fn respond(
    outcome: Result<HttpReply, Refusal>,
    common: &CommonHeaders<'_>,
    request_id: RequestId,
    close: bool,
) -> Response<Body> {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CONTENT_TYPE, JSON);
    let mut is_stream = false;
    let (status, body, close) = match outcome {
        Ok(answer) => {
            headers.insert(header::CONTENT_TYPE, answer.media);
            if let Some(etag) = answer
                .etag
                .and_then(|etag| HeaderValue::try_from(etag).ok())
            {
                headers.insert(header::ETAG, etag);
            }
            let body = match answer.body {
                ReplyContent::Whole(bytes) => Body::from(bytes),
                ReplyContent::Stream(body) => {
                    is_stream = true;
                    body
                }
            };
            (answer.status, body, close)
        }
        Err(refusal) => {
            let code = refusal.code();
            add_error_headers(&mut headers, &refusal, common.resource);
            let body = Body::from(render(&refusal.error, request_id));
            (status_of(code), body, close || ends_connection(code))
        }
    };
    common.add_to(&mut headers, request_id, close);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if is_stream {
        // Its connection is that of a stream until the stream has ended.
        response.extensions_mut().insert(StreamReply::Open);
    }
    response
}

/// The reply to a refused request of an MCP client.
pub(crate) fn refused_message(
    refusal: &Refusal,
    error: RpcError,
    resource: Option<&ProtectedResource>,
) -> Response<ReplyBody> {
    let code = refusal.code();
    let mut response = error_reply(status_of(code), error);
    add_error_headers(response.headers_mut(), refusal, resource);
    if ends_connection(code) {
        response.headers_mut().insert(header::CONNECTION, CLOSE);
    }
    response
}

/// The headers that every reply has.
pub(crate) struct CommonHeaders<'a> {
    /// The digest of the catalog.
    pub(crate) digest: HeaderValue,
    /// The headers that identify callers, if replies depend on the caller.
    pub(crate) vary: Option<&'a HeaderValue>,
    /// The resource that tokens are issued for.
    pub(crate) resource: Option<&'a ProtectedResource>,
}

impl CommonHeaders<'_> {
    /// Adds the headers of every reply.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap, request_id: RequestId, close: bool) {
        headers.insert(CATALOG_DIGEST, self.digest.clone());
        if let Some(vary) = self.vary {
            headers.append(header::VARY, vary.clone());
            headers.entry(header::CACHE_CONTROL).or_insert(PRIVATE);
        }
        if close {
            headers.insert(header::CONNECTION, CLOSE);
        }
        if let Ok(id) = HeaderValue::from_str(request_id.as_str()) {
            headers.insert(REQUEST_ID, id);
        }
    }
}

/// Adds the headers of an error. `resource` is the resource that tokens are issued for.
fn add_error_headers(
    headers: &mut HeaderMap,
    refusal: &Refusal,
    resource: Option<&ProtectedResource>,
) {
    if let Some(methods) = refusal.allow {
        headers.insert(header::ALLOW, HeaderValue::from_static(methods));
    }
    let is_unauthorized = refusal.code() == CallCode::Unauthorized;
    let challenge = match (is_unauthorized, refusal.challenge, resource) {
        (true, Challenge::InvalidToken, None) => Some(INVALID_TOKEN),
        (true, _, None) => Some(HeaderValue::from_static("Bearer")),
        (true, Challenge::InvalidToken, Some(resource)) => {
            Some(resource.challenge_of_token().clone())
        }
        (true, _, Some(resource)) => Some(resource.challenge().clone()),
        (false, Challenge::LacksScope, Some(resource)) => resource.challenge_of_scope().cloned(),
        (false, _, _) => None,
    };
    if let Some(challenge) = challenge {
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    if has_retry_after(refusal.code()) {
        // Whole seconds, rounded up, so that a retry is not too early.
        let seconds = refusal
            .error
            .retry_after
            .map_or(RETRY_AFTER_SECONDS, |wait| {
                (wait.as_millis().div_ceil(1000) as u64).max(RETRY_AFTER_SECONDS)
            });
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

fn render(error: &CoreError, request_id: RequestId) -> Bytes {
    let body = ErrorBody {
        error: error
            .members(Some(request_id.as_str()))
            .help(ERRORS_PAGE, error.code),
    };
    serde_json::to_vec(&body)
        .expect("strings and JSON values always serialize")
        .into()
}

#[cfg(test)]
#[path = "respond_tests.rs"]
mod tests;
