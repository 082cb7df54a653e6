//! The section `mcp`: how MCP clients see the tools.

use std::time::Duration;

use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::{ProcessEndpoint, command, fields};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::text::is_invisible;

const LEVEL: Level = Level::Mcp;
/// The maximum characters of the name of the broker.
const MAX_NAME_CHARS: usize = 64;

/// How MCP clients see the tools.
#[derive(Clone, Debug)]
pub struct Mcp {
    /// The name of the broker for MCP clients, if the config has one.
    pub name: Option<String>,
    /// The tools that `tools/list` has.
    pub mode: McpMode,
    /// The way for clients in search mode to call the tools that they found.
    pub routing: Routing,
    /// Whether calls go through three tools, one for each [`broker_model::access::CallSafety`].
    pub split_calls: bool,
    /// The command that runs after the list of a session has changed.
    pub list_changed_exec: Option<Box<ProcessEndpoint>>,
    /// The maximum length of a flat name, in characters. Decides the names, so it is compiled in. With the prefixes that
    /// clients add, a name of the default length stays within the 64 characters that model providers allow.
    pub max_name: usize,
    /// Whether clients of the legacy era get sessions over HTTP.
    pub legacy_sessions: LegacySessions,
    /// The maximum time of a session over HTTP without a request.
    pub session_idle: Duration,
}

/// The tools that MCP clients see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpMode {
    /// The meta-tools: a client finds and calls the other tools with them.
    #[default]
    Meta,
    /// Every tool under its flat name.
    Direct,
    /// A tool that searches, and what [`Routing`] adds.
    Search,
}

/// The way for clients in search mode to call the tools that they found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// With a second tool: it takes the name of the tool to call.
    #[default]
    CallTool,
    /// By their flat names: the list of a session has the tools that the session found.
    Dynamic,
}

/// Whether clients of the legacy era get sessions over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegacySessions {
    /// They do.
    #[default]
    Kept,
    /// They are served without one, unless their list depends on it.
    None,
}

impl LegacySessions {
    /// The value with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "kept" => Self::Kept,
            "none" => Self::None,
            _ => return None,
        })
    }
}

impl McpMode {
    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "meta" => Self::Meta,
            "direct" => Self::Direct,
            "search" => Self::Search,
            _ => return None,
        })
    }
}

impl Routing {
    /// The routing with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "CALL_TOOL" => Self::CallTool,
            "DYNAMIC" => Self::Dynamic,
            _ => return None,
        })
    }
}

impl Mcp {
    /// Whether its flat names have the default length.
    pub fn has_default_max_name(&self) -> bool {
        self.max_name == Self::default().max_name
    }
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            name: None,
            mode: McpMode::default(),
            routing: Routing::default(),
            split_calls: keys::key(LEVEL, "split_calls").value(),
            list_changed_exec: None,
            max_name: keys::key(LEVEL, "max_name").value(),
            legacy_sessions: LegacySessions::default(),
            session_idle: keys::key(LEVEL, "session_idle").time(),
        }
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Mcp {
    let mut out = Mcp::default();
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "name" => out.name = name(findings, &value),
            key @ "mode" => {
                let mode = keys::choice(findings, &value, LEVEL, key, McpMode::from_name);
                out.mode = mode.unwrap_or_default();
            }
            key @ "routing" => {
                let routing = keys::choice(findings, &value, LEVEL, key, Routing::from_name);
                out.routing = routing.unwrap_or_default();
            }
            "split_calls" => {
                out.split_calls = fields::boolean(findings, &value).unwrap_or_default();
            }
            "list_changed_exec" => out.list_changed_exec = exec(findings, &value),
            key @ "max_name" => {
                if let Some(max) = keys::integer(findings, &value, LEVEL, key) {
                    out.max_name = max;
                }
            }
            key @ "legacy_sessions" => {
                let from_name = LegacySessions::from_name;
                let sessions = keys::choice(findings, &value, LEVEL, key, from_name);
                out.legacy_sessions = sessions.unwrap_or_default();
            }
            key @ "session_idle" => {
                if let Some(time) = keys::seconds(findings, &value, LEVEL, key) {
                    out.session_idle = time;
                }
            }
            unknown => keys::unknown(findings, &value, unknown, Level::Mcp),
        }
    }
    out
}

/// Returns the name of the broker: one line of visible characters.
fn name(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<String> {
    let text = fields::text(findings, cursor, "the name of the broker")?;
    let words: Vec<&str> = text.split(' ').collect();
    let is_visible = |word: &&str| {
        !word.is_empty()
            && !word
                .chars()
                .any(|c| c.is_whitespace() || c.is_control() || is_invisible(c))
    };
    let length = text.chars().count();
    if length > MAX_NAME_CHARS || !words.iter().all(is_visible) {
        let message = format!(
            "the name of the broker has 1 to {MAX_NAME_CHARS} visible characters, and single blanks between them"
        );
        fields::out_of_range(findings, cursor, message);
        return None;
    }
    Some(text)
}

/// Returns a command, with the rules of `command` of a source. Unlike the command of a source, it may contain no
/// literal secret.
fn exec(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Box<ProcessEndpoint>> {
    let line = command::read(findings, cursor, None)?;
    let below = |place: String| place.replacen("/command", "", 1);
    let places = command::places(&line, cursor, false);
    let process = ProcessEndpoint {
        places: places.into_iter().map(below).collect(),
        command: line,
        ..ProcessEndpoint::blank()
    };
    if process.literal_secret_arguments().is_empty() {
        return Some(Box::new(process));
    }
    let message = "the command contains a secret";
    let diagnostic = Diagnostic::error(Code::ConfigRange, message);
    let remedy = "write `${NAME}` in its place, and set the variable NAME for the broker";
    findings.add(cursor, diagnostic.help(remedy));
    None
}
