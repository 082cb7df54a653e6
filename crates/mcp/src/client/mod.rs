//! A client for one MCP server over HTTP, for Rust programs. It is the client of the broker's own sources: both eras,
//! streams that are resumed, bounded answers.

mod error;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use broker_config::Limits;
use broker_memory::MemoryBudget;
use broker_model::LeftOutCode;
use broker_model::NodePath;
use broker_model::extension::Extensions;
use broker_model::left_out::LeftOut;
use broker_model::redact::{Redactor, Secret};
use broker_model::trust::Exposure;
use broker_model::url::HttpUrl;
use http::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::concurrency::ConcurrencyLimits;
use crate::http::{HttpShared, HttpSpec, MCP_PATH, visible_value};
use crate::link_factory::LinkFactory;
use crate::log_level::AskedLogLevel;
use crate::server_call::ServerCall;
use crate::session::{Session, stopped};
use crate::spec::{Endpoint, ItemLists, SourceSpec, Timing};

pub use error::{ClientError, ClientErrorKind};

/// The header of the session id (revisions up to 2025-11-25).
pub const SESSION_HEADER: &str = "Mcp-Session-Id";

/// Maximum time of a request without its own timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of calls that are under way, and of calls that wait.
const MAX_IN_FLIGHT: usize = 32;
const MAX_QUEUED_CALLS: usize = 256;

/// A client for one MCP server over HTTP. Its methods may be called from several tasks. Needs a Tokio runtime.
///
/// ```no_run
/// # async fn example() -> Result<(), broker_mcp::ClientError> {
/// use broker_mcp::HttpClient;
///
/// let client = HttpClient::new("http://127.0.0.1:8100", None)?;
/// let capabilities = client.initialize().await?;
/// println!("{capabilities}");
/// for tool in client.list_tools().await? {
///     println!("{}", tool["name"]);
/// }
/// let result = client
///     .call_tool("meta_tree", &serde_json::json!({"path": "/"}))
///     .await?;
/// println!("{}", result["content"][0]["text"]);
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
pub struct HttpClient {
    spec: SourceSpec,
    requires_session: bool,
    timeout: Duration,
    state: RwLock<State>,
    /// Held while a session is opened, so that callers that wait share it.
    opening: Mutex<()>,
}

enum State {
    New,
    Open(Arc<Session>),
    Closed,
}

