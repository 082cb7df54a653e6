//! The subcommands: words in the place of ADDR that do something other than serve.

use std::path::PathBuf;

use super::asked_broker::AskedBroker;
use super::audit::{AUDIT, AuditVerb};
use super::format::Format;
use super::jobs::{JOBS, JobsVerb};
use super::shared::SharedVerb;

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

    #[command(flatten)]
    Shared(SharedVerb),

    /// Print the last lines that a server of a running broker wrote to standard error
    ///
    /// The broker keeps the last lines of each process, and shows them to operators. Exits with 0 if it
    /// answers, with 1 if not, or if the path is not in it.
    #[command(after_help = LOGS)]
    Logs(LogsArgs),

    /// List, show, wait for and cancel the jobs of a running broker
    #[command(subcommand, after_help = JOBS)]
    Jobs(JobsVerb),

    /// Verify, print and explain audit logs
    #[command(subcommand, after_help = AUDIT)]
    Audit(AuditVerb),
}

const DOCTOR: &str = "\
Examples:
  mcp-broker doctor
  mcp-broker doctor config.json
  mcp-broker doctor --format json | jq '.sources[] | select(.ok | not)'";

const LOGS: &str = "\
Examples:
  mcp-broker logs /repo
  mcp-broker logs /repo --url 127.0.0.1:8200 --secret-file secret.txt
  mcp-broker logs /repo --format json | jq -r '.processes[].lines[]'";

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

/// The arguments of `logs`.
#[derive(Debug, clap::Args)]
pub(crate) struct LogsArgs {
    /// The path of a source, or of a tool of it.
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    #[command(flatten)]
    pub(crate) asked: AskedBroker,
}
