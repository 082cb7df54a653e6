//! `mcp-broker audit explain` and `audit replay`: the files of a command line, and the answer. Starts no server.

use std::path::PathBuf;

use broker_audit_query::{CompiledLock, ExplainFiles, QueryError, ReplayFiles};
use broker_config::Config;
use broker_mcp::Environment;
use broker_model::exit::Exit;
use broker_model::terminal::Text;

use super::failure::Failure;
use super::tree;
use crate::catalog::Catalog;
use crate::cli::{ExplainArgs, Format, ReplayArgs};

/// The maximum number of problems of a file in a message.
const MAX_SHOWN: usize = 3;

/// Runs `explain`.
pub(super) fn explain(
    args: &ExplainArgs,
    catalog: Option<&'static Catalog>,
) -> Result<Exit, Failure> {
    let logs = match args.files.is_empty() {
        true => vec![log_of_config(catalog)?],
        false => args.files.clone(),
    };
    let files = ExplainFiles {
        logs,
        lock: args.lock.clone(),
        config: args.config.clone(),
        audits: args.audits.clone(),
        repo: args.repo.clone(),
        revision: args.revision.clone(),
    };
    let compiled = catalog.and_then(compiled_lock);
    let answer =
        broker_audit_query::explain(args.seq, &files, compiled.as_ref()).map_err(unusable)?;
    tree::print(&match args.format {
        Format::Human => Text::lines("", &answer.to_text()),
        Format::Json => Text::json(&answer.to_json()),
    })?;
    Ok(exit(answer.is_unchanged()))
}

/// Runs `replay`.
pub(super) fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let files = ReplayFiles {
        logs: args.files.clone(),
        config: args.config.clone(),
        lock: args.lock.clone(),
    };
    let answer = broker_audit_query::replay(&files).map_err(unusable)?;
    tree::print(&match args.format {
        Format::Human => Text::lines("", &answer.to_text()),
        Format::Json => Text::json(&answer.to_json()),
    })?;
    Ok(exit(answer.is_same()))
}

const fn exit(is_good: bool) -> Exit {
    match is_good {
        true => Exit::Ok,
        false => Exit::Failure,
    }
}

/// Every reason is an argument or a file that cannot be used.
fn unusable(error: QueryError) -> Failure {
    let QueryError::Files(problems) = &error else {
        return Failure::Usage(error.to_string());
    };
    let texts = problems.iter().filter(|one| one.is_error());
    let texts = texts.take(MAX_SHOWN).map(|problem| {
        let place = problem.file.as_deref().unwrap_or_default();
        format!(
            "`{place}`: {}; {}",
            problem.whole_message(),
            problem.remedy()
        )
    });
    Failure::Usage(texts.collect::<Vec<_>>().join("; "))
}

/// Returns the file of the log that the compiled-in config names.
fn log_of_config(catalog: Option<&Catalog>) -> Result<PathBuf, Failure> {
    let none = || {
        let message = "no log is named, and the compiled-in config has no `audit`; name the log with `--file`";
        Failure::Usage(message.to_owned())
    };
    let catalog = catalog.ok_or_else(none)?;
    let parsed = Config::parse(catalog.config_name, catalog.config.as_bytes());
    let audit = parsed.ok().and_then(|parsed| parsed.config.audit);
    let file = audit.ok_or_else(none)?.file;
    let environment = Environment::capture();
    let expanded = file.expand(&|name| environment.get(name).map(str::to_owned));
    expanded.map(PathBuf::from).map_err(|_| {
        let message = "the compiled-in config names the log by variables that are not set; name the log with `--file`";
        Failure::Usage(message.to_owned())
    })
}

/// Returns the lock of a catalog; `None` if it cannot be read.
fn compiled_lock(catalog: &'static Catalog) -> Option<CompiledLock> {
    let sources = 0..catalog.sources.len();
    let sources = sources
        .map(|at| catalog.locked(at))
        .collect::<Result<_, _>>();
    Some(CompiledLock {
        catalog_digest: catalog.catalog_digest.to_owned(),
        root_digest: catalog.root_digest.to_owned(),
        sources: sources.ok()?,
        config_name: catalog.config_name.to_owned(),
        config: catalog.config.to_owned(),
    })
}
