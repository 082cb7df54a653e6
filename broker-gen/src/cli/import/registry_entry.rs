//! The entry of a server in a registry of MCP (`server.json`), as the servers of a client's file. Versions are exact, and
//! the program is one that this file names: the entry is written by a stranger.

use broker_config::client_file::{is_variable_name, variable_for};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::{Map, Value, json};

use super::foreign::{Foreign, literal, text};

/// Maximum characters of a text of the entry in a message.
const MAX_SHOWN: usize = 80;

/// Whether a value is the entry of a server, or the answer of a registry with one.
pub(super) fn is_entry(value: &Value) -> bool {
    let entry = entry_of(value);
    let has_list = |key| entry.get(key).is_some_and(Value::is_array);
    entry.get("name").is_some_and(Value::is_string) && (has_list("packages") || has_list("remotes"))
}

/// The entry in the answer of a registry, which has it as `server`.
fn entry_of(value: &Value) -> &Value {
    value
        .get("server")
        .filter(|server| server.is_object())
        .unwrap_or(value)
}

/// The name and the version of an entry.
pub(super) fn identity(value: &Value) -> (String, String) {
    let entry = entry_of(value);
    let version = entry
        .get("version")
        .or_else(|| entry.pointer("/version_detail/version"));
    (
        text(entry, &["name"]).unwrap_or_default().to_owned(),
        version
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
    )
}

/// Converts an entry: its first package that can be started, else its first remote.
pub(super) fn convert(file: &str, value: &Value) -> Result<Foreign, Vec<Diagnostic>> {
    let entry = entry_of(value);
    let refused = |message: String| {
        let problem = Diagnostic::error(DiagnosticCode::ImportServers, message).in_file(file);
        vec![problem.help("choose another version of the server, or write the source by hand")]
    };
    let name = text(entry, &["name"]).unwrap_or_default();
    let short = name.rsplit('/').next().unwrap_or(name);
    let list = |key: &str| {
        let items = entry.get(key).and_then(Value::as_array);
        items.map(Vec::as_slice).unwrap_or_default()
    };
    let mut reasons = Vec::new();
    let mut found = None;
    for (kind, one) in list("packages")
        .iter()
        .map(|one| ("package", one))
        .chain(list("remotes").iter().map(|one| ("remote", one)))
    {
        let shown = text(one, &["identifier", "name", "url"]).unwrap_or_default();
        let shown = shown_line(shown, MAX_SHOWN);
        if found.is_some() {
            reasons.push(format!("left out: {kind} `{shown}`: one is enough"));
            continue;
        }
        let server = match kind {
            "package" => package(short, one),
            _ => remote(short, one),
        };
        match server {
            Ok(server) => found = Some(server),
            Err(Refused::LeftOut(reason)) => {
                reasons.push(format!("left out: {kind} `{shown}`: {reason}"));
            }
            Err(Refused::Unsafe(reason)) => {
                return Err(refused(format!("{kind} `{shown}`: {reason}")));
            }
        }
    }
    let Some((mut server, origin)) = found else {
        let reasons = match reasons.is_empty() {
            true => "it has neither packages nor remotes".to_owned(),
            false => reasons.join("; "),
        };
        return Err(refused(format!("the entry has no server: {reasons}")));
    };
    // The digest has no other place in a config.
    let description = text(entry, &["description"]).unwrap_or_default();
    let description = format!("{} ({origin})", shown_line(description, 400));
    server.insert(
        "description".to_owned(),
        literal(&description).map_err(refused)?,
    );
    Ok(Foreign {
        servers: json!({ "mcpServers": { short: server } }),
        notes: reasons,
    })
}

/// Why a package or a remote is not taken.
enum Refused {
    /// Another one may be.
    LeftOut(String),
    /// The entry is refused.
    Unsafe(String),
}

type Server = (Map<String, Value>, String);

