//! Every key of the config by level, and the report of unknown keys.

use super::findings::{Cursor, Findings};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::suggest;
use broker_model::text::shown_line;

/// The level of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Top,
    Node,
    Source,
    Auth,
    ClientCredentials,
    Override,
    Limits,
    Mcp,
    Search,
    Surfaces,
    SearchHint,
    Trust,
    Access,
    AccessRule,
    Hints,
    Identities,
    ApiKey,
    Issuer,
    KeysFile,
}

const LEVELS: [Level; 19] = [
    Level::Top,
    Level::Node,
    Level::Source,
    Level::Auth,
    Level::ClientCredentials,
    Level::Override,
    Level::Limits,
    Level::Mcp,
    Level::Search,
    Level::Surfaces,
    Level::SearchHint,
    Level::Trust,
    Level::Access,
    Level::AccessRule,
    Level::Hints,
    Level::Identities,
    Level::ApiKey,
    Level::Issuer,
    Level::KeysFile,
];

/// Keys of other clients in an entry of `mcpServers` that have no meaning here.
pub(super) const FOREIGN: [&str; 53] = [
    "allowedTools",
    "alwaysAllow",
    "authProviderType",
    "authorization",
    "authorization_token",
    "autoApprove",
    "bearer_token",
    "bearer_token_env_var",
    "chatEnabled",
    "default_tools_approval_mode",
    "description",
    "dev",
    "disabledTools",
    "disabled_tools",
    "displayName",
    "enabled_tools",
    "envFile",
    "env_file",
    "env_http_headers",
    "env_vars",
    "eventSourceInit",
    "excludeTools",
    "gallery",
    "headersHelper",
    "httpUrl",
    "http_headers",
    "icon",
    "iconPath",
    "id",
    "includeTools",
    "initTimeout",
    "label",
    "logo",
    "metadata",
    "name",
    "note",
    "oauth",
    "oauth_resource",
    "registry",
    "requestInit",
    "sandbox",
    "scopes",
    "serverUrl",
    "settings",
    "source",
    "targetAudience",
    "targetServiceAccount",
    "tool_configuration",
    "tools",
    "transport",
    "transportType",
    "version",
    "watchPaths",
];
/// Foreign keys with a credential of a server over HTTP.
const CREDENTIALS: [&str; 9] = [
    "authProviderType",
    "authorization",
    "authorization_token",
    "bearer_token",
    "bearer_token_env_var",
    "env_http_headers",
    "headersHelper",
    "http_headers",
    "requestInit",
];

impl Level {
    /// Returns the keys of this level, including the keys of later versions.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Top => &[
                "$schema",
                "tree",
                "mcpServers",
                "types",
                "limits",
                "allowed_hosts",
                "allowed_origins",
                "trust",
                "mcp",
                "search",
                "surfaces",
                "audits_required",
                "coerce",
                "on_text_drift",
                "on_unreachable",
                "on_drift",
                "start_wait",
                "access",
                "identities",
                "public_url",
                "trusted_proxies",
            ],
            Self::Node => &[
                "path",
                "type",
                "summary",
                "description",
                "children",
                "source",
            ],
            Self::Source => &[
                "backend",
                "command",
                "args",
                "env",
                "inherit_env",
                "cwd",
                "url",
                "headers",
                "auth",
                "ca_file",
                "allow_plain_http",
                "tool_filter",
                "path_aliases",
                "resources",
                "resource_filter",
                "resource_aliases",
                "prompt_filter",
                "prompt_aliases",
                "tool_overrides",
                "required",
                "disabled",
                "startup_timeout",
                "relist_interval",
                "timeout",
                "max_timeout",
                "max_in_flight",
                "instances",
                "types",
                "schema",
                "volatile",
                "retry_idempotent",
                "on_text_drift",
                "on_unreachable",
                "on_drift",
                "start_wait",
                "trust",
                "max_output_chars",
                "coerce",
            ],
            Self::Auth => &["token_file", "token_command", "client_credentials"],
            Self::ClientCredentials => &[
                "token_url",
                "client_id",
                "client_secret",
                "scope",
                "resource",
            ],
            Self::Override => &[
                "summary",
                "description",
                "max_output_chars",
                "timeout",
                "max_timeout",
                "example_args",
                "render_mode",
                "annotations",
                "hints",
                "schema",
                "coerce",
            ],
            Self::Limits => &[
                "body_bytes",
                "line_bytes",
                "listing_bytes",
                "memory_bytes",
                "result_chars",
            ],
            Self::Mcp => &[
                "mode",
                "routing",
                "split_calls",
                "list_changed_exec",
                "max_name",
                "session_idle",
            ],
            Self::Surfaces => &["v1", "sse"],
            Self::Search => &[
                "table",
                "top_k",
                "embedder",
                "hf_model",
                "hf_multilingual_model",
                "openai_model",
                "external",
                "timeout",
            ],
            Self::SearchHint => &["text", "generated", "for"],
            Self::Trust => &["sensitive"],
            Self::Access => &[
                "groups",
                "rules",
                "local",
                "secret",
                "anonymous",
                "operators",
                "denied",
            ],
            Self::AccessRule => &["allow", "deny", "to", "except", "where", "args"],
            Self::Hints => &[
                "readOnlyHint",
                "destructiveHint",
                "idempotentHint",
                "openWorldHint",
            ],
            Self::Identities => &["keys", "keys_file", "issuers", "on_revoke"],
            Self::ApiKey => &["name", "sha256", "groups", "not_after", "client"],
            Self::Issuer => &[
                "issuer",
                "audience",
                "jwks",
                "algorithms",
                "subject",
                "groups_claim",
                "map",
                "claims",
                "leeway_s",
                "require_typ",
            ],
            Self::KeysFile => &["keys"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Top => "the top level",
            Self::Node => "a node",
            Self::Source => "a source",
            Self::Auth => "`auth`",
            Self::ClientCredentials => "`client_credentials`",
            Self::Override => "a tool override",
            Self::Limits => "`limits`",
            Self::Mcp => "`mcp`",
            Self::Search => "`search`",
            Self::Surfaces => "`surfaces`",
            Self::SearchHint => "a hint",
            Self::Trust => "`trust` of the top level",
            Self::Access => "`access`",
            Self::AccessRule => "a rule of `access`",
            Self::Hints => "`annotations` of a tool override",
            Self::Identities => "`identities`",
            Self::ApiKey => "an API key",
            Self::Issuer => "an issuer",
            Self::KeysFile => "a file of keys",
        }
    }
}

