//! The options that a compiled broker and `broker-gen serve` share.

use std::path::PathBuf;

use broker_config::{McpMode, Routing};
use broker_model::model_vendor::ModelVendor;
use tracing::Level;

use crate::logging;

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

    /// Print the tree and exit; start no source.
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "human")]
    pub(crate) dump_tree: Option<TreeForm>,

    /// A name that the `Host` header may have, with or without a port; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,

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
