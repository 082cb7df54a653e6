//! The entry of the broker for a client: a command for stdio or a URL, in the members that the client
//! reads.

use std::path::Path;

use axum::http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::client::Client;
use super::error::{ConnectError, usage};
use super::value::EntryValue;
use crate::cli::ModeOption;

/// The characters of a path that a query needs encoded.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
/// The maximum length of a URL and of a path below which tools are shown.
const MAX_BYTES: usize = 2048;
/// The maximum length of the name of a variable.
const MAX_VARIABLE_BYTES: usize = 128;
/// The path of the MCP endpoint over HTTP.
const ENDPOINT: &str = "/mcp";

/// The view of the tree for this client; by default that of the broker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View<'a> {
    /// The path below which tools are shown.
    pub(super) under: Option<&'a str>,
    /// How many tools the client is given.
    pub(super) mode: Option<ModeOption>,
}

/// How the client presents the secret of the broker.
#[derive(Clone, Copy, Debug)]
pub(super) enum Credential<'a> {
    /// The broker has no secret.
    None,
    /// By a reference to this variable.
    Variable(&'a str),
    /// In clear.
    Clear(&'a str),
}

/// The entry over stdio: the absolute path of the program, and of the config if there is one.
pub(super) fn stdio(
    client: Client,
    program: &Path,
    config: Option<&Path>,
    view: View<'_>,
) -> Result<EntryValue, ConnectError> {
    let mut args = vec!["stdio".to_owned()];
    if let Some(config) = config {
        args.push(utf8(config)?);
    }
    if let Some(under) = view.under {
        args.extend(["--under".to_owned(), checked_path(under)?.to_owned()]);
    }
    if let Some(mode) = view.mode {
        args.extend(["--mcp-mode".to_owned(), mode.name().to_owned()]);
    }
    let mut members = Vec::new();
    if matches!(client, Client::ClaudeCode | Client::VsCode) {
        members.push(("type", EntryValue::text("stdio")));
    }
    members.push(("command", EntryValue::text(utf8(program)?)));
    members.push(("args", EntryValue::List(args)));
    let entry = EntryValue::Members(members);
    if let Some(mark) = client.reference_mark()
        && let Some(text) = entry.strings().into_iter().find(|text| text.contains(mark))
    {
        return usage(format!(
            "{} would replace `{mark}` in `{text}` by the value of a variable; use a path without `{mark}`",
            client.title()
        ));
    }
    Ok(entry)
}

/// The entry over HTTP.
pub(super) fn http(
    client: Client,
    url: &str,
    credential: Credential<'_>,
    view: View<'_>,
) -> Result<EntryValue, ConnectError> {
    if client == Client::Claude {
        return usage(
            "the file of Claude Desktop takes no URL; leave out `--http`, so that Claude Desktop starts the broker over stdio, or add the URL in Settings > Connectors",
        );
    }
    let url = EntryValue::Text(endpoint(url, view)?);
    if let Some(mark) = client.reference_mark()
        && url.strings().iter().any(|text| text.contains(mark))
    {
        return usage(format!(
            "{} would replace `{mark}` in the URL by the value of a variable; write `$` as `%24`",
            client.title()
        ));
    }
    let mut members = Vec::new();
    match client {
        Client::ClaudeCode | Client::VsCode | Client::Json => {
            members.push(("type", EntryValue::text("http")));
        }
        Client::Cline => members.push(("type", EntryValue::text("streamableHttp"))),
        _ => {}
    }
    let name = match client {
        Client::Gemini => "httpUrl",
        Client::Windsurf => "serverUrl",
        _ => "url",
    };
    members.push((name, url));
    members.extend(authorization(client, credential)?);
    Ok(EntryValue::Members(members))
}

/// The member that makes the client present the secret.
fn authorization(
    client: Client,
    credential: Credential<'_>,
) -> Result<Option<(&'static str, EntryValue)>, ConnectError> {
    let bearer = match credential {
        Credential::None => return Ok(None),
        Credential::Variable(name) => {
            let name = checked_variable(name)?;
            if client == Client::Codex {
                return Ok(Some(("bearer_token_env_var", EntryValue::text(name))));
            }
            let Some(reference) = client.reference(name) else {
                return usage(format!(
                    "{} has no reference to a variable in a header; with `--with-secret` the secret is read from `{name}` and written in clear",
                    client.title()
                ));
            };
            reference
        }
        Credential::Clear(secret) => {
            if client
                .reference_mark()
                .is_some_and(|mark| secret.contains(mark))
            {
                return usage(format!(
                    "the secret contains `$`, which {} would replace by the value of a variable; leave out `--with-secret`",
                    client.title()
                ));
            }
            secret.to_owned()
        }
    };
    let name = match client {
        Client::Codex => "http_headers",
        _ => "headers",
    };
    let header = (
        "Authorization",
        EntryValue::Text(format!("Bearer {bearer}")),
    );
    Ok(Some((name, EntryValue::Members(vec![header]))))
}

/// The URL with the mode in its path and the view in its query.
fn endpoint(url: &str, view: View<'_>) -> Result<String, ConnectError> {
    const EXAMPLE: &str = "for example http://127.0.0.1:8100/mcp";
    // The URL is not repeated before its user part is known to be absent: it may contain a password.
    if url.len() > MAX_BYTES {
        return usage(format!("the URL has more than {MAX_BYTES} bytes"));
    }
    if url.contains('@') {
        return usage(
            "the URL contains `@`; a user and a password do not belong into it, `--secret` makes the client present the secret of the broker",
        );
    }
    // Messages have the part before the query, which may contain a password.
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (url, None),
    };
    let Ok(uri) = url.parse::<Uri>() else {
        return usage(format!("`{base}` is not a URL, {EXAMPLE}"));
    };
    let host = uri.host().unwrap_or_default();
    if !matches!(uri.scheme_str(), Some("http" | "https")) || host.is_empty() {
        return usage(format!("`{base}` is not an http or https URL, {EXAMPLE}"));
    }
    if url.contains('#') {
        return usage(format!("`{base}` has a fragment; leave it out"));
    }
    if uri.path() == "/" {
        return usage(format!(
            "`{base}` has no path; the endpoint of the broker ends with `{ENDPOINT}`, {EXAMPLE}"
        ));
    }
    let mut out = base.to_owned();
    if let Some(mode) = view.mode {
        if !base.ends_with(ENDPOINT) {
            return usage(format!(
                "`--mode` adds the mode to a path that ends with `{ENDPOINT}`, and `{base}` has another one"
            ));
        }
        out.push('/');
        out.push_str(mode.name());
    }
    if let Some(query) = query {
        out.push('?');
        out.push_str(query);
    }
    if let Some(under) = view.under {
        out.push(if query.is_some() { '&' } else { '?' });
        let under = utf8_percent_encode(checked_path(under)?, IN_QUERY);
        out.push_str(&format!("under={under}"));
    }
    Ok(out)
}

