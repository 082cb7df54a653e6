//! The broker with the catalog that the build compiled in. A crate of `broker-gen new` has the same form.

use std::process::ExitCode;

mcp_broker::include_catalog!();
// To call tools from Rust, add `mcp_broker::include_tools!();`: about 0.1 s of compiler time a tool.

fn main() -> ExitCode {
    mcp_broker::main(&CATALOG)
}
