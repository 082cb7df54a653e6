//! The paths that are counted: a surface, a request and the result of the server.

/// The bytes of a small and of a large result.
pub const SMALL_BYTES: usize = 100;
pub const LARGE_BYTES: usize = 100 << 10;

/// One way of a request through the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    HttpSmallCall,
    HttpLargeCall,
    HttpTree,
    HttpDesc,
    StdioSmallCall,
    StdioLargeCall,
    LegacySmallCall,
    LegacyLargeCall,
    ModernSmallCall,
    ModernLargeCall,
}

/// How a caller talks to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The routes of the meta-tools.
    Meta,
    /// An MCP client over stdio.
    Stdio,
    /// An MCP client over HTTP, in a legacy session.
    Legacy,
    /// An MCP client over HTTP, with requests that describe themselves.
    Modern,
}

impl Path {
    /// All of them, in the order of the stored bounds.
    pub const ALL: [Self; 10] = [
        Self::HttpSmallCall,
        Self::HttpLargeCall,
        Self::HttpTree,
        Self::HttpDesc,
        Self::StdioSmallCall,
        Self::StdioLargeCall,
        Self::LegacySmallCall,
        Self::LegacyLargeCall,
        Self::ModernSmallCall,
        Self::ModernLargeCall,
    ];

    /// Its name in the bounds and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HttpSmallCall => "http meta_call 100 B",
            Self::HttpLargeCall => "http meta_call 100 KiB",
            Self::HttpTree => "http meta_tree",
            Self::HttpDesc => "http meta_desc",
            Self::StdioSmallCall => "stdio meta_call 100 B",
            Self::StdioLargeCall => "stdio meta_call 100 KiB",
            Self::LegacySmallCall => "http mcp legacy 100 B",
            Self::LegacyLargeCall => "http mcp legacy 100 KiB",
            Self::ModernSmallCall => "http mcp modern 100 B",
            Self::ModernLargeCall => "http mcp modern 100 KiB",
        }
    }

    /// The path of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.name() == name)
    }

    /// How its caller talks to the broker.
    pub const fn surface(self) -> Surface {
        match self {
            Self::HttpSmallCall | Self::HttpLargeCall | Self::HttpTree | Self::HttpDesc => {
                Surface::Meta
            }
            Self::StdioSmallCall | Self::StdioLargeCall => Surface::Stdio,
            Self::LegacySmallCall | Self::LegacyLargeCall => Surface::Legacy,
            Self::ModernSmallCall | Self::ModernLargeCall => Surface::Modern,
        }
    }

    /// Whether the result of the server is a large one.
    const fn is_large(self) -> bool {
        matches!(
            self,
            Self::HttpLargeCall
                | Self::StdioLargeCall
                | Self::LegacyLargeCall
                | Self::ModernLargeCall
        )
    }

    /// The name of the tool: a meta-tool, or the flat name of a tool in the mode `direct`.
    pub const fn tool(self) -> &'static str {
        match (self, self.surface()) {
            (Self::HttpTree, _) => "meta_tree",
            (Self::HttpDesc, _) => "meta_desc",
            (_, Surface::Meta | Surface::Stdio) => "meta_call",
            (_, Surface::Legacy | Surface::Modern) if self.is_large() => "files-read",
            (_, Surface::Legacy | Surface::Modern) => "files-head",
        }
    }

    /// The arguments of the tool.
    pub const fn arguments(self) -> &'static str {
        match (self, self.surface()) {
            (Self::HttpTree, _) => r#"{"path":"/"}"#,
            (Self::HttpDesc, _) => r#"{"path":"/files/search"}"#,
            (_, Surface::Meta | Surface::Stdio) if self.is_large() => {
                r#"{"path":"/files/read","args":{"path":"src/surface/http/connections.rs","lines":1000}}"#
            }
            (_, Surface::Meta | Surface::Stdio) => {
                r#"{"path":"/files/head","args":{"path":"src/surface/http/connections.rs","lines":20}}"#
            }
            (_, Surface::Legacy | Surface::Modern) if self.is_large() => {
                r#"{"path":"src/surface/http/connections.rs","lines":1000}"#
            }
            (_, Surface::Legacy | Surface::Modern) => {
                r#"{"path":"src/surface/http/connections.rs","lines":20}"#
            }
        }
    }

    /// The calls of the shorter of two runs. One with a large result takes twenty times as many
    /// instructions as another one.
    pub const fn calls(self) -> usize {
        if self.is_large() { 100 } else { 1_000 }
    }

    /// The minimum length of a reply, which shows that it is not an error.
    pub const fn min_reply_bytes(self) -> usize {
        if self.is_large() {
            LARGE_BYTES
        } else {
            SMALL_BYTES
        }
    }
}
