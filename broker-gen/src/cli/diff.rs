//! `diff`: what changed between two locks, offline, in the report of `check`.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use broker_model::Diagnostic;
use broker_model::drift::BetweenLocks;
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use clap::Args;

use super::between::between;
use super::input::parse_lock;
use super::{Format, output};

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The lock as it was; `-` reads it from standard input.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The lock as it is.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// How to print the report on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
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
    let report = between(&old, &new);
    match args.format {
        Format::Human => output::data(BetweenLocks(&report)),
        Format::Json => output::data_json(&report.to_json()),
    }
    Exit::of_report(&report)
}

fn read(path: &Path) -> Result<Lock, Vec<Diagnostic>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    parse_lock(path, text)
}
