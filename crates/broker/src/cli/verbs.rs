//! The subcommands: words in the place of ADDR that do something other than serve.

use std::path::PathBuf;

/// A subcommand.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Start every source once and report what is wrong with it, and what fixes it
    ///
    /// Starts the sources concurrently, lists their tools, compares them with the lock, and stops them
    /// again. Calls no tool. Exits with 0 if nothing needs attention, 1 if something does, 2 if the
    /// config is not valid.
    #[command(after_help = DOCTOR)]
    Doctor(DoctorArgs),

    /// Show the state of the sources of a running broker
    ///
    /// Exits with 0 if the broker is ready and no source needs attention, else with 1; also if no
    /// broker answers at ADDR.
    #[command(after_help = STATUS)]
    Status(StatusArgs),
}

const DOCTOR: &str = "\
Examples:
  mcp-broker doctor
  mcp-broker doctor config.json
  mcp-broker doctor --format json | jq '.sources[] | select(.ok | not)'";

const STATUS: &str = "\
Examples:
  mcp-broker status 127.0.0.1:8100
  mcp-broker status http://tools.example.org:8100 --secret-file secret.txt
  mcp-broker status 127.0.0.1:8100 --format json";

/// The arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// The config; default: the compiled-in one.
    #[arg(value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
}

/// The arguments of `status`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Where the broker listens: `host:port`, a port of 127.0.0.1, or `http://host:port`.
    #[arg(value_name = "ADDR")]
    pub(crate) address: String,

    /// A file that holds the secret; or set MCP_BROKER_SECRET. Needed only where other machines can
    /// reach the broker.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
}

/// The output format of a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people, in 80 columns.
    Human,
    /// One JSON object.
    Json,
}
