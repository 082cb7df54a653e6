//! A broker with the catalog of this package.

use std::process::ExitCode;

mcp_broker::include_catalog!();

fn main() -> ExitCode {
    mcp_broker::main(&CATALOG)
}
