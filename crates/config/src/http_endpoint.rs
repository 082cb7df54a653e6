//! The keys of a source with a URL: `url`, `headers`, `auth`, `ca_file`, `client_cert`, `client_key` and
//! `allow_plain_http`.

use std::collections::{BTreeMap, BTreeSet};

use super::command;
use super::confidential::{is_secret_key, is_secret_value, secret_parameter};
use super::endpoint::{Auth, ClientCertificate, ClientCredentials, HttpEndpoint, ProcessEndpoint};
use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::template::{Part, Template};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::text::shown_line;
use broker_model::url::{HttpUrl, UrlError};

/// Headers that the broker or its HTTP library sets itself, in lower case.
const OWN_HEADERS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers of the protocol begin with this, in lower case.
const PROTOCOL_PREFIX: &str = "mcp-";
/// The key of a URL, and keys that need one.
pub(super) const KEYS: [&str; 7] = [
    "url",
    "headers",
    "auth",
    "ca_file",
    "client_cert",
    "client_key",
    "allow_plain_http",
];

/// Reads the endpoint of a source with a URL at `url`. `process` has the variables and the folder of the source; a
/// command for the token gets them.
pub(super) fn read(
    findings: &mut Findings<'_>,
    source: &Cursor<'_>,
    url: &Cursor<'_>,
    process: ProcessEndpoint,
) -> Option<HttpEndpoint> {
    let headers = source.get("headers");
    let headers = headers.map_or_else(BTreeMap::new, |at| read_headers(findings, &at));
    let auth = source.get("auth");
    let auth = auth.map(|at| read_auth(findings, &at, process));
    let ca_file = source.get("ca_file");
    let allow_plain_http = source.get("allow_plain_http");
    let endpoint = HttpEndpoint {
        url: read_url(findings, url)?,
        headers,
        // A refused value was reported.
        auth: auth.flatten(),
        ca_file: ca_file.and_then(|at| fields::template(findings, &at)),
        client_certificate: client_certificate(findings, source).map(Box::new),
        allow_plain_http: allow_plain_http
            .and_then(|at| fields::boolean(findings, &at))
            .unwrap_or_default(),
    };
    check_process_keys(findings, source, &endpoint);
    if endpoint.auth.is_some()
        && let Some(name) = endpoint.headers.keys().find(|name| is_authorization(name))
        && let Some(headers) = source.get("headers")
        && let Some(at) = headers.get(name)
    {
        let message = format!("`auth` sets the header `{name}`, and `headers` has it too");
        let diagnostic = Diagnostic::error(Code::ConfigSourceKind, message);
        findings.add(&at, diagnostic.help("remove one of the two"));
    }
    let problem = written_url(&endpoint.url).and_then(|written| plain_http(&endpoint, &written));
    if let Some(problem) = problem {
        findings.add(url, problem);
    }
    if let Some(Auth::ClientCredentials(grant)) = &endpoint.auth
        && let Some(written) = written_url(&grant.token_url)
        && let Some(problem) = plain_http_token(&endpoint, &written)
        && let Some(auth) = source.get("auth")
        && let Some(grant) = auth.get("client_credentials")
        && let Some(at) = grant.get("token_url")
    {
        findings.add(&at, problem);
    }
    Some(endpoint)
}

/// Reads `client_cert` and `client_key`, which need each other.
fn client_certificate(
    findings: &mut Findings<'_>,
    source: &Cursor<'_>,
) -> Option<ClientCertificate> {
    let (certificate, key) = (source.get("client_cert"), source.get("client_key"));
    for (one, other, name, missing) in [
        (&certificate, &key, "client_cert", "client_key"),
        (&key, &certificate, "client_key", "client_cert"),
    ] {
        if let (Some(at), None) = (one, other) {
            let message = format!("`{name}` needs `{missing}`");
            let diagnostic = Diagnostic::error(Code::ConfigSourceKind, message);
            findings.add_key(at, diagnostic.help("name both files, or none"));
        }
    }
    let certificate = certificate.and_then(|at| fields::template(findings, &at));
    let key = key.and_then(|at| fields::template(findings, &at));
    Some(ClientCertificate {
        certificate: certificate?,
        key: key?,
    })
}

