//! `verify`: checks that the committed files match, and that every tool is audited. Starts no source.

use std::path::{Path, PathBuf};
use std::time::Duration;

use broker_audits_file::Violations;
use broker_build::tables::{self, Tables};
use broker_build::{hint_audits, left_out_audits, lock_file, plan, vectors_file};
use broker_config::Config;
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::terminal::Text;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode};
use broker_process::program;
use broker_review::audits::Audits;
use broker_review::lock_file::lock_of_config;
use broker_review::verify::{Outcome, authors, signed};
use clap::{Args, ValueEnum};
use mcp_broker::packed::catalog_bytes;

use super::serve::memory;
use super::{output, schemas};
use crate::cli::schemas::access_args;

mod packed;

/// Maximum time for a broker to print its version.
const BINARY_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_VERSION_BYTES: u64 = 64 << 10;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// Start no source. This is always so; the option states it.
    #[arg(long)]
    offline: bool,
    /// Refuse a tool whose audits are by authors of the commits that brought it into the lock. Needs the whole history in
    /// git.
    #[arg(long)]
    require_other_author: bool,
    /// A broker that must have this catalog, compiled in or packed; it is only run with `--version`.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The program that the named broker must be packed of, such as the `mcp-broker` of a package.
    #[arg(long, value_name = "FILE", requires = "binary")]
    runtime: Option<PathBuf>,
    /// The format of the outcome on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// The format of the outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people: one line if all is well, else also the checks that passed.
    #[default]
    Human,
    /// One JSON object.
    Json,
}

pub(super) fn run(args: &VerifyArgs) -> Exit {
    let outcome = verify(args);
    let exit = Exit::from_diagnostics(&outcome.problems);
    // An empty check must not succeed.
    let nothing = if outcome.problems.is_empty() && outcome.sources == 0 {
        Exit::Unchecked
    } else {
        Exit::Ok
    };
    let exit = exit.or(nothing);
    output::diagnostics(&outcome.problems);
    match args.format {
        Format::Human => output::data(&outcome.human(exit)),
        Format::Json => output::document(&Text::json(&outcome.to_json(exit))),
    }
    exit
}

fn verify(args: &VerifyArgs) -> Outcome {
    let mut outcome = Outcome::default();
    let path = &args.file.config;
    let (config, lock) = (read_config(path), lock_of_config(path));
    let audits = Audits::read(path);
    let mut config = outcome.take(config);
    let lock = outcome.take(lock);
    let audits = outcome.take(audits);
    if config.is_some() {
        let shown = shown_line(&path.to_string_lossy(), 200);
        outcome.holds("config", format!("{shown} is valid"));
    }
    if let Some(lock) = &lock {
        outcome.root_digest = Some(lock.root_digest().as_str().to_owned());
        outcome.sources = lock.sources.len();
        outcome.tools = lock.sources.iter().map(|one| one.exposed.len()).sum();
    }
    let mut tables = None;
    if let (Some(config), Some(lock)) = (&mut config, &lock) {
        config.use_word_lists_of(lock);
        tables = documents(&mut outcome, config, lock, path);
    }
    if let Some(binary) = &args.binary {
        has_catalog(&mut outcome, binary, args.runtime.as_deref(), tables);
    }
    if let (Some(config), Some(lock), Some(audits)) = (&config, &lock, &audits) {
        signed::check(&mut outcome, config, lock, audits, path);
        if args.require_other_author {
            authors::check(&mut outcome, lock, audits, path, config.audits_required);
        }
    }
    outcome
}

fn read_config(path: &Path) -> Result<Config, Vec<Diagnostic>> {
    let shown = path.to_string_lossy();
    let parsed = broker_build::build_script::parse_config(path, &shown)?;
    output::diagnostics(&parsed.warnings);
    Ok(parsed.config)
}

