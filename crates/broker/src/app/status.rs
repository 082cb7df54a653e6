//! `mcp-broker status`: requests the state of the sources of a running broker. Starts no server.

use broker_model::exit::Exit;
use broker_model::redact::Redactor;

use super::failure::Failure;
use super::http::load_secret;
use super::tree;
use crate::cli::{Format, StatusArgs};
use crate::logging::LogOutput;
use crate::status::{Target, ask};

/// Requests the state and prints it.
pub(super) async fn run(args: &StatusArgs, output: &LogOutput) -> Result<Exit, Failure> {
    let target =
        Target::parse(&args.address).and_then(|target| target.trusting(args.ca_file.clone()));
    let target = target.map_err(Failure::Usage)?;
    let secret = load_secret(None, args.secret_file.as_deref())?;
    output.mask(&Redactor::new(secret.clone()));
    let status = ask(&target, secret.as_ref())
        .await
        .map_err(Failure::Internal)?;
    let text = match args.format {
        Format::Human => output.human_text(&status.human(&target)),
        Format::Json => output.json_text(status.json()),
    };
    tree::print(&text)?;
    Ok(if status.is_fine() {
        Exit::Ok
    } else {
        Exit::Failure
    })
}
