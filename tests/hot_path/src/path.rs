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
}

impl Path {
    /// All of them, in the order of the stored bounds.
    pub const ALL: [Self; 6] = [
        Self::HttpSmallCall,
        Self::HttpLargeCall,
        Self::HttpTree,
        Self::HttpDesc,
        Self::StdioSmallCall,
        Self::StdioLargeCall,
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
        }
    }

    /// The path of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.name() == name)
    }

    /// Whether the caller is an MCP client, and not an HTTP client.
    pub const fn is_stdio(self) -> bool {
        matches!(self, Self::StdioSmallCall | Self::StdioLargeCall)
    }

    /// The name of the meta-tool.
    pub const fn meta_tool(self) -> &'static str {
        match self {
            Self::HttpTree => "meta_tree",
            Self::HttpDesc => "meta_desc",
            _ => "meta_call",
        }
    }

    /// The body of the request: the arguments of the meta-tool.
    pub const fn body(self) -> &'static str {
        match self {
            Self::HttpTree => r#"{"path":"/"}"#,
            Self::HttpDesc => r#"{"path":"/files/search"}"#,
            Self::HttpSmallCall | Self::StdioSmallCall => {
                r#"{"path":"/files/head","args":{"path":"src/surface/http/connections.rs","lines":20}}"#
            }
            Self::HttpLargeCall | Self::StdioLargeCall => {
                r#"{"path":"/files/read","args":{"path":"src/surface/http/connections.rs","lines":1000}}"#
            }
        }
    }

    /// The calls of the shorter of two runs. One with a large result takes twenty times as many
    /// instructions as another one.
    pub const fn calls(self) -> usize {
        match self {
            Self::HttpLargeCall | Self::StdioLargeCall => 100,
            _ => 1_000,
        }
    }

    /// The minimum length of a reply, which shows that it is not an error.
    pub const fn min_reply_bytes(self) -> usize {
        match self {
            Self::HttpLargeCall | Self::StdioLargeCall => LARGE_BYTES,
            _ => SMALL_BYTES,
        }
    }
}
