//! The command line of `lock`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::ConfigArgs;

#[derive(Debug, Args)]
pub(in crate::cli) struct LockArgs {
    #[command(flatten)]
    pub(in crate::cli) config: ConfigArgs,
    /// Launch each source once instead of twice; unstable sources are then not detected.
    #[arg(long)]
    pub(in crate::cli) once: bool,
    /// Do not write: the same as `check`.
    #[arg(long)]
    pub(in crate::cli) check: bool,
    /// Do not write: show the changes.
    #[arg(long, conflicts_with = "check")]
    pub(in crate::cli) dry_run: bool,
    /// With one `--source`: update only this tool, and keep the rest of the source as it is locked;
    /// repeatable.
    #[arg(
        long = "tool",
        value_name = "NAME",
        requires = "sources",
        conflicts_with = "check"
    )]
    pub(in crate::cli) tools: Vec<String>,
    /// Treat warnings as errors: unpinned packages, warnings of the lint.
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    #[command(flatten)]
    pub(in crate::cli) merge: MergeArgs,
    /// Write nothing if a part would be left out.
    #[arg(long)]
    pub(in crate::cli) all_or_nothing: bool,
    /// Write the versions of packages that `npx` and `uvx` commands run into the config, after a copy to `CONFIG.bak`, and
    /// lock with them.
    #[arg(long, conflicts_with_all = ["check", "dry_run", "tools"])]
    pub(in crate::cli) pin: bool,
    /// With `--pin`: also write a config in the format of clients (`mcpServers`, `servers`).
    #[arg(long, requires = "pin")]
    pub(in crate::cli) write_client_file: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct MergeArgs {
    /// Merge two locks or two audits files, and launch nothing: sources that one side changed are taken from it, a
    /// source that both changed is a conflict by name. Without files: the sides of the unmerged lock and audits in
    /// git's index. The config must be settled. With `--source`, these sources are launched and the others merged.
    #[arg(
        long,
        num_args = 0..=3,
        value_names = ["OURS", "THEIRS", "BASE"],
        conflicts_with_all = ["check", "dry_run", "tools", "pin"]
    )]
    pub(in crate::cli) merge: Option<Vec<PathBuf>>,
    /// With `--merge`: take this source as ours has it; repeatable.
    #[arg(long, value_name = "PATH", requires = "merge")]
    pub(in crate::cli) ours: Vec<String>,
    /// With `--merge`: take this source as theirs has it; repeatable.
    #[arg(long, value_name = "PATH", requires = "merge")]
    pub(in crate::cli) theirs: Vec<String>,
    /// Merge as a driver of git: `%O %A %B %P`. The second file gets the result; a conflict leaves markers in it, and
    /// the exit code is not 0.
    #[arg(
        long,
        num_args = 3..=4,
        // The path of a file may begin with a hyphen.
        allow_hyphen_values = true,
        value_names = ["BASE", "OURS", "THEIRS", "PATH"],
        conflicts_with_all = ["merge", "check", "dry_run", "tools", "pin", "sources"]
    )]
    pub(in crate::cli) merge_driver: Option<Vec<PathBuf>>,
}