/// The key of this level that is most similar to `key`.
pub(super) fn nearest(key: &str, level: Level) -> Option<&'static str> {
    suggest::nearest(key, level.keys().iter().copied(), 1).pop()
}

/// Reports an unknown key of this level.
pub(super) fn unknown(findings: &mut Findings<'_>, cursor: &Cursor<'_>, key: &str, level: Level) {
    let diagnostic = match findings.is_full() {
        true => Diagnostic::error(Code::ConfigUnknownKey, "unknown key"),
        false => unknown_key(key, level),
    };
    findings.add_key(cursor, diagnostic);
}

/// The levels other than this one that have a key, by their names.
fn elsewhere(key: &str, level: Level) -> impl Iterator<Item = &'static str> {
    let others = LEVELS.into_iter();
    let others = others.filter(move |other| *other != level && other.keys().contains(&key));
    others.map(Level::name)
}

/// Whether a config has a key at another level than this one.
pub(super) fn has_elsewhere(key: &str, level: Level) -> bool {
    elsewhere(key, level).next().is_some()
}

/// Returns the error for an unknown key of this level, with the place where it is known, or the nearest key.
pub(super) fn unknown_key(key: &str, level: Level) -> Diagnostic {
    let shown = shown_line(key, 80);
    let message = format!("unknown key `{shown}` in {}", level.name());
    let diagnostic = Diagnostic::error(Code::ConfigUnknownKey, message);
    let elsewhere: Vec<&str> = elsewhere(key, level).collect();
    let help = if !elsewhere.is_empty() {
        format!("`{shown}` belongs in {}", elsewhere.join(" or "))
    } else if let Some(near) = nearest(key, level) {
        format!("did you mean `{near}`?")
    } else {
        format!("known here: {}", level.keys().join(", "))
    };
    diagnostic.help(help)
}

/// Reports a key of an entry of `mcpServers`: a key of another client is a warning, a key that is similar to
/// a known one is an error.
pub(super) fn unknown_or_foreign(findings: &mut Findings<'_>, cursor: &Cursor<'_>, key: &str) {
    if !FOREIGN.contains(&key) && nearest(key, Level::Source).is_some() {
        return unknown(findings, cursor, key, Level::Source);
    }
    let shown = shown_line(key, 80);
    let message = format!("`{shown}` has no meaning here and is ignored");
    let mut diagnostic = Diagnostic::warning(Code::KeyIgnored, message);
    if matches!(
        key,
        "includeTools"
            | "excludeTools"
            | "allowedTools"
            | "disabledTools"
            | "disabled_tools"
            | "enabled_tools"
            | "tools"
    ) {
        diagnostic = diagnostic.help("select the exposed tools with `tool_filter`");
    } else if CREDENTIALS.contains(&key) {
        diagnostic = diagnostic.help("give the credential in `headers` or with `auth`");
    }
    findings.add_key(cursor, diagnostic);
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::codes::{CallCode, SourceCause};

    #[test]
    fn hints_to_callers_name_no_setting_command_or_page() {
        let calls = CallCode::ALL
            .iter()
            .map(|code| (code.as_str(), code.hint()));
        let sources = SourceCause::ALL
            .iter()
            .flat_map(|code| [(code.as_str(), code.hint()), (code.as_str(), code.cause())]);
        for (code, text) in calls.chain(sources) {
            for word in [
                "docs/",
                ".md",
                "broker-gen",
                "mcp-broker",
                "--",
                "the log",
                "MCP_BROKER_",
            ] {
                assert!(!text.contains(word), "{code}: {text}");
            }
            // A caller gives a `path` too.
            let keys = LEVELS.into_iter().flat_map(Level::keys).copied();
            for key in keys.chain(["limits."]).filter(|key| *key != "path") {
                assert!(!text.contains(&format!("`{key}")), "{code}: {text}");
            }
            assert!(
                !text.contains("did_you_mean"),
                "{code}: a member that may be absent"
            );
        }
    }
}
