//! The broker of the soak, with its own catalog of eight scripted sources.

mod trim;

use std::process::ExitCode;

mcp_broker::include_catalog!();

fn main() -> ExitCode {
    trim::answer_requests();
    mcp_broker::main(&CATALOG)
}
