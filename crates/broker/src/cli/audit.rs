//! The subcommands of `audit`.

use std::path::PathBuf;

use super::format::Format;

/// A subcommand of `audit`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditVerb {
    /// Find changed, missing, reordered and cut lines of an audit log
    ///
    /// Reads the files in any order, with the rotated ones. A change is found up to the last signed checkpoint (`--pub`) or
    /// the given head (`--head`); the report says what cannot be excluded, and lists the calls that were left open. Exits
    /// with 0 if nothing was changed, 1 if something was, 2 if an argument or a file cannot be used.
    Verify(VerifyArgs),

    /// Print the lines of an audit log, and follow it
    ///
    /// Exits with 0, or with 2 if the file cannot be read.
    Tail(TailArgs),

    /// Make the key that signs the checkpoints of an audit log
    ///
    /// Writes the private key to FILE, which must not exist, and the public key to FILE.pub, for `audit verify --pub`.
    /// Exits with 0, or with 2 if a file cannot be written.
    Key(KeyArgs),
}

pub(super) const AUDIT: &str = "\
Examples:
  mcp-broker audit key audit.key
  mcp-broker audit verify audit*.jsonl --pub audit.key.pub
  mcp-broker audit tail audit.jsonl --follow --outcome denied";

/// The arguments of `audit verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The files of the log, in any order.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The file with the public key of the checkpoints.
    #[arg(long = "pub", value_name = "KEY")]
    pub(crate) public_key: Option<PathBuf>,

    /// A head that was kept outside of the files, `SEQ:HASH`.
    #[arg(long, value_name = "SEQ:HASH")]
    pub(crate) head: Option<String>,

    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
}

/// The arguments of `audit tail`.
#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    /// The file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print new lines until the command is interrupted, also of a file that takes the place of this one.
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Only lines about items of this source.
    #[arg(long, value_name = "PATH")]
    pub(crate) source: Option<String>,

    /// Only lines about this path and the paths below it.
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,

    /// Only lines of the caller with this subject.
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) identity: Option<String>,

    /// Only lines with this outcome, such as `denied`.
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<String>,
}

/// The arguments of `audit key`.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// The file for the private key.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
