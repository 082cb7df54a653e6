//! `mcp-broker status`: requests the state of the sources of a running broker. Starts no server.

use broker_model::exit::Exit;

use super::asked_broker::{open, print};
use super::failure::Failure;
use crate::cli::StatusArgs;
use crate::logging::LogOutput;
use crate::status::ask;

/// Requests the state and prints it.
pub(super) async fn run(args: &StatusArgs, output: &LogOutput) -> Result<Exit, Failure> {
    let (target, secret) = open(&args.address, &args.how, output)?;
    let status = ask(&target, secret.as_ref())
        .await
        .map_err(Failure::Internal)?;
    print(
        output,
        args.how.format,
        &status.human(&target),
        status.json(),
    )?;
    Ok(if status.is_fine() {
        Exit::Ok
    } else {
        Exit::Failure
    })
}
