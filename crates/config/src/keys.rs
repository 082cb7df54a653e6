//! Every key of the config: `keys.tsv` declares it once. Readers take its range and its default from there; known keys, the
//! JSON Schema and the tests of the page and of narrowing come from it.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use super::fields;
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
    Audit,
    Jobs,
    Telemetry,
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

const LEVELS: [Level; 22] = [
    Level::Top,
    Level::Node,
    Level::Source,
    Level::Auth,
    Level::ClientCredentials,
    Level::Override,
    Level::Limits,
    Level::Mcp,
    Level::Audit,
    Level::Jobs,
    Level::Telemetry,
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

/// The rows of all keys.
pub(super) const ROWS: &str = include_str!("keys.tsv");

/// The keys of this program.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(ROWS));

/// A level, a key of it, or a definition that kinds name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key {
    /// The level, `=` for a definition.
    pub(super) level: &'static str,
    /// The name; empty for the level itself.
    pub(super) name: &'static str,
    /// The kind of its values; of a level, its definition.
    pub(super) kind: &'static str,
    /// The bounds, and a pattern; of a level, its name in messages.
    pub(super) range: &'static str,
    /// The value without it, or a text about this value.
    pub(super) default: &'static str,
    /// What a change needs.
    pub(super) change: &'static str,
    /// Its meaning.
    pub(super) text: &'static str,
}

/// All keys.
#[derive(Debug)]
pub(super) struct Table {
    /// The rows, in file order.
    pub(super) rows: Vec<Key>,
    /// The names of the keys of each of [`LEVELS`].
    names: Vec<Vec<&'static str>>,
}

impl Table {
    /// Reads the rows.
    pub(super) fn read(text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let rows: Vec<Key> = lines.map(Key::read).collect();
        let names = LEVELS.map(|level| {
            let level = format!("{level:?}");
            let keys = rows
                .iter()
                .filter(|row| row.level == level && !row.name.is_empty());
            keys.map(|row| row.name).collect()
        });
        Self {
            names: names.into(),
            rows,
        }
    }

    /// Returns the keys of a level.
    pub(super) fn keys(&self, level: Level) -> &[&'static str] {
        let at = LEVELS.iter().position(|one| *one == level);
        at.and_then(|at| self.names.get(at))
            .map_or(&[], Vec::as_slice)
    }
}

/// Returns all keys.
pub(super) fn table() -> &'static Table {
    &TABLE
}

/// Returns a key of a level; an empty name means the level itself.
pub(super) fn key(level: Level, name: &str) -> Key {
    let level = format!("{level:?}");
    let mut rows = TABLE.rows.iter();
    let found = rows.find(|row| row.level == level && row.name == name);
    found.copied().unwrap_or_default()
}

impl Key {
    fn read(line: &'static str) -> Self {
        let mut cells = line.split('\t');
        let mut next = || cells.next().unwrap_or_default();
        Self {
            level: next(),
            name: next(),
            kind: next(),
            range: next(),
            default: next(),
            change: next(),
            text: next(),
        }
    }

    /// Returns the lower and the upper bound as written.
    pub(super) fn bounds(&self) -> Option<(&'static str, &'static str)> {
        self.range.split(' ').next()?.split_once("..")
    }

    /// Returns the range of its numbers.
    pub(super) fn numbers<T: FromStr + Default>(&self) -> RangeInclusive<T> {
        let (low, high) = self.bounds().unwrap_or_default();
        let number = |text: &str| text.parse().unwrap_or_default();
        number(low)..=number(high)
    }

    /// Returns its default value.
    pub(super) fn value<T: FromStr + Default>(&self) -> T {
        self.default.trim_matches('`').parse().unwrap_or_default()
    }

    /// Returns its default time.
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.value())
    }

    /// Returns the names of its values.
    pub(super) fn choices(&self) -> impl Iterator<Item = &'static str> {
        let mut rows = TABLE.rows.iter();
        let found = rows.find(|row| row.level == "=" && row.name == self.kind);
        found.into_iter().flat_map(|row| row.range.split('|'))
    }
}

/// Reads a whole number within the range of its key.
pub(super) fn integer(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    level: Level,
    name: &str,
) -> Option<usize> {
    fields::integer(findings, cursor, key(level, name).numbers())
}

/// Reads seconds within the range of their key.
pub(super) fn seconds(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    level: Level,
    name: &str,
) -> Option<Duration> {
    fields::seconds(findings, cursor, key(level, name).numbers())
}

/// Reads one of the names of a key; `from_name` returns the value of each.
pub(super) fn choice<T>(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    level: Level,
    name: &str,
    from_name: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let text = fields::string(findings, cursor)?;
    let value = from_name(text);
    if value.is_none() {
        let names: Vec<_> = key(level, name)
            .choices()
            .map(|one| format!("`{one}`"))
            .collect();
        let names = match names.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} or {last}", others.join(", "))
            }
            _ => names.concat(),
        };
        let message = format!("expected {names}, got `{}`", shown_line(text, 40));
        fields::out_of_range(findings, cursor, message);
    }
    value
}

impl Level {
    /// Returns the keys of this level, including the keys of later versions.
    pub(super) fn keys(self) -> &'static [&'static str] {
        TABLE.keys(self)
    }

    /// Returns the name of the level in messages.
    fn shown_name(self) -> &'static str {
        key(self, "").range
    }
}

/// The key of this level that is most similar to `key`, or from which `key` differs by one mistake.
pub(super) fn nearest(key: &str, level: Level) -> Option<&'static str> {
    let known = level.keys().iter().copied();
    let by_mistake = || known.clone().find(|one| suggest::is_one_mistake(key, one));
    suggest::nearest(key, known.clone(), 1)
        .pop()
        .or_else(by_mistake)
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
    others.map(Level::shown_name)
}

/// Whether a config has a key at another level than this one.
pub(super) fn has_elsewhere(key: &str, level: Level) -> bool {
    elsewhere(key, level).next().is_some()
}

/// Returns the error for an unknown key of this level, with the place where it is known, or the nearest key.
pub(super) fn unknown_key(key: &str, level: Level) -> Diagnostic {
    let shown = shown_line(key, 80);
    let message = format!("unknown key `{shown}` in {}", level.shown_name());
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
