//! `mcp-broker logs`: prints the last stderr lines of a source of a running broker. Starts no server.

use broker_model::exit::Exit;

use super::asked_broker::{open, print};
use super::failure::Failure;
use crate::cli::LogsArgs;
use crate::logging::LogOutput;
use crate::status::ask_for_logs;

/// Requests the lines and prints them.
pub(super) async fn run(args: &LogsArgs, output: &LogOutput) -> Result<Exit, Failure> {
    let (target, secret) = open(&args.asked.url, &args.asked.how, output)?;
    let logs = ask_for_logs(&target, &args.path, secret.as_ref())
        .await
        .map_err(Failure::Internal)?;
    for note in logs.notes() {
        output.note(&note);
    }
    print(output, args.asked.how.format, &logs.human(), logs.json())?;
    Ok(Exit::Ok)
}
