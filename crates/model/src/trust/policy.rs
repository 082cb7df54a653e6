//! Trust levels of servers by their URL, for programs that list tools themselves.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Exposure, SensitiveNames, TrustLevel};
use crate::filter::{FilterError, ToolFilter};
use crate::snapshot::{ListedTool, tool_name};
use crate::url::{HttpUrl, UrlError};

/// The trust levels of servers over HTTP, and their curated tool lists. It decides with the same function as
/// `broker-gen lock` whether a tool is exposed. The `tool_filter` of a source applies at every level; a curated list
/// belongs to the level `verified`: at the other levels it is kept and has no effect.
///
/// Two URLs name the same server if they are equal in scheme, host, port and path, after the host is in lower case, the
/// default port is written out and slashes at the end are removed. A prefix does not match. Query and percent-encoding
/// are left alone: the query does not count, and `%61` is another path than `a`. A URL with user information is
/// refused.
///
/// ```
/// use broker_model::trust::{TrustLevel, TrustPolicy};
///
/// let mut policy = TrustPolicy::new();
/// let tools = ["search", "read_page", "delete_page"];
/// // An unknown server is untrusted: its tools with a sensitive name are hidden.
/// assert_eq!(policy.get_trust("https://docs.example/mcp")?, TrustLevel::Untrusted);
/// assert_eq!(
///     policy.filter_tools(tools, "https://docs.example/mcp")?,
///     ["search", "read_page"]
/// );
///
/// // A verified server exposes only the tools of its curated list.
/// policy.set_trust("https://docs.example/mcp", TrustLevel::Verified)?;
/// policy.set_curated("https://docs.example/mcp", &["search", "delete_page"])?;
/// assert_eq!(
///     policy.filter_tools(tools, "https://DOCS.example:443/mcp/")?,
///     ["search", "delete_page"]
/// );
/// # Ok::<(), broker_model::trust::TrustError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TrustPolicy {
    sensitive: Arc<SensitiveNames>,
    servers: Vec<(HttpUrl, Server)>,
}

/// What a policy knows of one server.
#[derive(Clone, Debug)]
struct Server {
    level: TrustLevel,
    /// The patterns that count at the level `verified`.
    curated: ToolFilter,
}

/// Why a trust policy refuses its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The URL does not name a server.
    #[error("the URL of the server is refused: {0}")]
    Url(#[from] UrlError),
    /// A pattern of a curated list is not a glob.
    #[error("the curated list is refused: {}", first(.0))]
    Patterns(Vec<FilterError>),
}

fn first(errors: &[FilterError]) -> String {
    errors
        .first()
        .map(FilterError::to_string)
        .unwrap_or_default()
}

/// A tool with a name that a [`TrustPolicy`] can filter.
pub trait NamedTool {
    /// Returns the server's name of the tool; empty without a name.
    fn tool_name(&self) -> &str;
}

impl TrustPolicy {
    /// Returns a policy with the default list of sensitive names. Every server is untrusted.
    pub fn new() -> Self {
        Self::default()
    }

    /// A policy with another list of sensitive names.
    pub fn with_sensitive(sensitive: SensitiveNames) -> Self {
        Self {
            sensitive: Arc::new(sensitive),
            servers: Vec::new(),
        }
    }

    /// Sets the level of the server at `url`.
    pub fn set_trust(&mut self, url: &str, level: TrustLevel) -> Result<(), TrustError> {
        self.server(HttpUrl::parse(url)?).level = level;
        Ok(())
    }

    /// Sets the curated list of the server at `url`: patterns as in `tool_filter`, for the exposure of tools at the
    /// level `verified`. Without a positive pattern no tool is exposed. At the other levels they have no effect,
    /// whether they are set before the level or after it.
    pub fn set_curated<S: AsRef<str>>(
        &mut self,
        url: &str,
        patterns: &[S],
    ) -> Result<(), TrustError> {
        let url = HttpUrl::parse(url)?;
        let curated = ToolFilter::compile(patterns).map_err(TrustError::Patterns)?;
        self.server(url).curated = curated;
        Ok(())
    }