/// Refuses keys of a process in a source without a process.
fn check_process_keys(findings: &mut Findings<'_>, cursor: &Cursor<'_>, http: &HttpEndpoint) {
    if matches!(http.auth, Some(Auth::TokenCommand(_))) {
        return;
    }
    for key in ["env", "inherit_env", "cwd"] {
        if let Some(at) = cursor.get(key) {
            let message = format!("`{key}` is for a process, and the source starts none");
            let diagnostic = Diagnostic::error(Code::ConfigSourceKind, message);
            findings.add_key(
                &at,
                diagnostic.help(
                    "remove it; a server over HTTP gets its secrets in `headers` or with `auth`",
                ),
            );
        }
    }
}

/// The error for a secret that would be sent unencrypted to another machine; `url` is the expanded URL of the
/// server.
pub fn plain_http(endpoint: &HttpEndpoint, url: &HttpUrl) -> Option<Diagnostic> {
    unencrypted(endpoint, url, || endpoint.secret())
}

/// The error for a client secret that would be sent unencrypted to another machine; `token_url` is the expanded
/// URL of the token endpoint.
pub fn plain_http_token(endpoint: &HttpEndpoint, token_url: &HttpUrl) -> Option<Diagnostic> {
    unencrypted(endpoint, token_url, || Some("the client secret".to_owned()))
}

fn unencrypted(
    endpoint: &HttpEndpoint,
    url: &HttpUrl,
    secret: impl FnOnce() -> Option<String>,
) -> Option<Diagnostic> {
    let origin = url.origin();
    if endpoint.allow_plain_http || origin.is_tls() || origin.is_loopback() {
        return None;
    }
    let secret = secret()?;
    let message = format!("{secret} would be sent over `http`, without encryption, to `{origin}`");
    let diagnostic = Diagnostic::error(Code::PlainHttp, message);
    Some(
        diagnostic.help(
            "use `https`; or set `\"allow_plain_http\": true` if the network between is yours",
        ),
    )
}

impl HttpEndpoint {
    /// A secret that each request carries, for messages.
    fn secret(&self) -> Option<String> {
        if let Some(auth) = &self.auth {
            return Some(format!("the token of `auth.{}`", auth.key()));
        }
        let is_secret = |name: &str, value: &Template| {
            is_secret_key(name)
                || value.variables().next().is_some()
                || is_secret_value(name, value.raw())
        };
        let mut headers = self.headers.iter();
        let header = headers
            .find(|(name, value)| is_secret(name, value))
            .map(|(name, _)| format!("the value of the header `{}`", shown_line(name, 80)));
        header.or_else(|| {
            let name = secret_parameter(self.url.raw())?;
            let name = shown_line(name, 80);
            Some(format!("the value of `{name}` in the query of the URL"))
        })
    }
}

/// A string with variables that is the URL of a server. What its variables stand for is checked when they are
/// expanded.
fn read_url(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Template> {
    let template = fields::template(findings, cursor)?;
    if let Some(Err(error)) = checked_url(&template) {
        findings.add(cursor, invalid_url(error));
        return None;
    }
    Some(template)
}

/// The error for a text that is not a URL.
pub fn invalid_url(error: UrlError) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::UrlInvalid, format!("the URL is refused: {error}"));
    match error {
        UrlError::UserInfo => diagnostic.help("send the secret in `headers` or with `auth`"),
        UrlError::Fragment => diagnostic.help("remove the fragment"),
        _ => diagnostic.help("write `https://host[:port]/path`"),
    }
}

/// Returns the URL if its text decides it: each variable is read as a digit, since a digit is valid in a host, a port
/// and a path. `None` if the text begins with a variable.
fn checked_url(template: &Template) -> Option<Result<HttpUrl, UrlError>> {
    if !matches!(template.parts().first(), Some(Part::Literal(_))) {
        return None;
    }
    let text: String = template
        .parts()
        .iter()
        .map(|part| match part {
            Part::Literal(text) => text.as_str(),
            Part::Variable { .. } => "1",
        })
        .collect();
    Some(HttpUrl::parse(&text))
}

