//! `mcp-broker logs`: prints the last stderr lines of a source of a running broker. Starts no server.

use broker_model::exit::Exit;
use broker_model::redact::Redactor;

use super::failure::Failure;
use super::http::load_secret;
use super::tree;
use crate::cli::{Format, LogsArgs};
use crate::logging::LogOutput;
use crate::status::{Target, ask_for_logs};

/// Requests the lines and prints them.
pub(super) async fn run(args: &LogsArgs, output: &LogOutput) -> Result<Exit, Failure> {
    let target = Target::parse(&args.url).and_then(|target| target.trusting(args.ca_file.clone()));
    let target = target.map_err(Failure::Usage)?;
    let secret = load_secret(None, args.secret_file.as_deref())?;
    output.mask(&Redactor::new(secret.clone()));
    let logs = ask_for_logs(&target, &args.path, secret.as_ref())
        .await
        .map_err(Failure::Internal)?;
    for note in logs.notes() {
        output.note(&note);
    }
    let text = match args.format {
        Format::Human => output.human_text(&logs.human()),
        Format::Json => output.json_text(logs.json()),
    };
    tree::print(&text)?;
    Ok(Exit::Ok)
}
