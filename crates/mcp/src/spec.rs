//! The specification of one source, with all variables expanded.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use broker_memory::MemoryBudget;
use broker_model::NodePath;
use broker_model::extension::Extensions;
use broker_model::redact::Redactor;
use broker_model::trust::{Exposure, ResourceMode};
use broker_process::ProcessSpec;
use broker_wire::protocol::{PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED};

use crate::concurrency::ConcurrencyLimits;
use crate::failure::SourceFailure;
use crate::http::spec::{AuthSpec, HttpSpec};
use crate::link_factory::LinkFactory;
use crate::log_level::AskedLogLevel;
use crate::start_hints::StartHints;

/// The specification of one source. `Debug` shows no value.
#[derive(Clone)]
pub struct SourceSpec {
    /// The source, as the path of its node.
    pub source: NodePath,
    /// The transport and address of the server.
    pub endpoint: Endpoint,
    /// The maximum time of a start, until it has listed its tools.
    pub startup_timeout: Duration,
    /// The interval of listings without an announcement; `None` for never.
    pub relist_interval: Option<Duration>,
    /// The maximum length of a line that it sends.
    pub line_bytes: usize,
    /// The maximum length of all pages of its lists.
    pub listing_bytes: usize,
    /// The lists that are read besides the tool list.
    pub lists: ItemLists,
    /// The extensions that are declared to its server.
    pub extensions: Extensions,
    /// Selects the exposed tools among the listed ones; the others need not meet any requirement.
    pub exposure: Exposure,
    /// The maximum number of calls in flight in one process.
    pub max_in_flight: usize,
    /// Processes that share its calls.
    pub instances: usize,
    /// The maximum number of queued calls.
    pub queue: usize,
    /// A redactor that knows this source's secrets.
    pub redactor: Redactor,
    /// A redactor of lines of stderr for callers, if they get these lines: it also knows every value of `env`, of any
    /// length.
    pub stderr_to_callers: Option<Redactor>,
    /// Names of variables that the child does not inherit and that may explain a failed start.
    pub withheld: Vec<String>,
    /// Facts that explain how it starts and ends.
    pub start_hints: Arc<StartHints>,
    /// Names of variables of its config that are set and empty. They may explain a failed start.
    pub empty_variables: Vec<String>,
    /// The memory budget for the lines of its process.
    pub memory: MemoryBudget,
    /// Limits that it shares with the other sources of its broker.
    pub concurrency: ConcurrencyLimits,
    /// The level of log messages that callers of its broker ask for.
    pub log_level: AskedLogLevel,
    /// Decides whether a task serves it instead of its process.
    pub links: LinkFactory,
    /// Times that have no key in the config.
    pub timing: Timing,
}

/// The lists of a server that are read besides its tool list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemLists {
    /// `prompts/list`
    pub prompts: bool,
    /// `resources/templates/list`
    pub templates: bool,
    /// `resources/list`, and whether the resources are compared with the lock.
    pub resources: ResourceMode,
}

impl ItemLists {
    /// Whether the list of resources is read.
    pub(crate) fn has_resources(self) -> bool {
        self.resources != ResourceMode::None
    }

    /// Whether a list is read whose changes the server announces as changes of resources.
    pub(crate) fn has_uris(self) -> bool {
        self.templates || self.has_resources()
    }

    /// Whether a notification announces a change of a list that is read.
    pub(crate) fn are_changed_by(self, method: &str) -> bool {
        match method {
            TOOLS_CHANGED => true,
            PROMPTS_CHANGED => self.prompts,
            RESOURCES_CHANGED => self.has_uris(),
            _ => false,
        }
    }
}

/// The transport and address of a server.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A child process, over its standard streams.
    Process(ProcessSpec),
    /// A URL, over HTTP.
    Http(Box<HttpSpec>),
    /// The reason why the source cannot be started. Every start fails with it.
    Unavailable(Box<SourceFailure>),
}

impl Endpoint {
    /// Returns the process of the server, if it is one.
    pub const fn process(&self) -> Option<&ProcessSpec> {
        match self {
            Self::Process(process) => Some(process),
            Self::Http(_) | Self::Unavailable(_) => None,
        }
    }

