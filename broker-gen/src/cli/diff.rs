//! `diff`: what changed between two locks, offline, in the report of `check`.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use broker_model::Diagnostic;
use broker_model::exit::Exit;
use clap::Args;

use super::between::between;
use super::input::{LockFile, parse_lock};
use super::output;
use super::report::{ReportArgs, Shown, Sides};

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The lock as it was; `-` reads it from standard input.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The lock as it is.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
}

pub(super) fn run(args: &DiffArgs) -> Exit {
    let (old, new) = match (read(&args.old), read(&args.new)) {
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
    let mut report = between(&old.lock, &new.lock);
    if args.report.strict {
        report.strict();
    }
    args.report.deliver(&Shown {
        report: &report,
        sides: Sides::Locks,
        asked: None,
        lock: &new.lock,
        lock_path: &args.new,
        lock_text: &new.text,
    })
}

fn read(path: &Path) -> Result<LockFile, Vec<Diagnostic>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    parse_lock(path, text)
}