impl HttpClient {
    /// Makes a client for the server at `endpoint`, an `http` or `https` URL; one without a path gets [`MCP_PATH`].
    /// `auth_token` is sent as `Authorization: Bearer`. Does not send a request yet.
    ///
    /// # Errors
    ///
    /// [`ClientErrorKind::Endpoint`] if the URL is not valid or has user information, if the token is not visible
    /// ASCII, or if the token would be sent over `http` to another machine.
    pub fn new(endpoint: &str, auth_token: Option<&str>) -> Result<Self, ClientError> {
        let mut url = HttpUrl::parse(endpoint)?;
        if url.path() == "/" {
            url = url.with_path(MCP_PATH);
        }
        let mut headers = HeaderMap::new();
        if let Some(token) = auth_token {
            if !url.origin().is_tls() && !url.origin().is_loopback() {
                let message =
                    "the token would be sent over `http`, without encryption, to another machine";
                return Err(ClientError::new(ClientErrorKind::Endpoint, message));
            }
            let mut value = visible_value(&format!("Bearer {token}")).ok_or_else(|| {
                let message = "the token has characters other than visible ASCII";
                ClientError::new(ClientErrorKind::Endpoint, message)
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let http = HttpSpec {
            url,
            headers,
            auth: None,
            shared: HttpShared::default(),
            ca_file: None,
            identity: None,
        };
        Ok(Self {
            spec: spec_of(http, auth_token),
            requires_session: false,
            timeout: DEFAULT_TIMEOUT,
            state: RwLock::new(State::New),
            opening: Mutex::new(()),
        })
    }

    /// Makes [`initialize`](Self::initialize) fail with [`ClientErrorKind::NoSession`] if the server opens no
    /// session. Servers of revision 2026-07-28 never do.
    #[must_use]
    pub fn require_session(mut self, required: bool) -> Self {
        self.requires_session = required;
        self
    }

    /// Sets the maximum time of each request; 60 seconds if it is not set.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self.spec.startup_timeout = timeout;
        self
    }

    /// Negotiates an era with the server and returns its capabilities. After [`close`](Self::close) it opens the client
    /// again.
    ///
    /// # Errors
    ///
    /// [`ClientErrorKind::AlreadyInitialized`] while the client is initialized; the kinds for HTTP, session and
    /// handshake.
    pub async fn initialize(&self) -> Result<Value, ClientError> {
        let _turn = self.opening.lock().await;
        {
            let mut state = self.state_mut();
            if let State::Open(_) = &*state {
                let message = "the client is initialized already";
                return Err(ClientError::new(
                    ClientErrorKind::AlreadyInitialized,
                    message,
                ));
            }
            // A close from now on ends this opening, an earlier one does not.
            *state = State::New;
        }
        let session = self.open().await?;
        Ok(session.capabilities().clone())
    }

    /// Returns the id of the session; `None` before [`initialize`](Self::initialize), after [`close`](Self::close), and
    /// for a server without sessions.
    pub fn session_id(&self) -> Option<String> {
        match &*self.state() {
            State::Open(session) => session.session_id(),
            State::New | State::Closed => None,
        }
    }

    /// Lists all tools of the server, every page, as the server sent them: at most 10 000 tools and 32 MiB.
    ///
    /// # Errors
    ///
    /// The kinds for HTTP, session and protocol; [`ClientErrorKind::Timeout`].
    pub async fn list_tools(&self) -> Result<Vec<Map<String, Value>>, ClientError> {
        let session = self.session().await?;
        match self.listed(&session).await {
            Err(error) if error.is_refused_with_session() => {
                let session = self.reopened(&session).await?;
                self.listed(&session).await
            }
            listed => listed,
        }
    }

    /// Calls a tool with `arguments`, a JSON object, and returns its result.
    ///
    /// # Errors
    ///
    /// [`ClientErrorKind::Arguments`] if `arguments` is not an object; [`ClientErrorKind::Tool`] for a result with
    /// `isError`, [`ClientErrorKind::Rpc`] for a JSON-RPC error; the kinds for HTTP, session and protocol;
    /// [`ClientErrorKind::Timeout`]. [`ClientError::maybe_executed`] says whether the call may have been executed.
    pub async fn call_tool(&self, tool: &str, arguments: &Value) -> Result<Value, ClientError> {
        if !arguments.is_object() {
            let message = "the arguments of a call must be a JSON object";
            return Err(ClientError::new(ClientErrorKind::Arguments, message));
        }
        let arguments = arguments.to_string();
        let unsent = |error: ClientError| error.maybe_executed_is(false);
        let session = self.session().await.map_err(unsent)?;
        let result = match self.called(&session, tool, &arguments).await {
            // The server refused the call with the session, so it was not executed.
            Err(error) if error.is_refused_with_session() => {
                let session = self.reopened(&session).await.map_err(unsent)?;
                self.called(&session, tool, &arguments).await?
            }
            result => result?,
        };
        if result["isError"] == true {
            let message = format!("the tool `{tool}` failed");
            let error = ClientError::new(ClientErrorKind::Tool { result }, message);
            return Err(error.maybe_executed_is(true));
        }
        Ok(result)
    }

    /// Ends the session at the server and closes the client. Further calls have no effect;
    /// [`initialize`](Self::initialize) opens the client again.
    ///
    /// # Errors
    ///
    /// Returns `Ok` today, even if the server does not end its session.
    pub async fn close(&self) -> Result<(), ClientError> {
        let before = std::mem::replace(&mut *self.state_mut(), State::Closed);
        if let State::Open(session) = before {
            session.shut_down(stopped()).await;
        }
        Ok(())
    }

    /// Opens a session and keeps it, unless the client was closed meanwhile.
    async fn open(&self) -> Result<Arc<Session>, ClientError> {
        let session = Arc::new(Session::open(&self.spec, None).await?);
        let refusal = if self.requires_session && session.session_id().is_none() {
            let message = "the server opened no session, and the client requires one";
            ClientError::new(ClientErrorKind::NoSession, message)
        } else {
            let mut state = self.state_mut();
            if !matches!(*state, State::Closed) {
                *state = State::Open(session.clone());
                return Ok(session);
            }
            closed()
        };
        session.shut_down(stopped()).await;
        Err(refusal)
    }

    /// Returns the session, or a new one in place of one that has ended.
    async fn session(&self) -> Result<Arc<Session>, ClientError> {
        let session = self.last_session()?;
        match session.is_over() {
            true => self.reopened(&session).await,
            false => Ok(session),
        }
    }

    fn last_session(&self) -> Result<Arc<Session>, ClientError> {
        match &*self.state() {
            State::Open(session) => Ok(session.clone()),
            State::Closed => Err(closed()),
            State::New => {
                let message = "the client is not initialized: call `initialize` first";
                Err(ClientError::new(ClientErrorKind::NotInitialized, message))
            }
        }
    }

    /// Returns a new session in place of `ended`.
    async fn reopened(&self, ended: &Arc<Session>) -> Result<Arc<Session>, ClientError> {
        let _turn = self.opening.lock().await;
        let session = self.last_session()?;
        if Arc::ptr_eq(&session, ended) {
            return self.open().await;
        }
        Ok(session)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        // Whole values are written, so a panic elsewhere leaves a usable state.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listed(&self, session: &Session) -> Result<Vec<Map<String, Value>>, ClientError> {
        let snapshot = session.snapshot().await?;
        let is_cut = |part: &&LeftOut| part.code == LeftOutCode::ListCut;
        if let Some(part) = snapshot.left_out.iter().find(is_cut) {
            // A part of a list would look like the whole list.
            let reason = part.reason.clone();
            return Err(ClientError::new(ClientErrorKind::Protocol, reason));
        }
        let read = move || snapshot.tools.iter().map(|tool| tool.read()).collect();
        let read = self.spec.concurrency.parse_aside(read).await;
        read.map_err(|error| {
            let message = format!("the tool list could not be read: {error}");
            ClientError::new(ClientErrorKind::Protocol, message)
        })
    }

    async fn called(
        &self,
        session: &Session,
        tool: &str,
        arguments: &str,
    ) -> Result<Value, ClientError> {
        let call = ServerCall::new(tool, arguments.as_bytes());
        let raw = session.call(call, self.timeout).await?;
        serde_json::from_slice(&raw.result).map_err(|error| {
            let message = format!("the result is not JSON: {error}");
            ClientError::new(ClientErrorKind::Protocol, message).maybe_executed_is(true)
        })
    }
}

fn spec_of(http: HttpSpec, token: Option<&str>) -> SourceSpec {
    let limits = Limits::default();
    SourceSpec {
        extensions: Extensions::default(),
        stderr_to_callers: None,
        source: NodePath::root(),
        endpoint: Endpoint::Http(Box::new(http)),
        startup_timeout: DEFAULT_TIMEOUT,
        relist_interval: None,
        line_bytes: limits.line_bytes,
        listing_bytes: limits.listing_bytes,
        lists: ItemLists::default(),
        exposure: Exposure::expose_all(),
        max_in_flight: MAX_IN_FLIGHT,
        instances: 1,
        queue: MAX_QUEUED_CALLS,
        redactor: Redactor::new(token.map(Secret::new)),
        withheld: Vec::new(),
        start_hints: Arc::default(),
        empty_variables: Vec::new(),
        memory: MemoryBudget::new(limits.memory_bytes),
        concurrency: ConcurrencyLimits::new(),
        log_level: AskedLogLevel::new(),
        links: LinkFactory::default(),
        timing: Timing::for_http(),
    }
}

fn closed() -> ClientError {
    let message = "the client is closed: `initialize` opens it again";
    ClientError::new(ClientErrorKind::Closed, message)
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("endpoint", &self.spec.endpoint)
            .finish_non_exhaustive()
    }
}
