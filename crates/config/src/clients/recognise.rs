//! Recognises the client that wrote a file: by the names of the file and its folder, else by keys that only one client
//! has.

use std::collections::BTreeSet;

use super::Client;
use crate::spanned::{Data, Spanned};
use crate::vscode;

/// The keys for the servers of a client, in order of precedence, and the client that has no other key.
const PLACES: [(&str, Option<Client>); 6] = [
    ("mcpServers", None),
    ("servers", Some(Client::VsCode)),
    ("mcp_servers", Some(Client::Codex)),
    ("context_servers", Some(Client::Zed)),
    ("mcp", Some(Client::Opencode)),
    ("extensions", Some(Client::Goose)),
];
/// The ends of paths of files, in lower case.
const PATHS: [(&str, Client); 20] = [
    ("claude_desktop_config.json", Client::Claude),
    (".claude.json", Client::Claude),
    (".claude/settings.json", Client::Claude),
    ("/.mcp.json", Client::Claude),
    (".cursor/mcp.json", Client::Cursor),
    (".gemini/settings.json", Client::Gemini),
    ("mcp-config.json", Client::Copilot),
    (".github/mcp.json", Client::Copilot),
    ("opencode.json", Client::Opencode),
    ("opencode.jsonc", Client::Opencode),
    ("windsurf/mcp_config.json", Client::Windsurf),
    ("cline_mcp_settings.json", Client::Cline),
    (".roo/mcp.json", Client::Roo),
    ("/mcp_settings.json", Client::Roo),
    ("librechat.yaml", Client::LibreChat),
    ("librechat.yml", Client::LibreChat),
    (".lmstudio/mcp.json", Client::LmStudio),
    (".amazonq/mcp.json", Client::AmazonQ),
    ("amazonq/mcp.json", Client::AmazonQ),
    ("amazonq.json", Client::AmazonQ),
];
/// Keys of the top level that only one client has next to `mcpServers`.
const SETTINGS: [(&str, Client); 34] = [
    ("accessibility", Client::Gemini),
    ("allowMCPServers", Client::Gemini),
    ("autoAccept", Client::Gemini),
    ("bugCommand", Client::Gemini),
    ("contextFileName", Client::Gemini),
    ("coreTools", Client::Gemini),
    ("excludeMCPServers", Client::Gemini),
    ("excludeTools", Client::Gemini),
    ("fileFiltering", Client::Gemini),
    ("hideBanner", Client::Gemini),
    ("hideTips", Client::Gemini),
    ("ide", Client::Gemini),
    ("maxSessionTurns", Client::Gemini),
    ("preferredEditor", Client::Gemini),
    ("security", Client::Gemini),
    ("selectedAuthType", Client::Gemini),
    ("summarizeToolOutput", Client::Gemini),
    ("toolCallCommand", Client::Gemini),
    ("toolDiscoveryCommand", Client::Gemini),
    ("usageStatisticsEnabled", Client::Gemini),
    ("apiKeyHelper", Client::Claude),
    ("disabledMcpjsonServers", Client::Claude),
    ("enableAllProjectMcpServers", Client::Claude),
    ("enabledMcpjsonServers", Client::Claude),
    ("globalShortcut", Client::Claude),
    ("hasCompletedOnboarding", Client::Claude),
    ("isUsingBuiltInNodeForMcp", Client::Claude),
    ("numStartups", Client::Claude),
    ("oauthAccount", Client::Claude),
    ("projects", Client::Claude),
    ("endpoints", Client::LibreChat),
    ("mcpSettings", Client::LibreChat),
    ("modelSpecs", Client::LibreChat),
    ("fileConfig", Client::LibreChat),
];
/// Keys of Gemini CLI in `mcp`: there it selects the used servers.
const LISTS_OF_GEMINI: [&str; 3] = ["allowed", "excluded", "serverCommand"];
/// Keys of a server that only one client has. A file with keys of several clients was copied together, so the client is
/// not known.
const SERVER_KEYS: [(&str, Client); 13] = [
    ("chatMenu", Client::LibreChat),
    ("customUserVars", Client::LibreChat),
    ("initTimeout", Client::LibreChat),
    ("serverInstructions", Client::LibreChat),
    ("startup", Client::LibreChat),
    ("authProviderType", Client::Gemini),
    ("includeTools", Client::Gemini),
    ("excludeTools", Client::Gemini),
    ("httpUrl", Client::Gemini),
    ("watchPaths", Client::Roo),
    ("alwaysAllow", Client::Roo),
    ("transportType", Client::Cline),
    ("serverUrl", Client::Windsurf),
];
/// Above it a `timeout` next to `autoApprove` is in milliseconds: Cline counts seconds, at most this number.
const MAX_SECONDS: f64 = 3600.0;

