//! The options that a compiled broker and `broker-gen serve` share.

use std::path::PathBuf;
use std::time::Duration;

use broker_config::{McpMode, Routing};
use broker_model::model_vendor::ModelVendor;
use tracing::Level;

use crate::logging;

/// The maximum of `--drain` and `drain_timeout`.
const MAX_DRAIN_SECONDS: f64 = 3600.0;

/// The options of a run and of its log.
#[derive(Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// Apply changes of the config while running, as SIGHUP does at any time: timeouts, limits, render modes,
    /// `env`, a tighter filter. A change that needs a new lock or a new build is refused as a whole.
    #[arg(long)]
    pub(crate) reload: bool,

    /// Start even if tools differ from the lock, which are withdrawn, or if sources fail, whose tools
    /// stay listed.
    #[arg(long)]
    pub(crate) ignore_broken_tool: bool,

    /// The least severe level that is logged.
    #[arg(long, value_name = "LEVEL", default_value = "info", ignore_case = true)]
    pub(crate) log_level: LogLevel,

    /// The format of the log.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) log_format: logging::Format,

    /// The seconds that calls in progress get after SIGTERM or Ctrl-C. Default: `drain_timeout` of the config, else the
    /// longest `timeout`, at least 30 and at most 600; over stdio 0.9.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) drain: Option<f64>,

    /// Print the tree and exit; start no source.
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "human")]
    pub(crate) dump_tree: Option<TreeForm>,

    /// A name that the `Host` header may have, with or without a port; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,

    /// A path before the routes that a proxy passes on, such as `/gateway`: `/gateway/mcp` is `/mcp` as well. The path of
    /// `public_url` needs no option.
    #[arg(long, value_name = "PATH", value_parser = base_path)]
    pub(crate) base_path: Option<String>,

    /// The tools in the list of an MCP client: the three meta-tools, every tool by a flat name, or a tool that
    /// searches. Default: MCP_BROKER_MCP_MODE, else `mcp.mode` of the config, else `meta`.
    #[arg(long, value_name = "MODE")]
    pub(crate) mcp_mode: Option<ModeOption>,

    /// In the mode `search`: found tools are called by `call_tool`, or become tools of the session. Default:
    /// MCP_BROKER_ROUTING_TYPE, else `mcp.routing` of the config, else `CALL_TOOL`.
    #[arg(long, value_name = "ROUTING")]
    pub(crate) routing: Option<RoutingOption>,

    /// In the mode `search`: the number of hits, unless a caller sets `limit`. Default: MCP_BROKER_TOP_K, else
    /// `search.top_k` of the config, else 5.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=50))]
    pub(crate) top_k: Option<u8>,

    /// Serve no MCP clients over HTTP: there is no `/mcp`. Or set MCP_BROKER_ENABLE_MCP=0.
    #[arg(long)]
    pub(crate) no_mcp: bool,

    /// Only with `stdio`: the client sees only this path of the tree and what is below it.
    #[arg(long, value_name = "PATH")]
    pub(crate) under: Option<String>,

    /// Only with `stdio`: the vendor of the client's model, whose limits the list of tools has, such as 128 tools and
    /// 64 characters of a name.
    #[arg(long, value_name = "VENDOR")]
    pub(crate) client: Option<VendorOption>,

    /// A file that holds the secret that callers must present; or set MCP_BROKER_SECRET.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

impl RunOptions {
    /// The time of calls in progress at the end.
    pub(crate) fn drain_timeout(&self) -> Option<Duration> {
        self.drain.map(Duration::from_secs_f64)
    }
}

/// Returns a number of seconds for calls at the end.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    seconds
        .filter(|seconds| (0.0..=MAX_DRAIN_SECONDS).contains(seconds))
        .ok_or_else(|| format!("it must be a number from 0 to {MAX_DRAIN_SECONDS}"))
}

/// Returns a path before the routes, without a slash at its end.
fn base_path(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let is_segment = |segment: &str| {
        !matches!(segment, "" | "." | "..")
            && segment
                .bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#'))
    };
    let mut segments = path.split('/').skip(1);
    match text.starts_with('/') && segments.all(is_segment) {
        true => Ok(path.to_owned()),
        false => Err("it must be an absolute path such as `/gateway`".to_owned()),
    }
}

/// The tools in the list of an MCP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModeOption {
    /// The three meta-tools.
    Meta,
    /// Every tool by a flat name.
    Direct,
    /// A tool that searches.
    Search,
}

/// How clients of the mode `search` call what they found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RoutingOption {
    /// By the tool `call_tool`.
    #[value(name = "CALL_TOOL")]
    CallTool,
    /// By name, as tools of the session.
    #[value(name = "DYNAMIC")]
    Dynamic,
}

/// The vendor of the client's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum VendorOption {
    /// OpenAI.
    #[value(name = "openai")]
    OpenAi,
    /// Google Gemini.
    Gemini,
    /// Anthropic.
    Anthropic,
}

impl From<VendorOption> for ModelVendor {
    fn from(vendor: VendorOption) -> Self {
        match vendor {
            VendorOption::OpenAi => Self::OpenAi,
            VendorOption::Gemini => Self::Gemini,
            VendorOption::Anthropic => Self::Anthropic,
        }
    }
}

impl From<RoutingOption> for Routing {
    fn from(routing: RoutingOption) -> Self {
        match routing {
            RoutingOption::CallTool => Self::CallTool,
            RoutingOption::Dynamic => Self::Dynamic,
        }
    }
}

impl ModeOption {
    /// The name of the mode.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Direct => "direct",
            Self::Search => "search",
        }
    }
}

impl From<ModeOption> for McpMode {
    fn from(mode: ModeOption) -> Self {
        match mode {
            ModeOption::Meta => Self::Meta,
            ModeOption::Direct => Self::Direct,
            ModeOption::Search => Self::Search,
        }
    }
}

/// The form of the printed tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TreeForm {
    /// One line for each entry.
    Human,
    /// One JSON object.
    Json,
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogLevel {
    /// Failures of the broker.
    Error,
    /// Problems that an operator should look at.
    #[value(alias = "warning")]
    Warn,
    /// Normal operation.
    Info,
    /// Details of the operation.
    Debug,
    /// Everything.
    Trace,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}
