//! The subcommands: words in the place of ADDR that do something other than serve.

use std::path::PathBuf;

use super::asked_broker::{AskOptions, AskedBroker};
use super::audit::{AUDIT, AuditVerb};
use super::format::Format;
use super::jobs::{JOBS, JobsVerb};
use crate::connect::ConnectArgs;

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

    /// Print the last lines that a server of a running broker wrote to standard error
    ///
    /// The broker keeps the last lines of each process, and shows them to operators. Exits with 0 if it
    /// answers, with 1 if not, or if the path is not in it.
    #[command(after_help = LOGS)]
    Logs(LogsArgs),

    /// List, show, wait for and cancel the jobs of a running broker
    #[command(subcommand, after_help = JOBS)]
    Jobs(JobsVerb),

    /// Print the entry of this broker for an MCP client, or add it to the client's file
    ///
    /// Prints a complete document with the entry, for a client that starts the broker over stdio, or with
    /// `--http` for one that calls a running broker. With `--write` the entry is inserted into the client's
    /// file, and every other byte of it stays. Starts nothing. Exits with 0 if the entry was printed or
    /// the file has it, 2 if an argument or the file is not valid, 1 if the file cannot be written.
    #[command(after_help = CONNECT)]
    Connect(Box<ConnectArgs>),

    /// Verify, print and explain audit logs
    #[command(subcommand, after_help = AUDIT)]
    Audit(AuditVerb),

    /// Make API keys for callers
    #[command(subcommand, after_help = KEY)]
    Key(KeyVerb),
}

/// A subcommand of `key`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum KeyVerb {
    /// Make a key, and print it with its entry of the config
    ///
    /// Prints the key in the first line and the entry for `identities.keys`, one JSON object, in the second one.
    /// The entry has the SHA-256 of the key; the key itself is stored nowhere. Exits with 0, or with 2 if an
    /// argument is not valid.
    #[command(after_help = KEY)]
    New(NewKeyArgs),
}

const DOCTOR: &str = "\
Examples:
  mcp-broker doctor
  mcp-broker doctor config.json
  mcp-broker doctor --format json | jq '.sources[] | select(.ok | not)'";

const STATUS: &str = "\
Examples:
  mcp-broker status 127.0.0.1:8100
  mcp-broker status https://tools.example.org/gateway --secret-file secret.txt --ca-file ca.pem
  mcp-broker status 127.0.0.1:8100 --format json";

const LOGS: &str = "\
Examples:
  mcp-broker logs /repo
  mcp-broker logs /repo --url 127.0.0.1:8200 --secret-file secret.txt
  mcp-broker logs /repo --format json | jq -r '.processes[].lines[]'";

const CONNECT: &str = "\
Examples:
  mcp-broker connect claude-code
  mcp-broker connect cursor config.json --scope project --write
  mcp-broker connect codex --http http://127.0.0.1:8100/mcp --secret --write
  mcp-broker connect json > mcp.json";

const KEY: &str = "\
Examples:
  mcp-broker key new ci
  mcp-broker key new ci --groups reader,deployer --not-after 2027-01-01T00:00:00Z
  mcp-broker key new ci --json | jq -r .key > ci.key";

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
    /// Where the broker listens: `host:port`, a port of 127.0.0.1, or a URL, such as
    /// `https://tools.example.org/gateway` for a broker behind TLS and a path.
    #[arg(value_name = "ADDR")]
    pub(crate) address: String,

    #[command(flatten)]
    pub(crate) how: AskOptions,
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

/// The arguments of `key new`.
#[derive(Debug, clap::Args)]
pub(crate) struct NewKeyArgs {
    /// The name of the key, which is the subject of its caller: letters, digits, `.`, `_` and `-`.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The groups of its caller, separated by commas; default: none.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,

    /// The time from which the key is refused, in UTC, such as 2027-01-31T12:00:00Z; default: never.
    #[arg(long, value_name = "TIME")]
    pub(crate) not_after: Option<String>,

    /// Print one JSON object with `key` and `entry`.
    #[arg(long)]
    pub(crate) json: bool,
}
