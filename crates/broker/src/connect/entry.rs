//! The entry of the broker for a client: a command for stdio or a URL, in the members that the client
//! reads.

use std::path::Path;

use axum::http::Uri;
use broker_model::redact::Secret;
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

/// The command that starts the broker over stdio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command<'a> {
    /// The absolute path of the program.
    pub(super) program: &'a Path,
    /// Its first arguments.
    pub(super) words: &'a [&'a str],
    /// The absolute path of the config, if there is one.
    pub(super) config: Option<&'a Path>,
    /// Variables that the client sets for it, by names with their values.
    pub(super) variables: &'a [(String, Secret)],
}

/// The entry over stdio.
pub(super) fn stdio(
    client: Client,
    name: &str,
    command: Command<'_>,
    view: View<'_>,
) -> Result<EntryValue, ConnectError> {
    let Command {
        program,
        words,
        config,
        variables,
    } = command;
    let mut args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    if let Some(config) = config {
        args.push(utf8(config)?);
    }
    if let Some(under) = view.under {
        args.extend(["--under".to_owned(), checked_path(under)?.to_owned()]);
    }
    if let Some(mode) = view.mode {
        args.extend(["--mcp-mode".to_owned(), mode.name().to_owned()]);
    }
    let program = utf8(program)?;
    let members = match client {
        Client::OpenCode => {
            args.insert(0, program);
            vec![
                ("type", EntryValue::text("local")),
                ("command", EntryValue::List(args)),
                ("enabled", EntryValue::Flag(true)),
            ]
        }
        Client::Goose => {
            let mut members = goose("stdio", name);
            members.push(("cmd", EntryValue::Text(program)));
            members.push(("args", EntryValue::List(args)));
            members
        }
        _ => {
            let kind = match client {
                Client::ClaudeCode | Client::VsCode => Some(("type", EntryValue::text("stdio"))),
                Client::Copilot => Some(("type", EntryValue::text("local"))),
                Client::Continue => Some(("name", EntryValue::text(name))),
                _ => None,
            };
            let mut members: Vec<_> = kind.into_iter().collect();
            members.push(("command", EntryValue::Text(program)));
            members.push(("args", EntryValue::List(args)));
            members.extend(all_tools(client));
            members
        }
    };
    let entry = EntryValue::Members(members);
    for mark in client.reference_marks() {
        if let Some(text) = entry.strings().into_iter().find(|text| text.contains(mark)) {
            return usage(format!(
                "{} would replace `{mark}` in `{text}` by the value of a variable; use a path without `{mark}`",
                client.title()
            ));
        }
    }
    Ok(with_variables(client, entry, variables))
}

/// Adds the variables that the client sets for the broker. Their values are as another entry of the file had them.
fn with_variables(client: Client, entry: EntryValue, variables: &[(String, Secret)]) -> EntryValue {
    let EntryValue::Members(mut members) = entry else {
        return entry;
    };
    let key = match client {
        Client::Goose => "envs",
        Client::OpenCode => "environment",
        _ => "env",
    };
    if !variables.is_empty() {
        let texts = variables.iter();
        let texts = texts.map(|(name, value)| (name.clone(), value.expose().to_owned()));
        members.push((key, EntryValue::Texts(texts.collect())));
    }
    EntryValue::Members(members)
}

/// The first members of an extension of goose.
fn goose(kind: &'static str, name: &str) -> Vec<(&'static str, EntryValue)> {
    vec![
        ("enabled", EntryValue::Flag(true)),
        ("type", EntryValue::text(kind)),
        ("name", EntryValue::text(name)),
        ("description", EntryValue::text("The tools of mcp-broker")),
    ]
}

/// The member by which Copilot CLI offers the tools of a server.
fn all_tools(client: Client) -> Option<(&'static str, EntryValue)> {
    let all = || ("tools", EntryValue::List(vec!["*".to_owned()]));
    (client == Client::Copilot).then(all)
}

/// The entry over HTTP.
pub(super) fn http(
    client: Client,
    name: &str,
    url: &str,
    credential: Credential<'_>,
    view: View<'_>,
) -> Result<EntryValue, ConnectError> {
    if client == Client::Claude {
        return usage(
            "the file of Claude Desktop takes no URL; leave out `--http`, so that Claude Desktop starts the broker over stdio, or add the URL in Settings > Connectors",
        );
    }
    let url = endpoint(url, view)?;
    if let Some(mark) = client
        .reference_marks()
        .iter()
        .find(|mark| url.contains(**mark))
    {
        return usage(format!(
            "{} would replace `{mark}` in the URL by the value of a variable; write its first character in percent-encoding",
            client.title()
        ));
    }
    let mut members = match client {
        Client::ClaudeCode | Client::VsCode | Client::Json | Client::Copilot => {
            vec![("type", EntryValue::text("http"))]
        }
        Client::Cline => vec![("type", EntryValue::text("streamableHttp"))],
        Client::Roo => vec![("type", EntryValue::text("streamable-http"))],
        Client::OpenCode => vec![("type", EntryValue::text("remote"))],
        Client::Continue => vec![
            ("name", EntryValue::text(name)),
            ("type", EntryValue::text("streamable-http")),
        ],
        Client::Goose => goose("streamable_http", name),
        _ => Vec::new(),
    };
    let key = match client {
        Client::Gemini => "httpUrl",
        Client::Windsurf => "serverUrl",
        Client::Goose => "uri",
        _ => "url",
    };
    members.push((key, EntryValue::Text(url)));
    if client == Client::OpenCode {
        members.push(("enabled", EntryValue::Flag(true)));
    }
    members.extend(authorization(client, credential)?);
    members.extend(all_tools(client));
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
                .reference_marks()
                .iter()
                .any(|mark| secret.contains(mark))
            {
                return usage(format!(
                    "the secret contains a text, which {} would replace by the value of a variable; leave out `--with-secret`",
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
    let headers = EntryValue::Members(vec![header]);
    Ok(Some(match client {
        Client::Continue => ("requestOptions", EntryValue::Members(vec![(name, headers)])),
        _ => (name, headers),
    }))
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
mod tests;