/// A server that is started from a package.
fn package(server: &str, package: &Value) -> Result<Server, Refused> {
    let left_out = |reason: &str| Err(Refused::LeftOut(reason.to_owned()));
    let kind = text(package, &["registryType", "registry_type", "registry_name"]);
    let kind = kind.unwrap_or_default();
    let identifier = text(package, &["identifier", "name"]).unwrap_or_default();
    let version = text(package, &["version"]).unwrap_or_default();
    let transport = package.pointer("/transport/type").and_then(Value::as_str);
    if transport.is_some_and(|transport| transport != "stdio") {
        return left_out("it does not serve over stdio");
    }
    let digest = text(package, &["fileSha256", "file_sha256"]);
    let digest = match digest {
        Some(digest) if digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()) => {
            Some(digest.to_ascii_lowercase())
        }
        Some(_) => return Err(Refused::Unsafe("its SHA-256 is not one".to_owned())),
        None => None,
    };
    if kind == "mcpb" {
        let digest = digest.unwrap_or_else(|| "none".to_owned());
        return left_out(&format!(
            "it is a bundle: download it, compare its SHA-256 ({digest}), and run `broker-gen import FILE.mcpb`"
        ));
    }
    if !is_name(identifier) {
        return Err(Refused::Unsafe(
            "its identifier is not a name of a package".to_owned(),
        ));
    }
    let is_pinned = identifier.contains("@sha256:");
    let tag = identifier.rsplit('/').next().unwrap_or_default();
    let has_tag = kind == "oci" && (is_pinned || tag.contains(':'));
    if !has_tag && !is_exact(version) {
        return Err(Refused::Unsafe(format!(
            "its version `{}` is not an exact one",
            shown_line(version, MAX_SHOWN)
        )));
    }
    let runtime = arguments(server, package, &["runtimeArguments", "runtime_arguments"])?;
    let (command, mut args) = match kind {
        "npm" => ("npx", vec!["-y".to_owned()]),
        "pypi" => ("uvx", Vec::new()),
        "oci" => ("docker", ["run", "-i", "--rm"].map(str::to_owned).to_vec()),
        other => {
            return left_out(&format!(
                "`{}` is not started by a config",
                shown_line(other, MAX_SHOWN)
            ));
        }
    };
    args.extend(runtime);
    let env = environment(package)?;
    if kind == "oci" {
        args.extend(
            env.iter()
                .flat_map(|(name, _)| ["-e".to_owned(), name.clone()]),
        );
    }
    let shown = match kind {
        "npm" => format!("{identifier}@{version}"),
        "pypi" => format!("{identifier}=={version}"),
        _ if has_tag => identifier.to_owned(),
        _ => format!("{identifier}:{version}"),
    };
    args.push(shown.clone());
    args.extend(arguments(
        server,
        package,
        &["packageArguments", "package_arguments"],
    )?);
    let digest = digest
        .map(|digest| format!(", sha256:{digest}"))
        .unwrap_or_default();
    let mut members = Map::new();
    members.insert("command".to_owned(), command.into());
    members.insert("args".to_owned(), args.into());
    if !env.is_empty() {
        members.insert("env".to_owned(), Value::Object(env));
    }
    Ok((members, format!("{kind} {shown}{digest}")))
}

/// A server at a URL.
fn remote(server: &str, remote: &Value) -> Result<Server, Refused> {
    let kind = text(remote, &["type", "transport_type"]).unwrap_or_default();
    let kind = match kind {
        "streamable-http" | "streamable" => "http",
        "sse" => "sse",
        _ => return Err(Refused::LeftOut("its transport is not known".to_owned())),
    };
    let url = text(remote, &["url"]).unwrap_or_default();
    let url = filled(server, url, remote)?;
    let mut headers = Map::new();
    for header in items(remote, &["headers"]) {
        let name = text(header, &["name"]).unwrap_or_default();
        if let Some(value) = value_of(server, name, header)? {
            headers.insert(name.to_owned(), value.into());
        }
    }
    let mut members = Map::new();
    members.insert("type".to_owned(), kind.into());
    members.insert("url".to_owned(), url.into());
    if !headers.is_empty() {
        members.insert("headers".to_owned(), Value::Object(headers));
    }
    Ok((members, "remote".to_owned()))
}

