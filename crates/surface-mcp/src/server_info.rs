//! The name of the broker for MCP clients.

use std::sync::OnceLock;

use serde_json::{Value, json};

/// The name without one in the config.
const DEFAULT_NAME: &str = "mcp-broker";
/// The title without a name in the config.
const DEFAULT_TITLE: &str = "MCP broker";

/// The name in the config. It is that of the process, since every result of the modern era has it.
static NAME: OnceLock<Box<str>> = OnceLock::new();

/// Sets the name of the broker in this process. The first name stays: a client may have seen it.
pub fn set_server_name(name: &str) {
    // A later name needs a new start.
    let _: Result<(), Box<str>> = NAME.set(name.into());
}

/// The `serverInfo` of the broker.
pub(super) fn server_info() -> Value {
    info(NAME.get().map(|name| &**name))
}

fn info(name: Option<&str>) -> Value {
    json!({
        "name": name.unwrap_or(DEFAULT_NAME),
        "title": name.unwrap_or(DEFAULT_TITLE),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_the_config_is_the_title_as_well() {
        let shown = |name| {
            let info = info(name);
            (info["name"].clone(), info["title"].clone())
        };
        assert_eq!(shown(None), (json!("mcp-broker"), json!("MCP broker")));
        assert_eq!(shown(Some("Lab")), (json!("Lab"), json!("Lab")));
    }
}