    /// Returns the URL of the server without its query, if it has one.
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Process(_) | Self::Unavailable(_) => None,
            Self::Http(http) => Some(http.url.to_string()),
        }
    }

    /// Returns the process of the server, or the one that prints its token.
    pub(crate) fn any_process_mut(&mut self) -> Option<&mut ProcessSpec> {
        match self {
            Self::Process(process) => Some(process),
            Self::Http(http) => match &mut http.auth {
                Some(AuthSpec::TokenCommand(process)) => Some(process),
                _ => None,
            },
            Self::Unavailable(_) => None,
        }
    }

    fn starts_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Process(one), Self::Process(other)) => one.starts_the_same(other),
            (Self::Http(one), Self::Http(other)) => one.reaches_the_same(other),
            (Self::Unavailable(one), Self::Unavailable(other)) => {
                (one.cause, &one.message) == (other.cause, &other.message)
            }
            _ => false,
        }
    }
}

impl SourceSpec {
    /// Whether a server that was started by `other` equals one that this would start, so that it can
    /// keep running. The startup timeout and the interval of listings are ignored: they do not affect a
    /// running server.
    pub fn starts_the_same(&self, other: &Self) -> bool {
        self.endpoint.starts_the_same(&other.endpoint)
            && self.line_bytes == other.line_bytes
            && self.listing_bytes == other.listing_bytes
            && self.max_in_flight == other.max_in_flight
            && self.instances == other.instances
            && self.queue == other.queue
            && self.extensions == other.extensions
            && self.stderr_to_callers.is_some() == other.stderr_to_callers.is_some()
    }
}

/// Times of starting and stopping that have no key in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The wait for an answer in the first era before the other is tried too.
    pub probe: Duration,
    /// The pause before the second try of a start that failed in the known era, if the server does not ask for a pause.
    pub second_try: Duration,
    /// Maximum time for a process to end after its stdin was closed.
    pub close_grace: Duration,
    /// Maximum time for it to end after SIGTERM, before SIGKILL.
    pub term_grace: Duration,
    /// The time between two listings that `tools/list_changed` asked for, after the first ten.
    pub listing_interval: Duration,
    /// The time between two such listings after ten minutes in which the server announced changes all the time; as long
    /// without an announcement ends this. Also the pause before a list that cannot be read is requested again.
    pub storm_interval: Duration,
    /// The pause before a failed listing is tried a second time.
    pub second_list: Duration,
    /// Maximum time for a running server to answer a listing. If an announced listing is missing after
    /// that, new calls are refused.
    pub recheck_timeout: Duration,
    /// The first delay before a restart; it doubles up to `backoff_cap`.
    pub backoff: Duration,
    /// The maximum delay before a restart.
    pub backoff_cap: Duration,
    /// The minimum time between two attempts to start a source that calls cause.
    pub wake_interval: Duration,
    /// The time until a server that has another protocol revision than it was locked with is asked for the locked one again; it
    /// doubles up to `revision_probe_cap`.
    pub revision_probe: Duration,
    /// The maximum time between two such questions.
    pub revision_probe_cap: Duration,
}

impl Timing {
    /// Returns the times of a server over HTTP: other clients use it too, so a server that is down is tried less often.
    pub fn for_http() -> Self {
        Self {
            backoff_cap: Duration::from_secs(300),
            wake_interval: Duration::from_secs(60),
            ..Self::default()
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(10),
            second_try: Duration::from_millis(500),
            close_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(2),
            listing_interval: Duration::from_secs(6),
            storm_interval: Duration::from_secs(60),
            second_list: Duration::from_secs(1),
            recheck_timeout: Duration::from_secs(10),
            backoff: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(60),
            wake_interval: Duration::from_secs(5),
            revision_probe: Duration::from_secs(60),
            revision_probe_cap: Duration::from_secs(3600),
        }
    }
}

impl fmt::Debug for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSpec")
            .field("source", &self.source)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
