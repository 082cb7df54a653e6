//! The broker of the soak, with its own catalog of eight scripted sources.

use std::process::ExitCode;

mcp_broker::include_catalog!();

fn main() -> ExitCode {
    mcp_broker::main(&CATALOG)
}
