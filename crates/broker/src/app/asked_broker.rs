//! The broker that a subcommand asks: its address, the credential, and the output of its answer.

use broker_model::redact::{Redactor, Secret};
use broker_model::terminal::Text;

use super::failure::Failure;
use super::http::load_secret;
use super::tree;
use crate::cli::{AskOptions, Format};
use crate::logging::LogOutput;
use crate::status::Target;

/// Reads the address and the credential. The credential is masked in every output from now on.
pub(super) fn open(
    address: &str,
    how: &AskOptions,
    output: &LogOutput,
) -> Result<(Target, Option<Secret>), Failure> {
    let target = Target::parse(address);
    let target = target.and_then(|target| target.trusting(how.ca_file.clone()));
    let target = target.map_err(Failure::Usage)?;
    let secret = load_secret(None, how.secret_file.as_deref())?;
    output.mask(&Redactor::new(secret.clone()));
    Ok((target, secret))
}

/// Prints an answer in the format that was asked for.
pub(super) fn print(
    output: &LogOutput,
    format: Format,
    human: &Text,
    json: &str,
) -> Result<(), Failure> {
    let text = match format {
        Format::Human => output.human_text(human),
        Format::Json => output.json_text(json),
    };
    tree::print(&text).map(drop)
}
