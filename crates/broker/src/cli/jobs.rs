//! The command line of `mcp-broker jobs`.

use std::path::PathBuf;

use super::asked_broker::AskedBroker;

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

    /// Print the events of a job as they come, until it has ended
    ///
    /// Goes on after a cut of the connection, behind the last event that was printed. Its exit codes are those of
    /// `wait`. With `--format json` each line is an object with `seq`, `kind` and `data`.
    Events {
        #[command(flatten)]
        one: OneJob,
        /// The number of the last event that is known already.
        #[arg(long, value_name = "N", default_value = "0")]
        after: u64,
    },

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

/// Examples of the command line.
pub(super) const JOBS: &str = "\
Examples:
  mcp-broker jobs list --status running
  mcp-broker jobs wait j_ih7biy73zwzlwqrsg52zn2gnjq && echo done
  mcp-broker jobs events j_ih7biy73zwzlwqrsg52zn2gnjq --after 17
  mcp-broker jobs cancel j_ih7biy73zwzlwqrsg52zn2gnjq --url 127.0.0.1:8200";