/// The variables of the process.
fn environment(package: &Value) -> Result<Map<String, Value>, Refused> {
    let mut env = Map::new();
    for one in items(package, &["environmentVariables", "environment_variables"]) {
        let name = text(one, &["name"]).unwrap_or_default();
        if !is_variable_name(name) {
            return Err(Refused::Unsafe(
                "the name of a variable is not one".to_owned(),
            ));
        }
        let default = text(one, &["default"]).filter(|text| !text.contains(['}', '$', '{']));
        let value = match (text(one, &["value"]), default) {
            (Some(_), _) => value_of("", name, one)?,
            (None, Some(default)) => Some(format!("${{{name}:-{default}}}")),
            (None, None)
                if is_set(one, &["isRequired", "is_required"])
                    || is_set(one, &["isSecret", "is_secret"]) =>
            {
                Some(format!("${{{name}}}"))
            }
            // An empty text is a variable that is not set for most programs.
            (None, None) => None,
        };
        if let Some(value) = value {
            env.insert(name.to_owned(), value.into());
        }
    }
    Ok(env)
}

/// The arguments of a list.
fn arguments(server: &str, package: &Value, keys: &[&str]) -> Result<Vec<String>, Refused> {
    let mut args = Vec::new();
    for one in items(package, keys) {
        let name = text(one, &["name"]).unwrap_or_default();
        let is_named = text(one, &["type"]) == Some("named");
        let hint = text(one, &["valueHint", "value_hint"]).unwrap_or(name);
        let hint = match hint.trim_start_matches('-') {
            "" => "argument",
            hint => hint,
        };
        let value = value_of(server, hint, one)?;
        if is_named
            && (value.is_some() || is_set(one, &["isRequired", "is_required"]) || !has_value(one))
        {
            args.push(checked(name)?.to_owned());
        }
        args.extend(value);
    }
    Ok(args)
}

/// Whether an argument takes a value.
fn has_value(one: &Value) -> bool {
    [
        "valueHint",
        "value_hint",
        "format",
        "choices",
        "default",
        "value",
    ]
    .iter()
    .any(|key| one.get(*key).is_some())
}

/// The value of an argument, a header or a variable: as it is given, else a variable if it is required.
fn value_of(server: &str, name: &str, one: &Value) -> Result<Option<String>, Refused> {
    if let Some(value) = text(one, &["value", "default"]) {
        return filled(server, value, one).map(Some);
    }
    let is_needed =
        is_set(one, &["isRequired", "is_required"]) || is_set(one, &["isSecret", "is_secret"]);
    Ok(is_needed.then(|| format!("${{{}}}", variable(server, name))))
}

/// A text with `{name}` for each of its `variables`.
fn filled(server: &str, value: &str, one: &Value) -> Result<String, Refused> {
    let mut out = checked(value)?.to_owned();
    let variables = one.get("variables").and_then(Value::as_object);
    for (name, of) in variables.into_iter().flatten() {
        let place = format!("{{{name}}}");
        if out.contains(&place) {
            let with = match text(of, &["value", "default"]) {
                Some(with) => checked(with)?.to_owned(),
                None => format!("${{{}}}", variable(server, name)),
            };
            out = out.replace(&place, &with);
        }
    }
    Ok(out)
}

fn variable(server: &str, name: &str) -> String {
    match server {
        "" => variable_for(name, true),
        server => variable_for(&format!("{server}_{name}"), true),
    }
}

/// A text of the entry. It must not name a variable of this machine, whose value a server would get.
fn checked(text: &str) -> Result<&str, Refused> {
    match literal(text) {
        Ok(_) => Ok(text),
        Err(reason) => Err(Refused::Unsafe(reason)),
    }
}

fn items<'v>(value: &'v Value, keys: &[&str]) -> &'v [Value] {
    let found = keys.iter().find_map(|key| value.get(*key)?.as_array());
    found.map(Vec::as_slice).unwrap_or_default()
}

fn is_set(value: &Value, keys: &[&str]) -> bool {
    keys.iter()
        .any(|key| value.get(*key) == Some(&Value::Bool(true)))
}

/// Whether a text is the name of a package or an image, and no option or path.
fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"@/._:-+".contains(&b);
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@')
        && name.len() <= 300
        && name.bytes().all(is_plain)
        && !name.split('/').any(|part| part == "." || part == "..")
        && !name.contains("://")
}

/// Whether a version is one release.
fn is_exact(version: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._+!-".contains(&b);
    let has_wildcard = version
        .split('.')
        .any(|part| matches!(part, "x" | "X" | "*"));
    version.starts_with(|c: char| c.is_ascii_digit() || c == 'v')
        && version.contains(|c: char| c.is_ascii_digit())
        && version.len() <= 100
        && version.bytes().all(is_plain)
        && !has_wildcard
}

#[cfg(test)]
mod tests;
