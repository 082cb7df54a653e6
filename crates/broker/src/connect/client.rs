//! The facts about each client: the syntax of its file, how it refers to a variable, and what makes it read the
//! file again.

/// The syntax of a client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
    /// YAML with the servers as an object.
    Yaml,
    /// YAML with the servers as a list, each with its `name`.
    YamlList,
}

/// An MCP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Client {
    /// Claude Desktop; stdio only.
    Claude,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    #[value(name = "vscode")]
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// GitHub Copilot CLI.
    Copilot,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// opencode.
    #[value(name = "opencode")]
    OpenCode,
    /// Cline, the extension of Visual Studio Code.
    Cline,
    /// Roo Code, the extension of Visual Studio Code.
    Roo,
    /// Continue.
    Continue,
    /// LM Studio.
    #[value(name = "lmstudio")]
    LmStudio,
    /// goose.
    Goose,
    /// Any other client with an `mcpServers` file.
    Json,
}

impl Client {
    /// The name in messages.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::OpenCode => "opencode",
            Self::Cline => "Cline",
            Self::Roo => "Roo Code",
            Self::Continue => "Continue",
            Self::LmStudio => "LM Studio",
            Self::Goose => "goose",
            Self::Json => "the client",
        }
    }

    /// The member of the file that contains the servers.
    pub(super) const fn servers(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::OpenCode => "mcp",
            Self::Goose => "extensions",
            _ => "mcpServers",
        }
    }

    /// The syntax of the file.
    pub(super) const fn syntax(self) -> Syntax {
        match self {
            Self::Codex => Syntax::Toml,
            Self::Goose => Syntax::Yaml,
            Self::Continue => Syntax::YamlList,
            Self::Claude
            | Self::ClaudeCode
            | Self::Cursor
            | Self::VsCode
            | Self::Gemini
            | Self::Copilot
            | Self::Windsurf
            | Self::Zed
            | Self::OpenCode
            | Self::Cline
            | Self::Roo
            | Self::LmStudio
            | Self::Json => Syntax::Jsonc,
        }
    }

    /// The lines that a new file has besides the servers.
    pub(super) const fn preamble(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Continue refuses a file without them.
            Self::Continue => &[
                ("name", "Local Config"),
                ("version", "1.0.0"),
                ("schema", "v1"),
            ],
            _ => &[],
        }
    }

    /// The client's own reference to a variable in a header, if it has one.
    pub(super) fn reference(self, variable: &str) -> Option<String> {
        match self {
            Self::ClaudeCode | Self::Gemini | Self::Copilot | Self::Goose => {
                Some(format!("${{{variable}}}"))
            }
            Self::Cursor | Self::VsCode | Self::Windsurf | Self::Cline | Self::Roo => {
                Some(format!("${{env:{variable}}}"))
            }
            Self::OpenCode => Some(format!("{{env:{variable}}}")),
            Self::Continue => Some(format!("${{{{ secrets.{variable} }}}}")),
            // Codex has a member for the name of the variable instead.
            Self::Claude | Self::Codex | Self::Zed | Self::LmStudio | Self::Json => None,
        }
    }

    /// The texts that begin a reference, which no other string of an entry may contain.
    pub(super) const fn reference_marks(self) -> &'static [&'static str] {
        match self {
            Self::Gemini | Self::Goose | Self::Copilot => &["$"],
            Self::ClaudeCode
            | Self::Cursor
            | Self::VsCode
            | Self::Windsurf
            | Self::Cline
            | Self::Roo
            | Self::LmStudio => &["${"],
            Self::Continue => &["${{"],
            Self::OpenCode => &["{env:", "{file:"],
            Self::Claude | Self::Codex | Self::Zed | Self::Json => &[],
        }
    }

    /// The step that makes the client read its file again.
    pub(super) const fn restart(self) -> &'static str {
        match self {
            Self::Claude => "quit Claude Desktop and start it again",
            Self::ClaudeCode => "start a new session of Claude Code",
            Self::Cursor => "switch the server on in the MCP settings of Cursor",
            Self::VsCode => "start the server with `MCP: List Servers`",
            Self::Codex => "start a new session of Codex",
            Self::Gemini => "start Gemini CLI again",
            Self::Copilot => "start Copilot CLI again",
            Self::OpenCode => "start opencode again",
            Self::Roo => "Roo Code reads it at once",
            Self::Continue => "reload the config in Continue",
            Self::LmStudio => "LM Studio reads it at once",
            Self::Goose => "start a new session of goose",
            Self::Windsurf => "refresh the MCP servers in Cascade",
            Self::Zed => "Zed reads it at once",
            Self::Cline => "Cline reads it at once",
            Self::Json => "restart the client",
        }
    }
}
