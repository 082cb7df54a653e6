//! Servers over HTTP as the client sees them: the public client, and sessions and supervised sources under faults
//! of a scripted server.

mod answers;
mod cancel;
mod client;
mod events;
mod lost_sessions;
mod odd_listing;
mod old_transport;
mod recovery;
mod redirects;
mod sessions;
mod streams;
mod throttle;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use broker_mcp::{
    AskedLogLevel, CallFailure, ConcurrencyLimits, DriftCheck, Endpoint, HttpClient, HttpShared,
    HttpSpec, Instance, ServerCall, Session, SourceSpec, State, Status, Timing, Verdict,
};
use broker_memory::MemoryBudget;
use broker_model::redact::Redactor;
use broker_model::url::HttpUrl;
use broker_model::{NodePath, Snapshot};
use harness::{Chaos, ChaosServer, http_script, on_echo};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

/// The longest that anything in a test may take.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of the scripted server's files.
const NAME: &str = "s";

/// A scripted server over HTTP and its journal.
pub(crate) struct HttpFixture {
    pub(crate) chaos: Chaos,
    pub(crate) server: ChaosServer,
}

impl HttpFixture {
    /// A server with this script.
    pub(crate) fn new(script: &Value) -> Self {
        let chaos = Chaos::new();
        chaos.script(NAME, script);
        let server = ChaosServer::start(&chaos, NAME);
        Self { chaos, server }
    }

    /// A server of this era with these members of `http`.
    pub(crate) fn of_era(era: &str, http: &Value) -> Self {
        Self::new(&http_script(era, http))
    }

    /// A server of this era whose calls of `echo` have this fault.
    pub(crate) fn with_fault(era: &str, fault: &Value) -> Self {
        Self::of_era(era, &json!({"rules": [on_echo(fault)]}))
    }

    /// Replaces the script.
    pub(crate) fn script(&self, script: &Value) {
        self.chaos.script(NAME, script);
    }

    /// A client of the server.
    pub(crate) fn client(&self) -> HttpClient {
        HttpClient::new(&self.server.url, None).expect("the URL is valid")
    }

    /// A source that is the server.
    pub(crate) fn spec(&self) -> SourceSpec {
        spec_of(&self.server.url)
    }

    /// A session with the server.
    pub(crate) async fn session(&self) -> Session {
        let opened = Session::open(&self.spec(), None).await;
        opened.expect("a session is opened")
    }

    /// A supervised source that is the server, once it is ready.
    pub(crate) async fn instance(&self) -> Instance {
        let instance = start(self.spec());
        until(&instance, |status| status.state == State::Ready).await;
        instance
    }

    /// The requests with these members.
    pub(crate) fn requests(&self, members: &Value) -> Vec<Value> {
        self.chaos.requests(NAME, members)
    }

    /// The number of executed calls of `echo` with this text.
    pub(crate) fn executions(&self, text: &str) -> usize {
        self.chaos.executions(NAME, text)
    }

    /// The number of journal entries of one kind.
    pub(crate) fn events(&self, event: &str) -> usize {
        self.chaos.events(NAME, event).len()
    }
}

/// A source at this URL.
pub(crate) fn spec_of(url: &str) -> SourceSpec {
    let http = HttpSpec {
        url: HttpUrl::parse(url).expect("the URL is valid"),
        headers: Default::default(),
        auth: None,
        shared: HttpShared::default(),
        ca_file: None,
        identity: None,
    };
    SourceSpec {
        source: NodePath::parse("/s").expect("it is a path"),
        endpoint: Endpoint::Http(Box::new(http)),
        startup_timeout: WAIT_TIMEOUT,
        relist_interval: None,
        line_bytes: 1 << 20,
        listing_bytes: 4 << 20,
        lists: Default::default(),
        exposure: broker_model::trust::Exposure::expose_all(),
        max_in_flight: 32,
        extensions: Default::default(),
        stderr_to_callers: None,
        instances: 1,
        queue: 256,
        redactor: Redactor::default(),
        withheld: Vec::new(),
        start_hints: Default::default(),
        empty_variables: Vec::new(),
        memory: MemoryBudget::new(512 << 20),
        concurrency: ConcurrencyLimits::new(),
        log_level: AskedLogLevel::new(),
        links: broker_mcp::LinkFactory::default(),
        timing: Timing {
            close_grace: Duration::from_secs(1),
            second_list: Duration::from_millis(20),
            ..Timing::for_http()
        },
    }
}

/// Serves every listing.
struct AnyTools;

impl DriftCheck for AnyTools {
    fn check(&self, _: &Snapshot) -> Verdict {
        Verdict::Serve
    }
}

/// Supervises a source.
pub(crate) fn start(spec: SourceSpec) -> Instance {
    Instance::start(spec, None, Arc::new(AnyTools), &TaskTracker::new())
}

/// Waits for a status.
pub(crate) async fn until(source: &Instance, condition: impl FnMut(&Status) -> bool) -> Status {
    let mut status = source.status();
    let waiting = tokio::time::timeout(WAIT_TIMEOUT, status.wait_for(condition)).await;
    waiting
        .expect("in time")
        .expect("the source exists")
        .clone()
}

/// Waits for a condition.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_TIMEOUT, waiting).await;
    assert!(waited.is_ok(), "{what}");
}

/// Calls `echo` with a text over a session; the result as text.
pub(crate) async fn echo(session: &Session, text: &str) -> Result<String, CallFailure> {
    echo_within(session, text, WAIT_TIMEOUT).await
}

/// Calls `echo` within a time.
pub(crate) async fn echo_within(
    session: &Session,
    text: &str,
    time: Duration,
) -> Result<String, CallFailure> {
    let args = json!({ "text": text }).to_string();
    let call = session.call(ServerCall::new("echo", args.as_bytes()), time);
    let result = call.await?;
    Ok(String::from_utf8_lossy(&result.result).into_owned())
}

/// Calls `echo` with a text over the current session of a source.
pub(crate) async fn echo_by(source: &Instance, text: &str) -> Result<String, CallFailure> {
    let args = json!({ "text": text }).to_string();
    let call = source.call(ServerCall::new("echo", args.as_bytes()), WAIT_TIMEOUT);
    let result = call.await?;
    Ok(String::from_utf8_lossy(&result.result).into_owned())
}

/// The results of futures that run at the same time.
pub(crate) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut is_ready = true;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(output) => *result = Some(output),
                    std::task::Poll::Pending => is_ready = false,
                }
            }
        }
        match is_ready {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    results.into_iter().flatten().collect()
}
