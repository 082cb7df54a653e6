//! A broker with its own catalog.

use std::process::ExitCode;

mcp_broker::include_catalog!();

fn main() -> ExitCode {
    mcp_broker::main(&CATALOG)
}
