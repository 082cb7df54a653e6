//! The command line of `mcp-broker jobs`.

use std::path::PathBuf;

use super::DEFAULT_ADDRESS;
use super::format::Format;

/// A subcommand of `jobs`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JobsVerb {
    /// List the newest jobs of the caller; an operator gets the jobs of every caller
    List {
        /// Only jobs in this state: queued, running, input_required, succeeded, failed, canceled, lost.
        #[arg(long, value_name = "STATE")]
        status: Option<String>,
        #[command(flatten)]
        asked: AskedBroker,
    },

    /// Show a job
    Show(OneJob),

    /// Wait for the end of a job, and show it
    ///
    /// Exits with 0 if the job succeeded, 9 if it failed, 14 if it is lost, 15 if it was cancelled, 1 if the
    /// broker does not answer. Progress of the server is on standard error.
    Wait(OneJob),

    /// Cancel a job
    Cancel(OneJob),

    /// Check the whole file of a store that no broker uses
    ///
    /// Exits with 0 if the store has no fault, 1 if it has, 2 if the file cannot be opened.
    Check {
        /// The file: `jobs.store` of the config.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// A job of a running broker.
#[derive(Debug, clap::Args)]
pub(crate) struct OneJob {
    /// The id of the job.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) asked: AskedBroker,
}

/// The broker that is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct AskedBroker {
    /// Where the broker listens: `host:port`, a port of 127.0.0.1, or a URL.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_ADDRESS)]
    pub(crate) url: String,

    /// A file that holds the secret or the key; or set MCP_BROKER_SECRET.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// A file with certificates (PEM) to trust besides those of the system, for a URL with `https`.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
}

/// Examples of the command line.
pub(super) const JOBS: &str = "\
Examples:
  mcp-broker jobs list --status running
  mcp-broker jobs wait j_ih7biy73zwzlwqrsg52zn2gnjq && echo done
  mcp-broker jobs cancel j_ih7biy73zwzlwqrsg52zn2gnjq --url 127.0.0.1:8200";
