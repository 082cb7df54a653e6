//! The parts of the Model Context Protocol that both sides of the broker use: eras, revisions, methods,
//! keys.
//!
//! Rules come from the specification's revisions 2024-11-05 to 2025-11-25 (the legacy era: a session opens with
//! `initialize`) and 2026-07-28 (the modern era: every request describes itself).

/// The modern revision.
pub const MODERN: &str = "2026-07-28";
/// The latest legacy revision. A client asks for it first.
pub const LEGACY_LATEST: &str = "2025-11-25";
/// Every legacy revision that the broker supports, newest first.
pub const LEGACY: [&str; 4] = [LEGACY_LATEST, "2025-06-18", "2025-03-26", "2024-11-05"];

/// `params._meta` key: the revision of this request. Required in the modern era.
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `params._meta` key: the capabilities of the client. Required in the modern era.
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `params._meta` key: name and version of the client.
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `params._meta` key: the lowest level of log messages that the client wants for this request.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// `result._meta` key: name and version of the server.
pub const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `params._meta` key of notifications on a subscription: the id of its `subscriptions/listen`.
pub const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Notification: the sender cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Notification: the progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// Notification: a log message.
pub const LOG_MESSAGE: &str = "notifications/message";
/// Notification: the tools of the server have changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// A JSON-RPC code of the legacy era: a resource does not exist.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// The same for prompts.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The same for resources and their templates.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

/// JSON-RPC: the line is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the message is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the parameters are not valid.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the receiver failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// JSON-RPC: the method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Modern: header and body disagree.
pub const HEADER_MISMATCH: i64 = -32020;
/// Modern: the request needs a capability that the client did not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// Modern: the revision is not supported; `data.supported` lists those that are.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The two variants of MCP in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// With the `initialize` handshake; revisions up to 2025-11-25.
    Legacy,
    /// Without a handshake; 2026-07-28.
    Modern,
}

/// Returns the legacy revision of this name, if the broker supports it.
pub fn legacy_revision(name: &str) -> Option<&'static str> {
    LEGACY.into_iter().find(|known| *known == name)
}

impl Era {
    /// Returns the other era.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }

    /// Returns the era of a revision, `None` if it is unknown.
    pub fn from_revision(revision: &str) -> Option<Self> {
        if revision == MODERN {
            Some(Self::Modern)
        } else if legacy_revision(revision).is_some() {
            Some(Self::Legacy)
        } else {
            None
        }
    }
}
