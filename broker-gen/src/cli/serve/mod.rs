//! `serve`: runs the lock of a config without compiling it. The library of the compiled broker does all of
//! it; only the catalog comes from here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use broker_audits_file::audits_file;
use broker_build::build_script::{self, PartialTables};
use broker_build::lock_file;
use broker_build::vectors_file::vectors_file;
use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, Severity};
use clap::Args;
use mcp_broker::{ServedCatalog, StaleSource, StaleSources};

#[cfg(test)]
mod item_tests;
pub(super) mod memory;
#[cfg(test)]
mod search_tests;

/// The maximum number of characters of the reason why a source is not served.
const MAX_MESSAGE_CHARS: usize = 900;

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
    mcp_broker::serve(args.broker, config.clone(), move |allowed| {
        read(&config, allowed)
    })
}

/// Returns the catalog of a config and its lock. They are refused for the same reasons as by a build, except that a
/// client over stdio is served from a lock that is stale for some sources.
fn read(config: &Path, allowed: StaleSources) -> Result<ServedCatalog, Vec<Diagnostic>> {
    let shown = config.to_string_lossy();
    let allows_stale = match allowed {
        StaleSources::Refused => false,
        StaleSources::LeftOut => true,
    };
    let tables = build_script::read_tables(config, &shown, allows_stale);
    let PartialTables {
        tables,
        stale,
        problems,
    } = tables.map_err(|problems| {
        let name_command = |problem| with_command(problem, config);
        problems.into_iter().map(name_command).collect::<Vec<_>>()
    })?;
    // The rest is served.
    let warning = |problem: Diagnostic| Diagnostic {
        severity: Severity::Warning,
        ..problem
    };
    let mut warnings: Vec<_> = problems.into_iter().map(warning).collect();
    let stale = stale.into_iter().map(|stale| {
        let problem = with_command(stale.problem, config);
        let message = format!("{}; {}", problem.message, in_sentence(problem.remedy()));
        warnings.push(warning(problem));
        StaleSource {
            path: stale.path.to_string(),
            message: shown_line(&message, MAX_MESSAGE_CHARS),
        }
    });
    Ok(ServedCatalog {
        stale: stale.collect(),
        catalog: memory::catalog(tables).map_err(|full| vec![*full])?,
        warnings,
        files: vec![
            config.to_owned(),
            lock_file(config),
            audits_file(config),
            vectors_file(config),
        ],
    })
}

/// A sentence as a part of another one.
fn in_sentence(text: &str) -> String {
    let mut chars = text.strip_suffix('.').unwrap_or(text).chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// The remedy for a lock that does not match names the config.
fn with_command(problem: Diagnostic, config: &Path) -> Diagnostic {
    use DiagnosticCode as Code;
    if problem.code == Code::LockVersion {
        let config = shell_word(&config.to_string_lossy());
        return problem.help(format!(
            "Upgrade mcp-broker and broker-gen to the version that wrote it, or run `broker-gen lock --config {config}`."
        ));
    }
    let of_lock = [
        Code::LockCorrupt,
        Code::LockMissing,
        Code::LockOrphan,
        Code::LockStale,
    ];
    let by_lock = of_lock.contains(&problem.code);
    if !by_lock || problem.help.is_some() {
        return problem;
    }
    let config = shell_word(&config.to_string_lossy());
    problem.help(format!("Run `broker-gen lock --config {config}`."))
}
