//! `schema`: prints the committed JSON Schemas.

use broker_model::exit::Exit;
use broker_model::terminal::Text;
use clap::{Args, ValueEnum};

use super::output;

/// The schema of a config; crates made by `new` contain it.
pub(super) const CONFIG: &str = include_str!("../../../schemas/config.schema.json");
const LOCK: &str = include_str!("../../../schemas/lock.schema.json");
const AUDIT: &str = include_str!("../../../schemas/audit.schema.json");
const REPORT: &str = include_str!("../../../schemas/report.schema.json");

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// The file.
    #[arg(value_enum, default_value_t = SchemaFile::Config)]
    which: SchemaFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SchemaFile {
    /// The config.
    Config,
    /// The lock beside it.
    Lock,
    /// A line of the audit log of a broker.
    Audit,
    /// The report of `check --format json` and `diff --format json`.
    Report,
}

pub(super) fn run(args: &SchemaArgs) -> Exit {
    output::document(&Text::from(match args.which {
        SchemaFile::Config => CONFIG,
        SchemaFile::Lock => LOCK,
        SchemaFile::Audit => AUDIT,
        SchemaFile::Report => REPORT,
    }));
    Exit::Ok
}
