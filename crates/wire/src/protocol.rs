//! What both sides of the broker know of the Model Context Protocol: eras, revisions, methods, keys.
//!
//! Rules come from the specification's revisions 2024-11-05 to 2025-11-25 (the legacy era, which
//! opens with `initialize`) and 2026-07-28 (the modern era, in which every request describes itself).

/// The modern revision.
pub const MODERN: &str = "2026-07-28";
/// The latest legacy revision, which a client asks for first.
pub const LEGACY_LATEST: &str = "2025-11-25";
/// Every legacy revision that the broker speaks, newest first.
pub const LEGACY: [&str; 4] = [LEGACY_LATEST, "2025-06-18", "2025-03-26", "2024-11-05"];

/// `params._meta` key: the revision of this request. Required in the modern era.
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `params._meta` key: what the client can do. Required in the modern era.
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `params._meta` key: who the client is.
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `result._meta` key: who the server is.
pub const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `params._meta` key of notifications on a subscription: the id of its `subscriptions/listen`.
pub const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Notification: the sender gives up a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Tells the progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// Notification: the tools of the server are others now.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// JSON-RPC: the line is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the message is no request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the parameters make no sense.
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

/// The two ways of talking MCP that are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Opens with `initialize`; revisions up to 2025-11-25.
    Legacy,
    /// No handshake; 2026-07-28.
    Modern,
}

/// The legacy revision of this name, if the broker speaks it.
pub fn legacy_revision(name: &str) -> Option<&'static str> {
    LEGACY.into_iter().find(|known| *known == name)
}

impl Era {
    /// The other era.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }

    /// The era of a revision, `None` for one that is not known.
    pub fn of_revision(revision: &str) -> Option<Self> {
        if revision == MODERN {
            Some(Self::Modern)
        } else if legacy_revision(revision).is_some() {
            Some(Self::Legacy)
        } else {
            None
        }
    }
}