    /// Returns the level of the server at `url`: `untrusted` unless a level was set.
    pub fn get_trust(&self, url: &str) -> Result<TrustLevel, TrustError> {
        Ok(self.exposure(&HttpUrl::parse(url)?).level())
    }

    /// The tools of the server at `url` that are exposed, in their order. A tool without a name never is.
    pub fn filter_tools<T: NamedTool>(
        &self,
        tools: impl IntoIterator<Item = T>,
        url: &str,
    ) -> Result<Vec<T>, TrustError> {
        let exposure = self.exposure(&HttpUrl::parse(url)?);
        let is_exposed = |tool: &T| {
            let name = tool.tool_name();
            !name.is_empty() && exposure.exposes(name)
        };
        Ok(tools.into_iter().filter(is_exposed).collect())
    }

    fn exposure(&self, url: &HttpUrl) -> Exposure {
        let mut servers = self.servers.iter();
        let known = servers.find(|(known, _)| known.is_same_server(url));
        let level = known.map_or(TrustLevel::Untrusted, |(_, server)| server.level);
        let filter = match (level, known) {
            (TrustLevel::Verified, Some((_, server))) => server.curated.clone(),
            (TrustLevel::Trusted | TrustLevel::Verified | TrustLevel::Untrusted, _) => {
                ToolFilter::default()
            }
        };
        Exposure::new(filter, level, self.sensitive.clone())
    }

    /// Returns the server at `url`. An unknown server is added as an untrusted one.
    fn server(&mut self, url: HttpUrl) -> &mut Server {
        let known = self.servers.iter();
        let known = known
            .enumerate()
            .find(|(_, (known, _))| known.is_same_server(&url));
        let at = known.map_or(self.servers.len(), |(at, _)| at);
        if at == self.servers.len() {
            let server = Server {
                level: TrustLevel::Untrusted,
                curated: ToolFilter::default(),
            };
            self.servers.push((url, server));
        }
        &mut self.servers[at].1
    }
}

impl NamedTool for ListedTool {
    fn tool_name(&self) -> &str {
        self.name()
    }
}

impl NamedTool for Map<String, Value> {
    fn tool_name(&self) -> &str {
        tool_name(self)
    }
}

impl NamedTool for Value {
    fn tool_name(&self) -> &str {
        self.as_object().map_or("", tool_name)
    }
}

impl NamedTool for str {
    fn tool_name(&self) -> &str {
        self
    }
}

impl NamedTool for String {
    fn tool_name(&self) -> &str {
        self
    }
}

