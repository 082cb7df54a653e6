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

    /// Say who called what by a line, what the caller could see then, and who had reviewed the tool
    ///
    /// Joins the line of number SEQ with the lock, the audits file and the access rules that were in force. The lock is the
    /// compiled-in one if the line names its catalog, else that of `--lock`, else the one in git that has the root digest of
    /// the log (`--repo`, `--revision`). What is missing is named. Starts no server. Exits with 0, with 1 if the log was
    /// changed, or with 2 if an argument or a file cannot be used.
    Explain(Box<ExplainArgs>),

    /// Say which recorded calls a new lock or new access rules would refuse, hide or narrow
    ///
    /// Exits with 0 if none, with 1 if there is such a call or the log was changed, or with 2 if an argument or a file
    /// cannot be used.
    Replay(ReplayArgs),

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
  mcp-broker audit tail audit.jsonl --follow --outcome denied
  mcp-broker audit explain 12 --file audit.jsonl
  mcp-broker audit replay audit.jsonl --config new.json";

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

/// The arguments of `audit explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The number of the line, its `seq`.
    #[arg(value_name = "SEQ")]
    pub(crate) seq: u64,

    /// The files of the log, in any order; default: the file that the compiled-in config names.
    #[arg(long = "file", value_name = "FILE", num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,

    /// The lock that was in force.
    #[arg(long, value_name = "LOCK")]
    pub(crate) lock: Option<PathBuf>,

    /// The config that was in force, for the access rules.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The audits file; default: the one beside the config or the lock.
    #[arg(long, value_name = "AUDITS")]
    pub(crate) audits: Option<PathBuf>,

    /// A folder of a git repository in whose history the lock is searched.
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// The revision whose history is searched; default: HEAD.
    #[arg(long, value_name = "REV")]
    pub(crate) revision: Option<String>,

    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
}

/// The arguments of `audit replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The files of the log, in any order.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The new config.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: PathBuf,

    /// The new lock; default: the one beside the config.
    #[arg(long, value_name = "LOCK")]
    pub(crate) lock: Option<PathBuf>,

    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
}

/// The arguments of `audit key`.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// The file for the private key.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
