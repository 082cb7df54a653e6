//! The settings of MCP clients: the command line and the environment take precedence over the config.

use std::env::VarError;
use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::http::HeaderName;
use broker_config::{Config, PublicUrl};

use super::failure::Failure;
use broker_observe::ListChangedExec;
use broker_surface_mcp::{ClientView, McpSettings};

/// `0` or `false`: no MCP clients over HTTP. A simple MCP adapter uses the second name.
const ENABLE: [&str; 2] = ["MCP_BROKER_ENABLE_MCP", "ZYRA_ENABLE_MCP"];
/// The maximum bytes of a message over HTTP. A simple MCP adapter uses the second name.
const MAX_BODY_BYTES: [&str; 2] = ["MCP_BROKER_MCP_MAX_BODY_BYTES", "ZYRA_MCP_MAX_BODY_BYTES"];
/// The name of a header for the secret, in addition to the usual ones.
const KEY_HEADER: &str = "API_KEY_HEADER";

/// The values of [`MAX_BODY_BYTES`], as of `limits.body_bytes`.
const BODY_BYTES: RangeInclusive<usize> = 1024..=1 << 30;

/// The variables for MCP clients.
#[derive(Debug, Default)]
pub(super) struct McpVariables {
    /// Whether the endpoint exists.
    pub(super) is_enabled: bool,
    pub(super) key_header: Option<HeaderName>,
    max_body_bytes: Option<usize>,
}

impl McpVariables {
    /// Reads the variables of this process.
    pub(super) fn read() -> Result<Self, Failure> {
        Self::from_lookup(|name| match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => {
                Err(Failure::Variable(format!("`{name}` is not UTF-8")))
            }
        })
    }

    fn from_lookup(
        lookup: impl Fn(&str) -> Result<Option<String>, Failure>,
    ) -> Result<Self, Failure> {
        let is_enabled = match first_set(&lookup, ENABLE)? {
            None => true,
            Some((name, text)) => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => true,
                "0" | "false" | "no" | "off" => false,
                _ => return Err(Failure::Variable(format!("`{name}` must be `0` or `1`"))),
            },
        };
        let max_body_bytes = match first_set(&lookup, MAX_BODY_BYTES)? {
            None => None,
            Some((name, text)) => match text.parse() {
                Ok(bytes) if BODY_BYTES.contains(&bytes) => Some(bytes),
                _ => {
                    let (least, most) = (BODY_BYTES.start(), BODY_BYTES.end());
                    return Err(Failure::Variable(format!(
                        "`{name}` must be a number of bytes from {least} to {most}"
                    )));
                }
            },
        };
        let key_header = match lookup(KEY_HEADER)? {
            None => None,
            Some(name) => Some(HeaderName::try_from(name).map_err(|_| {
                Failure::Variable(format!(
                    "`{KEY_HEADER}` must be the name of a header, such as `X-Broker-Key`"
                ))
            })?),
        };
        Ok(Self {
            is_enabled,
            key_header,
            max_body_bytes,
        })
    }

    /// The settings for the surfaces. `base_path` is the path before the routes if the config has no `public_url`.
    pub(super) fn settings(
        &self,
        config: &Config,
        view: ClientView,
        list_changed_exec: Option<Arc<ListChangedExec>>,
        base_path: Option<&str>,
    ) -> McpSettings {
        McpSettings {
            view,
            list_changed_exec,
            legacy_sessions: config.mcp.legacy_sessions,
            session_idle: config.mcp.session_idle,
            serves_v1: config.surfaces.v1,
            serves_sse: config.surfaces.sse,
            base_path: config
                .public_url
                .as_ref()
                .map_or(base_path.unwrap_or_default(), PublicUrl::base_path)
                .to_owned(),
            body_bytes: self.max_body_bytes.unwrap_or(config.limits.body_bytes),
            event_bytes: config.limits.event_bytes,
        }
    }
}

/// The name and value of the first of two variables that is set and not empty. A value that differs from a second one
/// is a warning.
fn first_set(
    lookup: &impl Fn(&str) -> Result<Option<String>, Failure>,
    names: [&'static str; 2],
) -> Result<Option<(&'static str, String)>, Failure> {
    let mut set = Vec::new();
    for name in names {
        let value = lookup(name)?.filter(|value| !value.is_empty());
        set.extend(value.map(|value| (name, value)));
    }
    if let [(own, value), (other, ignored)] = &set[..]
        && value != ignored
    {
        tracing::warn!("`{own}` and `{other}` differ; `{own}` counts");
    }
    Ok(set.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &'static str) -> Result<McpVariables, Failure> {
        McpVariables::from_lookup(|asked| Ok((asked == name).then(|| value.to_owned())))
    }

    #[test]
    fn mcp_variables_are_read_or_refused() {
        assert!(read("", "").unwrap().is_enabled);
        for name in ENABLE {
            assert!(!read(name, "0").unwrap().is_enabled, "{name}");
            assert!(!read(name, "False").unwrap().is_enabled, "{name}");
            assert!(read(name, "yes").unwrap().is_enabled, "{name}");
        }
        for name in MAX_BODY_BYTES {
            assert_eq!(read(name, "4096").unwrap().max_body_bytes, Some(4096));
        }
        let own_first = McpVariables::from_lookup(|name| {
            Ok(ENABLE
                .contains(&name)
                .then(|| (name != ENABLE[0]).to_string()))
        });
        assert!(!own_first.unwrap().is_enabled);
        let key = read(KEY_HEADER, "X-Broker-Key").unwrap().key_header;
        assert_eq!(key.unwrap(), "x-broker-key");
        for (name, value) in [
            (ENABLE[0], "never"),
            (ENABLE[1], "2"),
            (MAX_BODY_BYTES[0], "1"),
            (MAX_BODY_BYTES[1], "4k"),
            (KEY_HEADER, "two words"),
            (KEY_HEADER, ""),
        ] {
            assert!(read(name, value).is_err(), "{name}={value}");
        }
    }
}
