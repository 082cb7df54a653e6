//! What MCP clients see: the command line and variables take precedence over the config. The variables of another
//! proxy are read as well, so that its set-ups work.

use broker_config::{Config, Embedder, McpMode, Routing, top_k_range};

use super::failure::Failure;
use crate::cli::RunOptions;
use broker_surface_mcp::ClientView;

const MODE: &str = "MCP_MODE";
const ROUTING: &str = "ROUTING_TYPE";
const TOP_K_NAME: &str = "TOP_K";
const EMBEDDER: &str = "EMBEDDER";
/// The names of that variable.
const EMBEDDER_NAMES: [&str; 2] = ["MCP_BROKER_EMBEDDER", "MCPPROXY_EMBEDDER"];
const HF_MODEL: &str = "HF_MODEL";
/// The beginnings of the names of variables; the first one that is set counts.
const PREFIXES: [&str; 2] = ["MCP_BROKER_", "MCPPROXY_"];

/// The variables of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ViewVariables {
    mode: Option<McpMode>,
    routing: Option<Routing>,
    top_k: Option<usize>,
    /// The embedder that makes the vectors of queries, and the variable that names it.
    embedder: Option<(Embedder, &'static str)>,
}

impl ViewVariables {
    /// Reads the variables, with a warning for each pair of names that differ.
    pub(super) fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let routing = value(&lookup, ROUTING, "`CALL_TOOL` or `DYNAMIC`", |text| {
            Routing::from_name(text)
        })?;
        let modes = "`meta`, `direct` or `search`";
        let mode = value(&lookup, MODE, modes, McpMode::from_name)?;
        // The other proxy has one mode, without a name.
        let has_other_routing = lookup(&format!("{}{ROUTING}", PREFIXES[1])).is_some();
        let implied = has_other_routing.then_some(McpMode::Search);
        let range = top_k_range();
        let numbers = format!("an integer from {} to {}", range.start(), range.end());
        let number = |text: &str| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            number.map(|number: u64| number as usize)
        };
        // The core reads it, with the same precedence.
        value(&lookup, HF_MODEL, "a folder or a name", |_| Some(()))?;
        Ok(Self {
            mode: mode.or(implied),
            routing,
            top_k: value(&lookup, TOP_K_NAME, &numbers, number)?,
            embedder: named_value(&lookup, EMBEDDER, "`BM25`, `HF` or `OPENAI`", |text| {
                Embedder::from_name(text)
            })?
            .map(|(embedder, at)| (embedder, EMBEDDER_NAMES[at])),
        })
    }

    /// The embedder of queries beside a catalog that was built for `built`. A variable of the other proxy, where it needs no
    /// config, leaves a catalog without vectors as it is, with a warning that says what to add.
    pub(super) fn embedder(self, built: Embedder) -> Option<(Embedder, &'static str)> {
        let (chosen, variable) = self.embedder?;
        if variable != EMBEDDER_NAMES[1] || built != Embedder::Bm25 || chosen == built {
            return self.embedder;
        }
        let name = chosen.as_str();
        tracing::warn!(
            "`{variable}` is `{name}`, and the config names no embedder: searches use words; for vectors add `\"search\": {{\"embedder\": \"{name}\"}}` to the config, run `broker-gen lock` and build again"
        );
        None
    }

    /// The view of a start.
    pub(super) fn view(self, config: &Config, options: &RunOptions) -> ClientView {
        let configured = ClientView::from_config(config);
        let top_k = options.top_k.map(usize::from);
        ClientView {
            mode: options
                .mcp_mode
                .map(Into::into)
                .or(self.mode)
                .unwrap_or(configured.mode),
            routing: options
                .routing
                .map(Into::into)
                .or(self.routing)
                .unwrap_or(configured.routing),
            top_k: top_k.or(self.top_k).unwrap_or(configured.top_k),
            split_calls: configured.split_calls,
            vendor: options.client.map(Into::into),
        }
    }
}

/// The value of a variable under the first of its names that is set.
fn value<T>(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let found = named_value(lookup, name, expected, read)?;
    Ok(found.map(|(value, _)| value))
}

/// Reads such a value with the index of the beginning of its name.
fn named_value<T>(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<(T, usize)>, Failure> {
    let set = PREFIXES.map(|prefix| {
        let name = format!("{prefix}{name}");
        lookup(&name)
            .filter(|text| !text.is_empty())
            .map(|text| (name, text))
    });
    if let [Some((own, value)), Some((other, ignored))] = &set
        && value != ignored
    {
        tracing::warn!("`{own}` and `{other}` differ; `{own}` counts");
    }
    let mut set = set.into_iter().zip(0..);
    let Some((name, text, at)) = set.find_map(|(one, at)| one.map(|(name, text)| (name, text, at)))
    else {
        return Ok(None);
    };
    match read(&text) {
        Some(value) => Ok(Some((value, at))),
        None => Err(Failure::Variable(format!("`{name}` must be {expected}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<ViewVariables, String> {
        let lookup = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ViewVariables::read(lookup).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn own_variables_precede_those_of_the_other_proxy() {
        let both = read(&[
            ("MCP_BROKER_ROUTING_TYPE", "CALL_TOOL"),
            ("MCPPROXY_ROUTING_TYPE", "DYNAMIC"),
            ("MCPPROXY_TOP_K", "7"),
        ]);
        let expected = ViewVariables {
            mode: Some(McpMode::Search),
            routing: Some(Routing::CallTool),
            top_k: Some(7),
            embedder: None,
        };
        assert_eq!(both, Ok(expected));
        let named = read(&[
            ("MCP_BROKER_MCP_MODE", "meta"),
            ("MCPPROXY_ROUTING_TYPE", "DYNAMIC"),
        ]);
        assert_eq!(named.map(|view| view.mode), Ok(Some(McpMode::Meta)));
        let own = read(&[("MCP_BROKER_ROUTING_TYPE", "DYNAMIC")]);
        assert_eq!(own.map(|view| view.mode), Ok(None));
    }

    #[test]
    fn wrong_values_are_refused_by_the_name_of_their_variable() {
        for (name, value) in [
            ("MCP_BROKER_MCP_MODE", "all"),
            ("MCPPROXY_ROUTING_TYPE", "dynamic"),
            ("MCP_BROKER_TOP_K", "0"),
            ("MCP_BROKER_TOP_K", "51"),
            ("MCP_BROKER_EMBEDDER", "bm25"),
        ] {
            let refused = read(&[(name, value)]);
            assert!(refused.is_err_and(|text| text.contains(name)), "{name}");
        }
    }
}
