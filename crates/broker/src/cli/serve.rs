//! The command line of `broker-gen serve`, which runs a lock that was not compiled in.

use std::path::PathBuf;

use super::{Cli, DEFAULT_ADDRESS, RunOptions};

/// The command line of `broker-gen serve`, except for its config.
#[derive(Debug, clap::Args)]
pub struct ServeOptions {
    /// Where to listen: a loopback `host:port`, or a port of 127.0.0.1; port 0 takes a free one. Or `stdio`:
    /// be an MCP server on standard input and output, for the client that starts it.
    #[arg(value_name = "ADDR", default_value = DEFAULT_ADDRESS)]
    address: String,

    #[command(flatten)]
    options: RunOptions,
}

impl ServeOptions {
    /// The same command line for a compiled broker: neither a secret in it, nor `--allow-unauthenticated`.
    pub(crate) fn into_cli(self, config: PathBuf) -> Cli {
        Cli {
            verb: None,
            address: Some(self.address),
            config: Some(config),
            secret: None,
            options: self.options,
            allow_unauthenticated: false,
            version: false,
        }
    }
}
