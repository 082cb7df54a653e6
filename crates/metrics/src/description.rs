//! The description of a catalog, from which the labels of its metrics are made.

use broker_model::item::ItemKind;

/// What the metrics must know of a catalog and of the broker that serves it.
#[derive(Clone, Copy, Debug)]
pub struct CatalogDescription<'a> {
    /// The version of the broker.
    pub version: &'a str,
    /// The digest of the catalog.
    pub digest: &'a str,
    /// The transport of callers.
    pub surface: Transport,
    /// The sources, in the order of the catalog.
    pub sources: &'a [SourceDescription<'a>],
    /// The tools and other items, in the order of the catalog.
    pub tools: &'a [ToolDescription<'a>],
}

/// A source.
#[derive(Clone, Copy, Debug)]
pub struct SourceDescription<'a> {
    /// Its path.
    pub path: &'a str,
    /// The transport to its server.
    pub transport: Transport,
}

/// A tool, prompt, template or resource.
#[derive(Clone, Copy, Debug)]
pub struct ToolDescription<'a> {
    /// The path under which callers see it.
    pub path: &'a str,
    /// The server's name for it. Only tools and prompts need one: a URI is never a label.
    pub upstream_name: &'a str,
    /// The index of its source.
    pub source: u32,
    /// Its kind.
    pub kind: ItemKind,
}

/// A transport, as the label `network_transport` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// The streams of a process.
    Pipe,
    /// HTTP or WebSocket.
    Tcp,
    /// A server or a caller in the process of the broker; the label is left out.
    #[default]
    InProcess,
}

impl Transport {
    /// The value of the label. A label without a value is left out.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Tcp => "tcp",
            Self::InProcess => "",
        }
    }
}
