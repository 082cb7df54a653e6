//! The broker with this package's own catalog. A deployment of one's own is these lines and a
//! build script.

use std::process::ExitCode;

mcp_broker::include_catalog!();

fn main() -> ExitCode {
    mcp_broker::main(&CATALOG)
}
