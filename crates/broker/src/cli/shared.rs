//! The subcommands that `broker-gen` has as well, from one definition.

use super::asked_broker::AskOptions;
use crate::connect::ConnectArgs;

/// A verb that a broker and `broker-gen` have.
#[derive(Debug, clap::Subcommand)]
pub enum SharedVerb {
    /// Show the state of the sources of a running broker
    ///
    /// Exits with 0 if the broker is ready and no source needs attention, else with 1; also if no
    /// broker answers at ADDR. Without the right to see the sources it exits with 0 if the broker is ready.
    #[command(after_help = STATUS)]
    Status(StatusArgs),

    /// Print the entry of this broker for an MCP client, or add it to the client's file
    ///
    /// Prints a complete document with the entry, for a client that starts the broker over stdio, or with
    /// `--http` for one that calls a running broker. With `--write` the entry is inserted into the client's
    /// file, and every other byte of it stays. Starts nothing. Exits with 0 if the entry was printed or
    /// the file has it, 2 if an argument or the file is not valid, 1 if the file cannot be written.
    #[command(after_help = CONNECT)]
    Connect(Box<ConnectArgs>),

    /// Make API keys for callers
    #[command(subcommand, after_help = KEY)]
    Key(KeyVerb),
}

/// A subcommand of `key`.
#[derive(Debug, clap::Subcommand)]
pub enum KeyVerb {
    /// Make a key, and print it with its entry of the config
    ///
    /// Prints the key in the first line and the entry for `identities.keys`, one JSON object, in the second one.
    /// The entry has the SHA-256 of the key; the key itself is stored nowhere. Exits with 0, or with 2 if an
    /// argument is not valid.
    #[command(after_help = KEY)]
    New(NewKeyArgs),
}

const STATUS: &str = "\
Examples:
  mcp-broker status 127.0.0.1:8100
  mcp-broker status https://tools.example.org/gateway --secret-file secret.txt --ca-file ca.pem
  mcp-broker status 127.0.0.1:8100 --format json";

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

/// The arguments of `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Where the broker listens: `host:port`, a port of 127.0.0.1, or a URL, such as
    /// `https://tools.example.org/gateway` for a broker behind TLS and a path.
    #[arg(value_name = "ADDR")]
    pub(crate) address: String,

    #[command(flatten)]
    pub(crate) how: AskOptions,
}

/// The arguments of `key new`.
#[derive(Debug, clap::Args)]
pub struct NewKeyArgs {
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
