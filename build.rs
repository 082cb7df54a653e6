//! Compiles the config that `MCP_BROKER_CONFIG` names into this package's binary.

fn main() {
    broker_build::build();
}
