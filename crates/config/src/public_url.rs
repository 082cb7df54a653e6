//! `public_url`: the URL of the broker for callers, and the resource identifier of RFC 9728.

use super::fields;
use super::findings::{Cursor, Findings};
use super::http_endpoint::invalid_url;
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::url::HttpUrl;

/// The routes of MCP clients that a URL may end with. A route is before the routes that are ends of it.
const MCP_ROUTES: [&str; 11] = [
    "/mcp/direct/openai",
    "/mcp/direct/gemini",
    "/mcp/direct/anthropic",
    "/mcp/meta",
    "/mcp/direct",
    "/mcp/search",
    "/v1/ws/mcp",
    "/v1/mcp",
    "/ws/mcp",
    "/sse",
    "/mcp",
];

/// The URL of the broker: `https`, or `http` on loopback, without user information, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    text: String,
    url: HttpUrl,
}

impl PublicUrl {
    /// The URL as written: identifiers are compared byte by byte.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the path before the routes of the broker: the path of the URL without the route of an MCP client and
    /// without a slash at its end. Empty at the root of a host.
    pub fn base_path(&self) -> &str {
        let path = self.url.path();
        let path = path.trim_end_matches('/');
        MCP_ROUTES
            .iter()
            .find_map(|route| path.strip_suffix(route))
            .unwrap_or(path)
    }

    /// The normalised URL.
    pub const fn url(&self) -> &HttpUrl {
        &self.url
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<PublicUrl> {
    let text = fields::string(findings, cursor)?;
    let url = protected(findings, cursor, text)?;
    if !without_query(findings, cursor, text) {
        return None;
    }
    Some(PublicUrl {
        text: text.to_owned(),
        url,
    })
}

/// A URL that is `https`, or `http` on loopback.
pub(super) fn protected(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    text: &str,
) -> Option<HttpUrl> {
    let url = match HttpUrl::parse(text) {
        Ok(url) => url,
        Err(error) => {
            let help = "write `https://host[:port]/path`";
            findings.add(cursor, invalid_url(error).help(help));
            return None;
        }
    };
    if url.origin().is_tls() || url.origin().is_loopback() {
        return Some(url);
    }
    let message = "the URL is refused: it is `http`, and its host is not a loopback address";
    let diagnostic = Diagnostic::error(Code::UrlInvalid, message);
    findings.add(cursor, diagnostic.help("use `https`"));
    None
}

/// Whether a URL has no query; one is reported.
pub(super) fn without_query(findings: &mut Findings<'_>, cursor: &Cursor<'_>, text: &str) -> bool {
    if !text.contains('?') {
        return true;
    }
    let message = "the URL is refused: it has a query (`?…`), and it is an identifier";
    let diagnostic = Diagnostic::error(Code::UrlInvalid, message);
    findings.add(cursor, diagnostic.help("remove the query"));
    false
}