impl<T: NamedTool + ?Sized> NamedTool for &T {
    fn tool_name(&self) -> &str {
        (**self).tool_name()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const URL: &str = "https://h.example/mcp";
    const TOOLS: [&str; 3] = ["get", "delete", "put"];

    fn policy(level: TrustLevel, curated: Option<&[&str]>) -> TrustPolicy {
        let mut policy = TrustPolicy::new();
        policy.set_trust(URL, level).unwrap();
        if let Some(patterns) = curated {
            policy.set_curated(URL, patterns).unwrap();
        }
        policy
    }

    #[test]
    fn policy_counts_the_curated_list_at_the_level_verified_only() {
        for (level, curated, expected) in [
            (TrustLevel::Trusted, None, &TOOLS as &[_]),
            (TrustLevel::Trusted, Some(&["!put"] as &[_]), &TOOLS),
            (TrustLevel::Trusted, Some(&["get"]), &TOOLS),
            (TrustLevel::Verified, None, &[]),
            (TrustLevel::Verified, Some(&[]), &[]),
            (TrustLevel::Verified, Some(&["!put"]), &[]),
            (TrustLevel::Verified, Some(&["delete"]), &["delete"]),
            (
                TrustLevel::Verified,
                Some(&["*", "!put"]),
                &["get", "delete"],
            ),
            (TrustLevel::Untrusted, None, &["get", "put"]),
            // A list that was not verified neither exposes a sensitive name nor hides another one.
            (
                TrustLevel::Untrusted,
                Some(&["*", "delete"]),
                &["get", "put"],
            ),
            (TrustLevel::Untrusted, Some(&["del*"]), &["get", "put"]),
        ] {
            let tools = policy(level, curated).filter_tools(TOOLS, URL);
            assert_eq!(tools.as_deref(), Ok(expected), "{level} {curated:?}");
        }
    }

    #[test]
    fn policy_knows_a_server_by_its_whole_normalised_url() {
        let policy = policy(TrustLevel::Trusted, None);
        for same in ["HTTPS://H.Example:443/mcp/", "https://h.example/mcp?key=v"] {
            assert_eq!(policy.get_trust(same), Ok(TrustLevel::Trusted), "{same}");
        }
        for other in [
            "http://h.example/mcp",
            "https://h.example:8443/mcp",
            "https://h.example/",
            "https://h.example/mcp/other",
            "https://h.example/mcp2",
            "https://h.example/x/../mcp",
            "https://h.example.evil.example/mcp",
            "https://other.example/mcp",
        ] {
            assert_eq!(
                policy.get_trust(other),
                Ok(TrustLevel::Untrusted),
                "{other}"
            );
            let tools = policy.filter_tools(TOOLS, other);
            assert_eq!(tools.as_deref(), Ok(&["get", "put"] as &[_]), "{other}");
        }
    }

    #[test]
    fn policy_refuses_a_url_with_user_information() {
        let mut policy = policy(TrustLevel::Trusted, None);
        let url = "https://h.example@other.example/mcp";
        let refused = TrustError::Url(UrlError::UserInfo);
        assert_eq!(
            policy.set_trust(url, TrustLevel::Trusted),
            Err(refused.clone())
        );
        assert_eq!(policy.set_curated(url, &["*"]), Err(refused.clone()));
        assert_eq!(policy.get_trust(url), Err(refused.clone()));
        assert_eq!(policy.filter_tools(TOOLS, url), Err(refused));
    }

    #[test]
    fn policy_keeps_level_and_list_of_a_server_when_the_other_one_changes() {
        let mut policy = policy(TrustLevel::Verified, Some(&["get"]));
        policy
            .set_curated("https://h.example:443/mcp/", &["put"])
            .unwrap();
        assert_eq!(policy.get_trust(URL), Ok(TrustLevel::Verified));
        policy.set_trust(URL, TrustLevel::Trusted).unwrap();
        assert_eq!(policy.filter_tools(TOOLS, URL).as_deref(), Ok(&TOOLS[..]));
        policy.set_trust(URL, TrustLevel::Verified).unwrap();
        let refused = policy.set_curated(URL, &["["]).unwrap_err();
        assert!(
            refused.to_string().contains("`[` is not a glob"),
            "{refused}"
        );
        assert_eq!(
            policy.filter_tools(TOOLS, URL).as_deref(),
            Ok(&["put"] as &[_])
        );
    }

    #[test]
    fn policy_filters_raw_tools_and_hides_those_without_a_name() {
        let tools = vec![
            json!({"name": "get"}),
            json!({"name": "delete"}),
            json!({}),
            json!(1),
        ];
        let exposed = TrustPolicy::new().filter_tools(tools, URL);
        assert_eq!(exposed, Ok(vec![json!({"name": "get"})]));
    }

    #[test]
    fn policy_with_other_words_hides_their_names() {
        let words = SensitiveNames::new(&["put"]).unwrap();
        let policy = TrustPolicy::with_sensitive(words);
        let tools = policy.filter_tools(TOOLS, URL);
        assert_eq!(tools.as_deref(), Ok(&["get", "delete"] as &[_]));
    }
}