/// The URL of a template without variables.
fn written_url(template: &Template) -> Option<HttpUrl> {
    let is_complete = template.variables().next().is_none();
    is_complete.then(|| HttpUrl::parse(template.raw()).ok())?
}

fn read_headers(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> BTreeMap<String, Template> {
    let headers = fields::templates(findings, cursor, "header name", is_header_name);
    let mut seen = BTreeSet::new();
    for name in headers.keys() {
        let lower = name.to_ascii_lowercase();
        let message = if is_own_header(name) {
            format!(
                "the broker sets the header `{}` itself",
                shown_line(name, 80)
            )
        } else if !seen.insert(lower) {
            format!(
                "`{}` is there twice: the case of a header name has no meaning",
                shown_line(name, 80)
            )
        } else {
            continue;
        };
        if let Some(at) = cursor.get(name) {
            let diagnostic = Diagnostic::error(Code::ConfigRange, message);
            findings.add_key(&at, diagnostic.help("remove it"));
        }
    }
    headers
}

/// Whether a text can be the name of a header.
pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether the broker sets the header of this name itself, so that a config may not.
pub fn is_own_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with(PROTOCOL_PREFIX)
}

/// Whether `auth` of an entry of another client has a key of this config. Other clients use this key for other
/// settings.
pub(super) fn is_own_auth(auth: &Cursor<'_>) -> bool {
    Level::Auth.keys().iter().any(|key| auth.get(key).is_some())
}

fn is_authorization(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

fn read_auth(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    mut process: ProcessEndpoint,
) -> Option<Auth> {
    let members = fields::object(findings, cursor, "an object with one key")?;
    let mut found = Vec::new();
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "token_file" => found.push(fields::template(findings, &value).map(Auth::TokenFile)),
            "token_command" => {
                let line = command::read(findings, &value, None);
                found.push(line.map(|line| {
                    let places = command::places(&line, &value, false).into_iter();
                    let place =
                        |place: String| place.replacen("/command", "/auth/token_command", 1);
                    process.places = places.map(place).collect();
                    process.command = line;
                    Auth::TokenCommand(process.clone())
                }));
            }
            "client_credentials" => {
                found.push(client_credentials(findings, &value).map(Auth::ClientCredentials));
            }
            unknown => keys::unknown(findings, &value, unknown, Level::Auth),
        }
    }
    if found.len() != 1 {
        let message =
            "`auth` needs exactly one of `token_file`, `token_command` and `client_credentials`";
        findings.add(cursor, Diagnostic::error(Code::ConfigSourceKind, message));
        return None;
    }
    found.pop().flatten()
}

fn client_credentials(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
) -> Option<ClientCredentials> {
    let members = fields::object(
        findings,
        cursor,
        "an object with `token_url`, `client_id` and `client_secret`",
    )?;
    let mut values = BTreeMap::new();
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "token_url" => {
                values.insert("token_url", read_url(findings, &value)?);
            }
            key @ ("client_id" | "client_secret" | "scope" | "resource") => {
                let name = Level::ClientCredentials
                    .keys()
                    .iter()
                    .find(|known| **known == key);
                if let (Some(name), Some(text)) = (name, fields::template(findings, &value)) {
                    values.insert(name, text);
                }
            }
            unknown => keys::unknown(findings, &value, unknown, Level::ClientCredentials),
        }
    }
    let mut required = |key: &'static str| {
        let value = values.remove(key);
        if value.is_none() && cursor.get(key).is_none() {
            let message = format!("`client_credentials` needs `{key}`");
            findings.add(cursor, Diagnostic::error(Code::ConfigSourceKind, message));
        }
        value
    };
    let (token_url, client_id) = (required("token_url"), required("client_id"));
    let client_secret = required("client_secret");
    Some(ClientCredentials {
        token_url: token_url?,
        client_id: client_id?,
        client_secret: client_secret?,
        scope: values.remove("scope"),
        resource: values.remove("resource"),
    })
}
