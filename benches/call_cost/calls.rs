//! The calls that are measured: how a caller sends them, and the size of their result.

use std::io;

/// A text whose answer in capitals is as long as the arguments.
const SMALL: &str = r#"{"path":"/text/text_case","args":{"to":"upper","text":"a hundred bytes of arguments make a hundred bytes of result, or nearly so"}}"#;
/// A part of every answer to it.
const SMALL_RESULT: &[u8] = b"A HUNDRED";
/// Arguments of a few bytes with a result of 100 KiB.
const LARGE: &str = r#"{"path":"/text/text_lorem","args":{"paragraphs":200}}"#;
const LARGE_RESULT_BYTES: usize = 102_400;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
/// `_meta` of a client of the modern era.
const MODERN_META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"call_cost","version":"1"}}"#;

/// How a caller talks to the server under measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// `POST /meta_call`, which the relay has too.
    Meta,
    /// MCP over HTTP in a legacy session.
    Legacy,
    /// MCP over HTTP with requests that describe themselves.
    Modern,
    /// MCP over standard input and output, in the legacy era.
    Stdio,
}

impl Transport {
    pub(crate) const ALL: [Self; 4] = [Self::Meta, Self::Legacy, Self::Modern, Self::Stdio];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta_call",
            Self::Legacy => "mcp http legacy",
            Self::Modern => "mcp http modern",
            Self::Stdio => "mcp stdio",
        }
    }
}

/// The size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Large,
}

impl Size {
    pub(crate) const ALL: [Self; 2] = [Self::Small, Self::Large];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Small => "100 B",
            Self::Large => "100 KiB",
        }
    }

    /// Calls in one round: both sizes take about as long.
    pub(crate) const fn calls(self) -> usize {
        match self {
            Self::Small => 100_000,
            Self::Large => 16_000,
        }
    }

    /// Fails if `answer` is not the result of the tool.
    pub(crate) fn check(self, answer: &[u8]) -> io::Result<()> {
        let is_right = match self {
            Self::Small => answer
                .windows(SMALL_RESULT.len())
                .any(|part| part == SMALL_RESULT),
            Self::Large => answer.len() >= LARGE_RESULT_BYTES,
        };
        match is_right {
            true => Ok(()),
            false => Err(io::Error::other(String::from_utf8_lossy(answer))),
        }
    }

    /// The path of the tool and its arguments, as `meta_call` takes them.
    fn body(self) -> String {
        match self {
            Self::Small => SMALL.to_owned(),
            Self::Large => LARGE.to_owned(),
        }
    }
}

/// The message that begins a legacy session.
pub(crate) fn initialize() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"call_cost","version":"1"}}}}}}"#
    )
}

/// The message of a call in the mode `meta`.
pub(crate) fn message(transport: Transport, size: Size, id: usize) -> String {
    let meta = match transport {
        Transport::Modern => MODERN_META,
        _ => "",
    };
    let arguments = size.body();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"meta_call","arguments":{arguments}{meta}}}}}"#
    )
}

/// The HTTP request of a call. `session` is the id of the legacy session.
pub(crate) fn request(address: &str, transport: Transport, size: Size, session: &str) -> Vec<u8> {
    let accept = "Accept: application/json, text/event-stream\r\n";
    let (route, headers) = match transport {
        Transport::Meta => return post(address, "/meta_call", "", &size.body()),
        Transport::Modern => (
            "/mcp/meta",
            format!(
                "{accept}MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: meta_call\r\n"
            ),
        ),
        Transport::Legacy | Transport::Stdio => (
            "/mcp/meta",
            format!("{accept}MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n"),
        ),
    };
    post(address, route, &headers, &message(transport, size, 1))
}

/// The HTTP request that begins a legacy session.
pub(crate) fn begin(address: &str) -> Vec<u8> {
    let accept = "Accept: application/json, text/event-stream\r\n";
    post(address, "/mcp/meta", accept, &initialize())
}

fn post(address: &str, route: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {route} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
