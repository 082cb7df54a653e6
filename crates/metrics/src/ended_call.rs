//! A call that has ended, in words of closed lists: the side, the method and the outcome.

use std::time::Duration;

use broker_model::CallCode;
use broker_model::item::ItemKind;

/// A call or another request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedCall {
    /// The index of the item in the catalog; `None` before it is resolved, and for methods that have no item.
    pub tool: Option<u32>,
    /// The side that measured it.
    pub side: Side,
    /// Its method.
    pub method: Method,
    /// How it ended.
    pub outcome: OutcomeClass,
    /// How long it took.
    pub duration: Duration,
    /// The size of its result; 0 if it has none.
    pub result_bytes: u64,
}

/// The side of the broker on which an operation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The call of a caller, from its arrival to the reply.
    Server,
    /// The request to the server of a source.
    Client,
}

/// The class of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeClass {
    /// It has a result.
    Ok,
    /// It has a result with `isError`: the tool itself failed.
    ToolError,
    /// It was refused and not executed. A code that is not in the list is `None`.
    Refused(Option<CallCode>),
    /// It failed while the server or the broker worked on it. A code that is not in the list is `None`.
    Failed(Option<CallCode>),
    /// Its caller left before the end.
    Abandoned,
}

impl OutcomeClass {
    /// The names of the classes that `mcp_broker_calls_total` counts.
    pub(crate) const COUNTED: [&'static str; 4] = ["ok", "tool_error", "refused", "failed"];

    /// Returns the class of a call that ended with this code.
    pub const fn from_code(code: CallCode) -> Self {
        match is_failure(code) {
            true => Self::Failed(Some(code)),
            false => Self::Refused(Some(code)),
        }
    }

    /// Returns the class of a call that ended with the code of this name. An unknown name is a refusal with the code
    /// `_other`.
    pub fn from_code_name(name: &str) -> Self {
        let mut codes = CallCode::ALL.iter();
        let code = codes.find(|code| code.as_str() == name);
        code.map_or(Self::Refused(None), |code| Self::from_code(*code))
    }

    /// Returns its place in [`Self::COUNTED`]; `None` for a caller who left.
    pub(crate) const fn place(self) -> Option<usize> {
        match self {
            Self::Ok => Some(0),
            Self::ToolError => Some(1),
            Self::Refused(_) => Some(2),
            Self::Failed(_) => Some(3),
            Self::Abandoned => None,
        }
    }
}

/// Whether a call with this code failed; all others were refused.
pub(crate) const fn is_failure(code: CallCode) -> bool {
    match code {
        CallCode::Internal
        | CallCode::SourceError
        | CallCode::SourceExited
        | CallCode::UpstreamHttp
        | CallCode::SourceProtocol
        | CallCode::OutputTooLarge
        | CallCode::JobLost
        | CallCode::CallTimeout => true,
        CallCode::JsonInvalid
        | CallCode::PathInvalid
        | CallCode::PathIsTool
        | CallCode::PathIsNode
        | CallCode::FieldUnknown
        | CallCode::FieldInvalid
        | CallCode::HeaderInvalid
        | CallCode::Unauthorized
        | CallCode::AuditUnavailable
        | CallCode::IdentityUnavailable
        | CallCode::Forbidden
        | CallCode::HostForbidden
        | CallCode::OriginForbidden
        | CallCode::PathNotFound
        | CallCode::RouteNotFound
        | CallCode::MethodNotAllowed
        | CallCode::ToolWithdrawn
        | CallCode::BodyTooLarge
        | CallCode::ContentType
        | CallCode::ArgsInvalid
        | CallCode::Overloaded
        | CallCode::SourceUnavailable
        | CallCode::Starting
        | CallCode::StartRefused
        | CallCode::LockStale
        | CallCode::NotDurable
        | CallCode::IdempotencyMismatch
        | CallCode::JobNotFound
        | CallCode::JobNotFinished
        | CallCode::JobFinished
        | CallCode::StoreUnavailable
        | CallCode::ShuttingDown => false,
    }
}

/// Declares the list of methods: for each its name, and for a meta-tool also the name of the tool.
macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $(, $tool:literal)?;)*) => {
        /// A method of MCP. A request of the meta API counts as the call of the meta-tool.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Method {
            $($(#[$doc])* $variant,)*
        }

        impl Method {
            /// All methods.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name of the method; `_other` for methods that are not in the list.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Returns the name of the meta-tool; empty for methods.
            pub const fn meta_tool(self) -> &'static str {
                match self { $(Self::$variant => concat!($($tool)?)),* }
            }
        }
    };
}

methods! {
    /// `initialize`
    Initialize = "initialize";
    /// `server/discover`
    Discover = "server/discover";
    /// `ping`
    Ping = "ping";
    /// `tools/list`
    ListTools = "tools/list";
    /// `tools/call`: the call of a tool, by every surface
    CallTool = "tools/call";
    /// `prompts/list`
    ListPrompts = "prompts/list";
    /// `prompts/get`
    GetPrompt = "prompts/get";
    /// `resources/list`
    ListResources = "resources/list";
    /// `resources/templates/list`
    ListTemplates = "resources/templates/list";
    /// `resources/read`
    ReadResource = "resources/read";
    /// `resources/subscribe`
    Subscribe = "resources/subscribe";
    /// `resources/unsubscribe`
    Unsubscribe = "resources/unsubscribe";
    /// `subscriptions/listen`
    Listen = "subscriptions/listen";
    /// `completion/complete`
    Complete = "completion/complete";
    /// `logging/setLevel`
    SetLevel = "logging/setLevel";
    /// The meta-tool `meta_tree`
    MetaTree = "tools/call", "meta_tree";
    /// The meta-tool `meta_desc`
    MetaDesc = "tools/call", "meta_desc";
    /// The tool `retrieve_tools` of the mode `search`
    RetrieveTools = "tools/call", "retrieve_tools";
    /// Every other method
    Other = "_other";
}

impl Method {
    /// Returns the method that a message names; [`Method::Other`] for a name that is not in the list.
    pub fn from_name(name: &str) -> Self {
        let mut methods = Self::ALL.iter();
        let method = methods.find(|method| method.as_str() == name);
        method.copied().unwrap_or(Self::Other)
    }

    /// Returns the method that calls an item of this kind.
    pub const fn from_kind(kind: ItemKind) -> Self {
        match kind {
            ItemKind::Tool => Self::CallTool,
            ItemKind::Prompt => Self::GetPrompt,
            ItemKind::Template | ItemKind::Resource => Self::ReadResource,
        }
    }

    /// Whether it calls an item, so that a call without one is a call of an unknown item.
    pub(crate) fn calls_an_item(self) -> bool {
        [Self::CallTool, Self::GetPrompt, Self::ReadResource].contains(&self)
    }
}