/// The client that wrote a file, if its name or its content says so.
pub fn recognise(file: Option<&str>, root: &Spanned) -> Option<Client> {
    if root.get("tree").is_some() {
        return None;
    }
    let key = servers_key(root, None)?;
    if let Some((_, Some(client))) = PLACES.iter().find(|(place, _)| *place == key) {
        return Some(*client);
    }
    let servers = root.get(key)?;
    if matches!(servers.data, Data::Array(_)) {
        return Some(Client::Continue);
    }
    // A key of a config in an entry: a person writes this file for the broker.
    let entries = || servers.members().iter().map(|server| &server.value);
    let is_ours = |entry: &Spanned| {
        let keys = crate::keys::Level::Source.keys().iter();
        let mut own = keys.filter(|key| key.contains('_'));
        own.any(|key| entry.get(key).is_some())
    };
    if entries().any(is_ours) {
        return None;
    }
    if let Some(client) = by_path(file.unwrap_or_default())
        .or_else(|| by_keys(&SETTINGS, |key| root.get(key).is_some()))
    {
        return Some(client);
    }
    let lists = root.get("mcp");
    if LISTS_OF_GEMINI
        .iter()
        .any(|key| lists.is_some_and(|lists| lists.get(key).is_some()))
    {
        return Some(Client::Gemini);
    }
    let has = |key: &str| entries().any(|entry| entry.get(key).is_some());
    let found = SERVER_KEYS.iter().filter(|(key, _)| has(key));
    let found: BTreeSet<Client> = found.map(|(_, client)| *client).collect();
    match found.len() {
        0 => entries().find_map(by_values),
        1 => found.first().copied(),
        _ => None,
    }
}

fn by_path(file: &str) -> Option<Client> {
    let path = format!("/{}", file.replace('\\', "/").to_ascii_lowercase());
    let found = PATHS.iter().find(|(end, _)| {
        let whole = if end.starts_with('/') {
            (*end).to_owned()
        } else {
            format!("/{end}")
        };
        path.ends_with(&whole)
    });
    found.map(|(_, client)| *client)
}

fn by_keys(keys: &[(&str, Client)], has: impl Fn(&str) -> bool) -> Option<Client> {
    let found = keys.iter().find(|(key, _)| has(key));
    found.map(|(_, client)| *client)
}

fn by_values(entry: &Spanned) -> Option<Client> {
    match entry.get("type").map(|value| &value.data) {
        Some(Data::String(word)) if word == "local" => return Some(Client::Copilot),
        _ => {}
    }
    entry.get("autoApprove")?;
    match entry.get("timeout").map(|value| &value.data) {
        Some(Data::Number(text)) if text.parse::<f64>().is_ok_and(|n| n > MAX_SECONDS) => {
            Some(Client::AmazonQ)
        }
        Some(Data::Number(_)) => Some(Client::Cline),
        _ => None,
    }
}

/// The key of the servers in a file; the client decides if it is known.
pub(crate) fn servers_key(root: &Spanned, client: Option<Client>) -> Option<&'static str> {
    if let Some(client) = client {
        let key = client.servers_key();
        if root.get(key).is_some() {
            return Some(key);
        }
    }
    let mut places = PLACES.iter();
    let found = places.find(|(key, _)| {
        root.get(key).is_some_and(|servers| match *key {
            "mcp" => is_of_opencode(servers),
            "extensions" => is_of_goose(servers),
            _ => true,
        })
    });
    found.map(|(key, _)| *key)
}

/// Whether `mcp` is an object of servers: a config has settings under this key.
fn is_of_opencode(servers: &Spanned) -> bool {
    let mut entries = servers.members().iter();
    !servers.members().is_empty()
        && entries.all(|one| {
            let value = &one.value;
            ["type", "command", "url", "enabled"]
                .iter()
                .any(|key| value.get(key).is_some())
        })
}

fn is_of_goose(servers: &Spanned) -> bool {
    let mut entries = servers.members().iter();
    !servers.members().is_empty() && entries.all(|one| one.value.get("type").is_some())
}

/// Whether comments are read in a file with these keys at its top: in files of clients that accept them, but not in
/// a config.
pub(crate) fn allows_comments(keys: &[&str]) -> bool {
    let has = |key: &str| keys.contains(&key);
    if has("tree") {
        return false;
    }
    if !has("mcpServers") {
        return vscode::is_file_of_vscode(has) || has("context_servers") || has("mcp");
    }
    SETTINGS.iter().any(|(key, _)| has(key)) || has("theme")
}
