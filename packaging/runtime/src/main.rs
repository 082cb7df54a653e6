//! The broker without a catalog. `broker-gen pack` appends one to a copy of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_broker::main(&mcp_broker::catalog::NONE)
}