/// A path of the tree.
fn checked_path(path: &str) -> Result<&str, ConnectError> {
    if !path.starts_with('/') || path.len() > MAX_BYTES || path.chars().any(char::is_control) {
        return usage(format!(
            "`--under` takes a path of the tree, which begins with `/` and has at most {MAX_BYTES} bytes, for example `/files`"
        ));
    }
    Ok(path)
}

/// The name of a variable that every client takes.
pub(super) fn checked_variable(name: &str) -> Result<&str, ConnectError> {
    let is_name = !name.is_empty()
        && name.len() <= MAX_VARIABLE_BYTES
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_name {
        return Ok(name);
    }
    usage(format!(
        "`--secret-env` takes the name of a variable: letters, digits and `_`, at most {MAX_VARIABLE_BYTES}"
    ))
}

fn utf8(path: &Path) -> Result<String, ConnectError> {
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => usage(format!(
            "`{}` is not UTF-8, and the file of a client cannot contain it; move or rename it",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    const URL: &str = "http://127.0.0.1:8100/mcp";

    fn http_line(client: Client, credential: Credential<'_>) -> Result<String, String> {
        let made = http(client, URL, credential, View::default());
        made.map(|entry| entry.json_line())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn stdio_entry_of_each_client_has_command_and_arguments() {
        let rest = r#""command": "/b/mcp-broker", "args": ["stdio", "/c.json"]}"#;
        for client in Client::value_variants() {
            let made = stdio(
                *client,
                Path::new("/b/mcp-broker"),
                Some(Path::new("/c.json")),
                View::default(),
            );
            let begin = match client {
                Client::ClaudeCode | Client::VsCode => r#"{"type": "stdio", "#,
                _ => "{",
            };
            assert_eq!(made.unwrap().json_line(), format!("{begin}{rest}"));
        }
        let view = View {
            under: Some("/files/x y"),
            mode: Some(ModeOption::Direct),
        };
        let made = stdio(Client::Zed, Path::new("/b"), None, view).unwrap();
        assert_eq!(
            made.json_line(),
            r#"{"command": "/b", "args": ["stdio", "--under", "/files/x y", "--mcp-mode", "direct"]}"#
        );
    }

    #[test]
    fn http_entry_of_each_client_refers_to_the_variable() {
        let found = |client| http_line(client, Credential::Variable("V")).unwrap();
        for (client, expected) in [
            (
                Client::ClaudeCode,
                r#"{"type": "http", "url": "URL", "headers": {"Authorization": "Bearer ${V}"}}"#,
            ),
            (
                Client::Cursor,
                r#"{"url": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
            ),
            (
                Client::VsCode,
                r#"{"type": "http", "url": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
            ),
            (
                Client::Codex,
                r#"{"url": "URL", "bearer_token_env_var": "V"}"#,
            ),
            (
                Client::Gemini,
                r#"{"httpUrl": "URL", "headers": {"Authorization": "Bearer ${V}"}}"#,
            ),
            (
                Client::Windsurf,
                r#"{"serverUrl": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
            ),
            (
                Client::Cline,
                r#"{"type": "streamableHttp", "url": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
            ),
        ] {
            assert_eq!(found(client), expected.replace("URL", URL));
        }
        for client in [Client::Zed, Client::Json] {
            let error = http_line(client, Credential::Variable("V")).unwrap_err();
            assert!(error.contains("`--with-secret`"), "{error}");
        }
        let error = http_line(Client::Claude, Credential::None).unwrap_err();
        assert!(error.contains("leave out `--http`"), "{error}");
    }

    #[test]
    fn http_entry_has_no_header_without_a_secret_and_the_secret_in_clear_if_asked() {
        let found = |client, credential| http_line(client, credential).unwrap();
        assert_eq!(
            found(Client::Zed, Credential::None),
            format!(r#"{{"url": "{URL}"}}"#)
        );
        assert_eq!(
            found(Client::Zed, Credential::Clear("s")),
            format!(r#"{{"url": "{URL}", "headers": {{"Authorization": "Bearer s"}}}}"#)
        );
        assert_eq!(
            found(Client::Codex, Credential::Clear("s")),
            format!(r#"{{"url": "{URL}", "http_headers": {{"Authorization": "Bearer s"}}}}"#)
        );
        let error = http_line(Client::Gemini, Credential::Clear("s3cret$")).unwrap_err();
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn url_gets_mode_and_path_or_is_refused() {
        let view = |under, mode| View { under, mode };
        for (url, view, expected) in [
            (URL, View::default(), URL),
            (
                URL,
                view(Some("/a b/ü"), Some(ModeOption::Meta)),
                "http://127.0.0.1:8100/mcp/meta?under=/a%20b/%C3%BC",
            ),
            (
                "https://h/x/mcp?k=1",
                view(Some("/a&b"), Some(ModeOption::Direct)),
                "https://h/x/mcp/direct?k=1&under=/a%26b",
            ),
        ] {
            assert_eq!(endpoint(url, view).unwrap(), expected);
        }
        let long = format!("http://h/{}", "x".repeat(MAX_BYTES));
        for url in [
            "",
            "/mcp",
            "127.0.0.1:8100",
            "ftp://h/mcp",
            "http:///mcp",
            "http://h",
            "http://h/",
            "http://h/mcp#x",
            "http://h/a b",
            &long,
        ] {
            assert!(endpoint(url, View::default()).is_err(), "{url}");
        }
        for url in [
            "http://u:s3cret@h/mcp",
            "http://h/?s3cret",
            "http://h/mcp?s3cret#x",
        ] {
            let error = endpoint(url, View::default()).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!(endpoint("http://h/mcp/meta", view(None, Some(ModeOption::Meta))).is_err());
        assert!(endpoint(URL, view(Some("a"), None)).is_err());
        assert!(endpoint(URL, view(Some("/a\n"), None)).is_err());
    }

    #[test]
    fn text_that_the_client_would_expand_is_refused() {
        let made = |client, program| stdio(client, Path::new(program), None, View::default());
        assert!(made(Client::Cursor, "/a/${b}").is_err());
        assert!(made(Client::Gemini, "/a/$b").is_err());
        assert!(made(Client::Cursor, "/a/$b").is_ok());
        assert!(made(Client::Zed, "/a/${b}").is_ok());
        for name in ["", "1A", "A-B", "A}", "ä"] {
            assert!(checked_variable(name).is_err(), "{name}");
        }
        assert_eq!(checked_variable("_A1").unwrap(), "_A1");
    }
}
