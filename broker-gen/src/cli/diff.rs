//! `diff`: the differences between two locks, offline, as a report like the report of `check`.

use std::io;
use std::path::{Path, PathBuf};

use broker_build::{build_script, lock_file};
use broker_config::Config;
use broker_model::exit::Exit;
use broker_model::lock::{Lock, MAX_BYTES};
use broker_model::public_names::PublicNames;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::baseline::{is_of_config, read_baseline};
use broker_review::lint_report;
use broker_review::lock_diff::access;
use broker_review::lock_diff::diff_locks;
use broker_review::lock_file::{LockFile, config_of_lock, parse_lock, read_lock};
use broker_review::report::{Problems, ReportView, Sides};
use clap::Args;

use super::output;
use super::report::ReportArgs;

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The old and the new lock, `OLD NEW`; `-` reads from standard input. With `--baseline` only NEW, by
    /// default the lock beside the config.
    #[arg(value_name = "LOCK", num_args = 1..=2, required_unless_present = "baseline")]
    locks: Vec<PathBuf>,
    /// The old lock: `git:REV[:PATH]` or a file. PATH is by default the lock beside the config.
    #[arg(long, value_name = "BASELINE")]
    baseline: Option<String>,
    #[command(flatten)]
    file: super::ConfigFile,
    /// Whether the command line names the config.
    #[arg(skip)]
    pub(super) names_config: bool,
    #[command(flatten)]
    report: ReportArgs,
}

impl DiffArgs {
    /// Whether it reads a lock beside the config.
    pub(super) fn reads_config(&self) -> bool {
        let baseline = self.baseline.as_deref();
        baseline.is_some_and(|text| self.locks.is_empty() || is_of_config(text))
    }
}

pub(super) fn run(args: &DiffArgs) -> Exit {
    if let Err(exit) = args.report.make_folders() {
        return exit;
    }
    let config = &args.file.config;
    let (old, new_path) = match (&args.baseline, args.locks.as_slice()) {
        (Some(text), []) => (read_baseline(text, config), lock_file(config)),
        (Some(text), [new]) => (read_baseline(text, config), new.clone()),
        (None, [old, new]) => (read(old).map(|old| Some(old.lock)), new.clone()),
        (baseline, _) => {
            let message = match baseline {
                Some(_) => "`--baseline` takes one lock to compare with, and two are given",
                None => "two locks are needed, and one is given",
            };
            let help = "Write `diff OLD NEW`, or `diff --baseline git:REV [NEW]`.";
            let problem = Diagnostic::error(DiagnosticCode::BaselineUnreadable, message);
            return refused(args, &lock_file(config), &[problem.help(help)]);
        }
    };
    let (old, new) = match (old, read(&new_path)) {
        (Ok(old), Ok(new)) => (old, new),
        (old, new) => {
            let problems: Vec<_> = [old.err(), new.err()]
                .into_iter()
                .flatten()
                .flatten()
                .collect();
            return refused(args, &new_path, &problems);
        }
    };
    let old = old.unwrap_or_else(|| {
        let baseline = shown_line(args.baseline.as_deref().unwrap_or_default(), 200);
        output::say(text!(
            "the lock is new: the baseline {} does not have it",
            baseline
        ));
        without_sources(&new.lock)
    });
    let mut report = diff_locks(&old, &new.lock);
    match config_with_access(args, &new_path, &new.lock) {
        Ok(Some(config)) => {
            let (old, new) = (&old.sources, &new.lock.sources);
            access::add_between_locks(&mut report, &config, old, new);
        }
        Ok(None) => {}
        Err(problems) => return refused(args, &new_path, &problems),
    }
    // Locks contain no secrets.
    let nothing = (&Redactor::default(), &PublicNames::default());
    match lint_report::live_findings(&new.lock.sources, config, nothing, false) {
        Ok(linted) => lint_report::raise(&mut report, &linted, &old.sources),
        Err(problems) => return refused(args, &new_path, &problems),
    }
    if args.report.strict {
        report.strict();
    }
    args.report.deliver(&ReportView {
        report: &report,
        problems: &Problems::none(),
        sides: Sides::Locks,
        linted: &[],
        asked: None,
        locked: &new.lock.sources,
        lock_path: &new_path,
        config,
        lock_text: &new.text,
    })
}

/// Reports that the locks were not compared.
fn refused(args: &DiffArgs, new_path: &Path, problems: &[Diagnostic]) -> Exit {
    let config = &args.file.config;
    args.report
        .deliver_problems(problems, Sides::Locks, config, new_path)
}

/// An empty lock of the same config.
fn without_sources(lock: &Lock) -> Lock {
    Lock {
        sources: Vec::new(),
        left_out: Vec::new(),
        ..lock.clone()
    }
}

/// Returns the config whose access rules are applied: the one that the command line names; else the one beside the new
/// lock, or the default one if the new lock was made for it. If it is not named, one that cannot be read gives a
/// warning.
fn config_with_access(
    args: &DiffArgs,
    new_path: &Path,
    new: &Lock,
) -> Result<Option<Config>, Vec<Diagnostic>> {
    if args.names_config {
        return read_config(&args.file.config).map(Some);
    }
    let beside = config_of_lock(new_path).filter(|path| path.exists());
    let is_beside = beside.is_some();
    let path = beside.unwrap_or_else(|| args.file.config.clone());
    match read_config(&path) {
        Ok(config) if is_beside || config.digest() == new.config_digest => Ok(Some(config)),
        Err(problems) if is_beside => {
            output::diagnostics(&output::as_warnings(problems));
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn read_config(path: &Path) -> Result<Config, Vec<Diagnostic>> {
    let shown = path.to_string_lossy();
    Ok(build_script::parse_config(path, &shown)?.config)
}

fn read(path: &Path) -> Result<LockFile, Vec<Diagnostic>> {
    if path != Path::new("-") {
        return read_lock(path);
    }
    let text = broker_files::read_from(io::stdin().lock(), MAX_BYTES);
    parse_lock(path, text.and_then(broker_files::text))
}
