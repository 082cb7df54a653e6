//! The parts of a request's URL: the mode of its route, and the part of the tree in its query.

use broker_config::McpMode;
use broker_model::model_vendor::ModelVendor;
use percent_encoding::percent_decode_str;

use crate::adapter::Dialect;

/// The only parameter of the query.
const UNDER: &str = "under";

/// The route of a request. It decides the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeRoute {
    /// `/mcp`: the mode of the config or the command line.
    Configured,
    /// A route with its own mode.
    Fixed(McpMode),
    /// Every tool under its flat name, within the limits of a vendor of models.
    Vendor(ModelVendor),
    /// `/v1/mcp`: every tool under its flat name, in the dialect of simple clients too.
    V1,
}

impl ModeRoute {
    /// Returns the mode of the route, if `configured` is the mode of the broker.
    pub(super) const fn mode(self, configured: McpMode) -> McpMode {
        match self {
            Self::Configured => configured,
            Self::Fixed(mode) => mode,
            Self::Vendor(_) | Self::V1 => McpMode::Direct,
        }
    }

    /// The vendor that the route names.
    pub(super) const fn vendor(self) -> Option<ModelVendor> {
        match self {
            Self::Vendor(vendor) => Some(vendor),
            Self::Configured | Self::Fixed(_) | Self::V1 => None,
        }
    }

    /// The dialect of a client of the route that sends the headers of the specification.
    pub(super) const fn dialect(self) -> Dialect {
        match self {
            Self::V1 => Dialect::Aliases,
            Self::Configured | Self::Fixed(_) | Self::Vendor(_) => Dialect::Standard,
        }
    }
}

/// The path in `?under=…`: the client sees only this entry and what is below it. Another parameter is refused,
/// since a misspelt one would show everything.
pub(super) fn under(query: Option<&str>) -> Result<Option<String>, String> {
    let mut under = None;
    let pairs = query.unwrap_or_default().split('&');
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != UNDER {
            let name = broker_model::text::shown_line(name, 80);
            return Err(format!(
                "the query has the unknown parameter `{name}`; there is only `{UNDER}`"
            ));
        }
        let path = percent_decode_str(value)
            .decode_utf8()
            .map_err(|_| format!("`{UNDER}` in the query is not UTF-8"))?;
        if under.replace(path.into_owned()).is_some() {
            return Err(format!("the query has `{UNDER}` twice"));
        }
    }
    Ok(under)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_gives_the_part_of_the_tree_or_is_refused() {
        let path = |query| under(query).unwrap();
        assert_eq!(path(None), None);
        assert_eq!(path(Some("")), None);
        assert_eq!(path(Some("under=/repo")), Some("/repo".to_owned()));
        assert_eq!(path(Some("under=%2Frepo%2fa")), Some("/repo/a".to_owned()));
        for wrong in [
            "udner=/repo",
            "under=/a&under=/b",
            "under=%ff",
            "under=/a&x",
        ] {
            assert!(under(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
