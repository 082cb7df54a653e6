//! The output formats of subcommands.

/// The output format of a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people, in 80 columns.
    Human,
    /// One JSON object.
    Json,
}
