//! The arguments of `connect`.

use std::path::PathBuf;

use broker_model::redact::Secret;

use super::client::Client;
use super::places::Scope;
use crate::cli::ModeOption;

/// The arguments of `connect`.
#[derive(Debug, clap::Args)]
pub struct ConnectArgs {
    /// The client.
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Client,

    /// The config with which the client starts the broker. Default: the compiled-in one; of `broker-gen`: the file
    /// that MCP_BROKER_CONFIG names, else `config.json`, else `smoke_config.json`.
    #[arg(value_name = "CONFIG", conflicts_with = "http")]
    pub(crate) config: Option<PathBuf>,

    /// Let the client call a running broker at its MCP endpoint, for example http://127.0.0.1:8100/mcp.
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,

    /// The name of the entry: letters, digits, `_` and `-`.
    #[arg(long, value_name = "NAME", default_value = "broker")]
    pub(crate) name: String,

    /// Give the client only the tools below this path of the tree.
    #[arg(long, value_name = "PATH")]
    pub(crate) under: Option<String>,

    /// Give the client the meta-tools, each tool directly, or a tool that searches; default: what the broker does by default.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeOption>,

    /// The file of all projects of this user, or the one of the project in the working folder; default: `user`.
    #[arg(long, value_name = "SCOPE", conflicts_with = "file")]
    pub(crate) scope: Option<Scope>,

    /// Another file than the client's default.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Insert the entry into the file, after a backup to `FILE.bak`.
    #[arg(long)]
    pub(crate) write: bool,

    /// With `--write`: take the other servers out of the file, which the broker serves now; `--undo` puts them back.
    #[arg(long, requires = "write")]
    pub(crate) replace: bool,

    /// The servers that `--replace` takes out; `None`: all others.
    #[arg(skip)]
    pub(crate) moved: Option<Vec<String>>,

    /// The variables that the client sets for the broker.
    #[arg(skip)]
    pub(crate) variables: Vec<(String, Secret)>,

    /// Take the last write to the file back: every byte is as before. Refuses if the file was changed since.
    #[arg(
        long,
        conflicts_with_all = ["write", "replace", "http", "config", "under", "mode", "name"]
    )]
    pub(crate) undo: bool,

    /// The broker has a secret: let the client present it, by a reference to a variable.
    #[arg(long, requires = "http")]
    pub(crate) secret: bool,

    /// The variable that holds the secret.
    #[arg(
        long,
        value_name = "NAME",
        requires = "secret",
        default_value = "MCP_BROKER_SECRET"
    )]
    pub(crate) secret_env: String,

    /// Write the secret itself, in clear, in place of a reference; it is read from the variable.
    #[arg(long, requires = "secret")]
    pub(crate) with_secret: bool,
}