/// Checks that config and lock match; returns the tables of their catalog.
fn documents(outcome: &mut Outcome, config: &Config, lock: &Lock, path: &Path) -> Option<Tables> {
    let shown = shown_line(&lock_file(path).to_string_lossy(), 200);
    let whole = format!("{shown} is complete, every digest matches");
    match plan::check_fresh(config, lock) {
        Ok(()) => outcome.holds("lock", format!("{whole}, and it was made for this config")),
        Err(problems) => {
            outcome.problems.extend(problems);
            outcome.holds("lock", whole);
            return None;
        }
    }
    let open = left_out_audits::check(lock, path, &path.to_string_lossy());
    match (lock.left_out_parts().len(), open.is_empty()) {
        (0, _) | (_, false) => {}
        (parts, true) => {
            let parts = counted(parts, "part");
            outcome.holds("left out", format!("{parts}, all accepted"));
        }
    }
    outcome.problems.extend(open);
    let refused = Violations::check(&lock.sources, path, &path.to_string_lossy());
    // Of an invalid audits file, every problem is reported once.
    let refused = refused
        .into_iter()
        .filter(|one| !outcome.problems.contains(one));
    let refused: Vec<_> = refused.collect();
    outcome.problems.extend(refused);
    let refused = schemas::refused(&lock.sources).into_iter();
    let mut problems: Vec<_> = refused.map(|tool| tool.problem).collect();
    problems.extend(schemas::check_examples(config, &lock.sources));
    problems.extend(access_args::check(config, &lock.sources));
    if problems.is_empty() {
        outcome.holds("schemas", "all compile, and examples match".to_owned());
    }
    outcome.problems.extend(problems);
    match plan::plan(config, &lock.sources) {
        Ok(mut plan) => {
            output::diagnostics(&plan.warnings);
            let paths = counted(plan.entries.len(), "path");
            outcome.holds("tree", format!("{paths}, no duplicates"));
            let claims = hint_audits::claims(&plan).len();
            let mut unaudited = hint_audits::check(config, &plan, path, &path.to_string_lossy());
            // Of an invalid audits file, every problem is reported once.
            unaudited.retain(|problem| !outcome.problems.contains(problem));
            if claims > 0 && unaudited.is_empty() {
                let tools = counted(claims, "tool");
                outcome.holds(
                    "hints",
                    format!("safer than those of the server for {tools}, all audited"),
                );
            }
            outcome.problems.extend(unaudited);
            match vectors_file::load(config, &plan, path, &path.to_string_lossy()) {
                Ok(vectors) => plan.vectors = vectors,
                Err(stale) => {
                    outcome.problems.extend(stale);
                    return None;
                }
            }
            if let Some(vectors) = &plan.vectors {
                let embedder = vectors.embedder.as_str();
                outcome.holds("vectors", format!("those of {embedder}, of every text"));
            }
            let tables = tables::tables(config, lock, &plan);
            outcome.holds("catalog", tables.catalog_digest.clone());
            outcome.catalog_digest = Some(tables.catalog_digest.clone());
            Some(tables)
        }
        Err(problems) => {
            outcome.problems.extend(problems);
            None
        }
    }
}

/// Checks that a broker has this catalog, compiled in or packed.
fn has_catalog(
    outcome: &mut Outcome,
    binary: &Path,
    runtime: Option<&Path>,
    tables: Option<Tables>,
) {
    let shown = shown_line(&binary.to_string_lossy(), 200);
    let Some(tables) = tables else {
        let message = format!("`{shown}` was not run: config and lock give no catalog");
        let help = "Fix config and lock first.";
        let problem = Diagnostic::error(DiagnosticCode::BinaryUnchecked, message).help(help);
        return outcome.problems.push(problem);
    };
    let expected = tables.catalog_digest.clone();
    let checked = memory::catalog(tables)
        .and_then(|catalog| packed::check(binary, runtime, &catalog_bytes(catalog)));
    let runtime = match checked {
        Ok(runtime) => runtime,
        Err(problem) => return outcome.problems.push(*problem),
    };
    match catalog_of(binary) {
        Ok(Some(digest)) if digest == expected => {
            outcome.holds("binary", format!("{shown} has this catalog"));
            outcome.binary = Some(match runtime {
                Some(sha256) => format!("packed into {shown} with the runtime sha256:{sha256}"),
                None => format!("compiled into {shown}"),
            });
        }
        Ok(found) => {
            let has = found.map_or_else(
                || "prints no catalog".to_owned(),
                |digest| format!("has the catalog {}", shown_line(&digest, 100)),
            );
            let message = format!("`{shown}` {has}, config and lock give {expected}");
            let help = "Build it again with this config and lock.";
            let problem = Diagnostic::error(DiagnosticCode::GeneratedStale, message).help(help);
            outcome.problems.push(problem);
        }
        Err(error) => {
            let message = format!("the version of `{shown}` cannot be read: {error}");
            outcome
                .problems
                .push(Diagnostic::error(DiagnosticCode::BinaryUnchecked, message));
        }
    }
}

/// Returns the catalog that a broker prints; `None` without one.
fn catalog_of(binary: &Path) -> std::io::Result<Option<String>> {
    // A path, never a name that is looked up in `PATH`.
    let file = binary.canonicalize()?;
    let command = program::command(file, |command| {
        command.arg("--version").env_clear();
    });
    let output = program::run(command, BINARY_TIMEOUT, MAX_VERSION_BYTES)?;
    if !output.status.success() {
        let message = format!("it ended with {}", output.status);
        return Err(std::io::Error::other(message));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let named = text.lines().find_map(|line| line.strip_prefix("catalog "));
    Ok(named.map(|digest| digest.trim().to_owned()))
}
