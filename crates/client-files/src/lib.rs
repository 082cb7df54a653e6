//! Reads the text of a file that an MCP client wrote: JSON with comments, TOML or YAML. It names the client, and gives
//! the servers in the keys, types, units and variables of a config, with the parts that were not carried over. It does
//! not read files or start processes; `broker_config::client_file` knows the meaning of a client's keys.

#![forbid(unsafe_code)]

use std::path::Path;

use broker_config::client_file::{self, Client, Converted, Rules, Spanned};
use broker_model::Diagnostic;

mod toml;
mod yaml;

/// The notation of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Json,
    Toml,
    Yaml,
}

/// A file of a client. `Debug` shows no value of it.
#[derive(Debug)]
pub struct ClientFile {
    /// Its content as it is written.
    pub written: Spanned,
    /// Its content with servers as a config has them.
    pub root: Spanned,
    /// The client that wrote it; `None` if several clients write such a file.
    pub client: Option<Client>,
    /// The result of the conversion.
    pub converted: Converted,
}

/// Reads the text of a file. `from` is the client that a person named, if one did; `exists` says whether a file or a
/// program of a name exists. Errors have their places and contain no value of the file.
pub fn read(
    file: &str,
    text: &str,
    from: Option<Client>,
    exists: &dyn Fn(&str) -> bool,
) -> Result<ClientFile, Vec<Diagnostic>> {
    let written = match notation(file, text) {
        Notation::Json => client_file::parse_json(file, text)?,
        Notation::Toml => toml::parse(file, text)?,
        Notation::Yaml => yaml::parse(file, text)?,
    };
    let client = from.or_else(|| client_file::recognise(Some(file), &written));
    let rules = Rules {
        client,
        is_named: from.is_some(),
        exists,
    };
    let mut root = written.clone();
    let converted = client_file::convert(&mut root, rules);
    Ok(ClientFile {
        written,
        root,
        client,
        converted,
    })
}

/// Returns the notation of a file: by its name, else by its first lines.
fn notation(file: &str, text: &str) -> Notation {
    let extension = Path::new(file).extension().unwrap_or_default();
    match extension.to_string_lossy().to_ascii_lowercase().as_str() {
        "toml" => return Notation::Toml,
        "yaml" | "yml" => return Notation::Yaml,
        "json" | "jsonc" => return Notation::Json,
        _ => {}
    }
    // JSON begins with a brace or a comment, and neither of them begins a line of TOML or of YAML in blocks.
    if text.trim_start().starts_with(['{', '/']) || text.trim().is_empty() {
        return Notation::Json;
    }
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    let first = first.unwrap_or_default();
    let is_yaml = first == "---" || first.starts_with("- ") || first.starts_with('%');
    // The key of a pair ends at the first of the two signs.
    let sign = first
        .find(['=', ':'])
        .and_then(|at| first.as_bytes().get(at));
    match is_yaml || (sign == Some(&b':') && !first.starts_with('[')) {
        true => Notation::Yaml,
        false => Notation::Toml,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_is_found_by_name_or_first_line() {
        for (file, text, expected) in [
            ("a.toml", "a: 1", Notation::Toml),
            ("a.YML", "{}", Notation::Yaml),
            ("a.jsonc", "a: 1", Notation::Json),
            ("a", " {\"a\": 1}", Notation::Json),
            ("a", "// x\n{}", Notation::Json),
            ("a", "", Notation::Json),
            ("a.conf", "# x\n\nmcpServers:\n  a: 1", Notation::Yaml),
            ("a.conf", "---\na = 1", Notation::Yaml),
            ("a.conf", "[mcp_servers.a]\ncommand = 'x:y'", Notation::Toml),
            ("a.conf", "model = \"a:b\"", Notation::Toml),
        ] {
            assert_eq!(notation(file, text), expected, "{file} {text}");
        }
    }
}
