//! Files of MCP clients as `mcpServers` of a config: the client that wrote a file, and the file's servers and settings
//! in the keys, types, units and variables of a config. The values keep their places in the file. The code does not
//! read the machine: the caller says whether a program exists.

use super::spanned::{Data, Member, Spanned};
use broker_model::diagnostic::Diagnostic;

mod command_line;
mod conversion;
mod entry;
mod headers;
mod note;
mod recognise;
mod settings;
mod texts;
mod times;
mod tools;
mod variables;

pub use command_line::split_line;
pub use note::{Note, NoteKind};
pub use recognise::recognise;
pub use variables::{Part, translate};

pub(super) use recognise::{allows_comments, servers_key};
pub(super) use variables::{EQUAL, KINDS};

/// A client that writes files with MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// Claude Desktop, Claude Code, and `.mcp.json`.
    Claude,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// GitHub Copilot CLI.
    Copilot,
    /// opencode.
    Opencode,
    /// Zed.
    Zed,
    /// Windsurf.
    Windsurf,
    /// Cline.
    Cline,
    /// Roo Code.
    Roo,
    /// Continue.
    Continue,
    /// LibreChat.
    LibreChat,
    /// goose.
    Goose,
    /// LM Studio.
    LmStudio,
    /// Amazon Q Developer.
    AmazonQ,
}

impl Client {
    /// Every client, in the order of the documentation.
    pub const ALL: [Self; 16] = [
        Self::Claude,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Copilot,
        Self::Opencode,
        Self::Zed,
        Self::Windsurf,
        Self::Cline,
        Self::Roo,
        Self::Continue,
        Self::LibreChat,
        Self::Goose,
        Self::LmStudio,
        Self::AmazonQ,
    ];

    /// The word that names it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::Zed => "zed",
            Self::Windsurf => "windsurf",
            Self::Cline => "cline",
            Self::Roo => "roo",
            Self::Continue => "continue",
            Self::LibreChat => "librechat",
            Self::Goose => "goose",
            Self::LmStudio => "lmstudio",
            Self::AmazonQ => "amazonq",
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "GitHub Copilot CLI",
            Self::Opencode => "opencode",
            Self::Zed => "Zed",
            Self::Windsurf => "Windsurf",
            Self::Cline => "Cline",
            Self::Roo => "Roo Code",
            Self::Continue => "Continue",
            Self::LibreChat => "LibreChat",
            Self::Goose => "goose",
            Self::LmStudio => "LM Studio",
            Self::AmazonQ => "Amazon Q Developer",
        }
    }

    /// The client with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.word() == word)
    }

    /// The key of its servers.
    pub(super) fn servers_key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Zed => "context_servers",
            Self::Goose => "extensions",
            _ => "mcpServers",
        }
    }
}

/// How a file is converted.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The client that wrote the file, if it is known; `None` for a file of servers that fits several clients.
    pub client: Option<Client>,
    /// Whether a person named the client: then no setting of the top level is one of a config.
    pub is_named: bool,
    /// Whether a file or a program of this name exists. A `command` with blanks that does not exist is a command line.
    pub exists: &'a dyn Fn(&str) -> bool,
}

impl Rules<'_> {
    /// Makes the rules for a text without a named client, on an unknown machine.
    pub(super) fn from_content(root: &Spanned) -> Self {
        Self {
            client: recognise(None, root),
            is_named: false,
            exists: &|_| true,
        }
    }
}

impl std::fmt::Debug for Rules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules")
            .field("client", &self.client)
            .field("is_named", &self.is_named)
            .finish_non_exhaustive()
    }
}

/// What a conversion found.
#[derive(Debug, Default)]
pub struct Converted {
    /// The key of the servers; the converted file keeps it. `None` if the file has no servers.
    pub key: Option<&'static str>,
    /// What was not carried over or was changed, in the order of the file.
    pub notes: Vec<Note>,
    /// The errors, with the offsets of their places.
    pub problems: Vec<(usize, Diagnostic)>,
    /// Keys of the top level that are settings of the client.
    pub settings_of_client: Vec<String>,
    /// JSON pointers in the converted file, and the pointers of the same values in the file of the client.
    pub renamed: Vec<(String, String)>,
}

/// The JSON pointer in the file of a client for one in the converted file.
pub fn written_pointer(renamed: &[(String, String)], pointer: &str) -> Option<String> {
    renamed.iter().rev().find_map(|(ours, theirs)| {
        let rest = pointer.strip_prefix(ours.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{theirs}{rest}"))
    })
}

/// Converts the file of a client in place: below the key of the servers is then an object of entries as `mcpServers` of
/// a config has them, and next to it are settings of a config only. A config with `tree` is not changed.
pub fn convert(root: &mut Spanned, rules: Rules<'_>) -> Converted {
    let mut converted = Converted::default();
    if root.get("tree").is_some() {
        return converted;
    }
    let Some(key) = servers_key(root, rules.client) else {
        return converted;
    };
    converted.key = Some(key);
    let Data::Object(members) = &mut root.data else {
        return converted;
    };
    settings::keep_own(members, key, rules.is_named, &mut converted);
    for servers in members.iter_mut().filter(|member| member.key == key) {
        name_entries(&mut servers.value);
        let Data::Object(entries) = &mut servers.value.data else {
            continue;
        };
        entries.retain_mut(|server| {
            let mut entry = entry::Entry::new(server, key, rules, &mut converted);
            entry.convert(&mut server.value)
        });
    }
    converted.notes.sort_by_key(|note| note.at);
    converted
}

/// Makes an object of a list of servers that have a member `name`.
fn name_entries(servers: &mut Spanned) {
    let Data::Array(items) = &mut servers.data else {
        return;
    };
    let is_named =
        |item: &Spanned| matches!(item.get("name").map(|n| &n.data), Some(Data::String(_)));
    if items.is_empty() || !items.iter().all(is_named) {
        return;
    }
    let members = std::mem::take(items).into_iter().map(|mut item| {
        let mut key = String::new();
        if let Data::Object(members) = &mut item.data {
            members.retain_mut(|member| match &mut member.value.data {
                Data::String(name) if member.key == "name" => {
                    key = std::mem::take(name);
                    false
                }
                _ => true,
            });
        }
        Member {
            at: item.at,
            key,
            value: item,
        }
    });
    servers.data = Data::Object(members.collect());
}

/// The text of a string.
fn text_of(value: &Spanned) -> Option<&str> {
    match &value.data {
        Data::String(text) => Some(text),
        _ => None,
    }
}
