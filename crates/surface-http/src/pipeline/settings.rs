//! The part of a config for the listener; a reload may replace it.

use std::time::Duration;

use broker_model::address::AddressRange;
use broker_surface_mcp::McpSettings;

use super::base_paths::BasePaths;
use super::host_policy::HostPolicy;
use super::protected_resource::ProtectedResource;

/// The settings of the surface.
#[derive(Debug)]
pub struct HttpSettings {
    /// The allowed `Host` and `Origin` headers; without effect on requests without these headers.
    pub hosts: HostPolicy,
    /// `limits.body_bytes`
    pub body_bytes: usize,
    pub mcp: McpSettings,
    pub callers: CallerSettings,
    /// Maximum time of a connection between two requests.
    pub idle_timeout: Duration,
    /// The paths before the routes that proxies pass on.
    pub base_paths: BasePaths,
    pub page: PageSettings,
}

/// The part of a config for the web page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageSettings {
    /// Whether it is served; `None` for listeners on loopback addresses only.
    pub served: Option<bool>,
    /// Whether it offers to call tools.
    pub calls: bool,
}

/// The part of a config for recognising callers.
#[derive(Clone, Debug, Default)]
pub struct CallerSettings {
    /// Keys and issuers of tokens.
    pub identities: broker_identity::Settings,
    /// Whether the config names keys, a file of keys, or issuers. The file may be empty.
    pub has_identities: bool,
    /// Whether calls of a caller that loses its rights are cancelled.
    pub cancels_calls: bool,
    /// The resource that tokens are issued for.
    pub resource: Option<ProtectedResource>,
    /// The proxies whose `Forwarded` and `X-Forwarded-For` are believed.
    pub trusted_proxies: Vec<AddressRange>,
}
