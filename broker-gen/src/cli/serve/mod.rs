//! `serve`: runs the lock of a config without compiling it. The library of the compiled broker does all of
//! it; only the catalog comes from here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use broker_model::text::shell_word;
use broker_model::{Diagnostic, DiagnosticCode};
use clap::Args;
use mcp_broker::catalog::Catalog;

use crate::build_script;

#[cfg(test)]
mod item_tests;
mod memory;
#[cfg(test)]
mod search_tests;

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    broker: mcp_broker::ServeOptions,
    #[command(flatten)]
    file: super::ConfigFile,
}

/// Serves until a stop, in a second process that this one guards.
pub(super) fn run(args: ServeArgs) -> ExitCode {
    let config: PathBuf = args.file.config;
    mcp_broker::serve(args.broker, config.clone(), || read(&config))
}

/// The catalog of a config and its lock, which are refused for the same reasons as by a build.
fn read(config: &Path) -> Result<&'static Catalog, Vec<Diagnostic>> {
    let tables = build_script::read_tables(config, &config.to_string_lossy());
    let tables = tables.map_err(|problems| {
        let name_command = |problem| with_command(problem, config);
        problems.into_iter().map(name_command).collect::<Vec<_>>()
    })?;
    Ok(memory::catalog(tables))
}

/// The remedy for a lock that does not match names the config.
fn with_command(problem: Diagnostic, config: &Path) -> Diagnostic {
    use DiagnosticCode::{LockCorrupt, LockMissing, LockOrphan, LockStale};
    let by_lock = [LockCorrupt, LockMissing, LockOrphan, LockStale].contains(&problem.code);
    if !by_lock || problem.help.is_some() {
        return problem;
    }
    let config = shell_word(&config.to_string_lossy());
    problem.help(format!("Run `broker-gen lock --config {config}`."))
}
