//! `diff`: the differences between two locks, offline, as a report like that of `check`.

use std::io;
use std::path::{Path, PathBuf};

use broker_model::exit::Exit;
use broker_model::lock::MAX_BYTES;
use broker_model::{Diagnostic, DiagnosticCode};
use clap::Args;

use super::baseline::{is_of_config, read_baseline};
use super::input::{LockFile, parse_lock, read_lock};
use super::lock_diff::diff_locks;
use super::output;
use super::report::{ReportArgs, ReportView, Sides};
use crate::lock_file;

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
    let config = &args.file.config;
    let (old, new_path) = match (&args.baseline, args.locks.as_slice()) {
        (Some(text), []) => (read_baseline(text, config), lock_file(config)),
        (Some(text), [new]) => (read_baseline(text, config), new.clone()),
        (None, [old, new]) => (read(old).map(|old| old.lock), new.clone()),
        (baseline, _) => {
            let message = match baseline {
                Some(_) => "`--baseline` takes one lock to compare with, and two are given",
                None => "two locks are needed, and one is given",
            };
            let help = "Write `diff OLD NEW`, or `diff --baseline git:REV [NEW]`.";
            let problem = Diagnostic::error(DiagnosticCode::BaselineUnreadable, message);
            return output::diagnostics(&[problem.help(help)]);
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
            return output::diagnostics(&problems);
        }
    };
    let mut report = diff_locks(&old, &new.lock);
    if args.report.strict {
        report.strict();
    }
    args.report.deliver(&ReportView {
        report: &report,
        sides: Sides::Locks,
        linted: &[],
        asked: None,
        lock: &new.lock,
        lock_path: &new_path,
        config,
        lock_text: &new.text,
    })
}

fn read(path: &Path) -> Result<LockFile, Vec<Diagnostic>> {
    if path != Path::new("-") {
        return read_lock(path);
    }
    let text = broker_files::read_from(io::stdin().lock(), MAX_BYTES);
    parse_lock(path, text.and_then(broker_files::text))
}
