//! The options of the subcommands that ask a running broker.

use std::path::PathBuf;

use super::DEFAULT_ADDRESS;
use super::format::Format;

/// The broker that is asked, by its address as an option.
#[derive(Debug, clap::Args)]
pub(crate) struct AskedBroker {
    /// Where the broker listens: `host:port`, a port of 127.0.0.1, or a URL.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_ADDRESS)]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) how: AskOptions,
}

/// How a broker is asked, and how its answer is printed.
#[derive(Debug, clap::Args)]
pub(crate) struct AskOptions {
    /// A file that holds the secret or the key; or set MCP_BROKER_SECRET. Needed where the broker asks
    /// callers for one.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// A file with certificates (PEM) to trust besides those of the system, for a URL with `https`.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
}
