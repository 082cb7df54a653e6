//! Compiles the config that `MCP_BROKER_CONFIG` names into this package's own binary.

fn main() {
    #[cfg(feature = "bundled")]
    broker_gen::build();
}
