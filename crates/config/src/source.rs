//! One `source` object, or one entry of `mcpServers`: type and range of every key, then the rules
//! between keys. Keys of later versions are checked in the same way and then refused.

use std::collections::BTreeSet;
use std::time::Duration;

use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::kind::{self, Kind};
use super::spanned::Data;
use super::template::{is_own_variable, is_variable_name};
use super::{
    Endpoint, ProcessEndpoint, SchemaPolicy, Source, StartDrift, TextDrift, ToolOverride,
    Unreachable, command, extensions, fields, http_endpoint, items, lists, overrides, trust,
};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::item::ItemKind;
use broker_model::path::NodePath;
use broker_model::trust::{Exposure, TrustLevel};

/// The number of timeouts that a call with progress may take if no maximum is set.
const DEFAULT_MAX_TIMEOUTS: u32 = 10;
/// The least time between two listings; 0 disables them, and a time between is refused.
const MIN_RELIST_INTERVAL: Duration = Duration::from_secs(1);
const LEVEL: Level = Level::Source;

/// Reads a source for the node at `path`. `None` if the value cannot be a source; errors are in
/// `findings`.
pub(super) fn read(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    path: &NodePath,
    types: bool,
) -> Option<Source> {
    let members = fields::object(findings, cursor, "an object, the source")?;
    let mut source = blank(path, cursor, types);
    let mut process = ProcessEndpoint::blank();
    for member in members {
        let value = cursor.member(member);
        if !process_key(findings, &value, &member.key, &mut process) {
            key(findings, &value, &member.key, &mut source);
        }
    }
    if !source.required
        && source.on_unreachable == Some(Unreachable::Refuse)
        && let Some(at) = cursor.get("on_unreachable")
    {
        let message = "`on_unreachable` is `refuse`, but no start waits for a source with `\"required\": false`";
        let diagnostic = Diagnostic::error(Code::ConfigRange, message);
        findings.add(&at, diagnostic.help("remove one of the two keys"));
    }
    if !source.required
        && source.on_drift == Some(StartDrift::Refuse)
        && let Some(at) = cursor.get("on_drift")
    {
        let message = "`on_drift` is `refuse`, but drift of a source with `\"required\": false` refuses no start";
        let diagnostic = Diagnostic::error(Code::ConfigRange, message);
        findings.add(&at, diagnostic.help("remove one of the two keys"));
    }
    check_max_timeouts(findings, cursor, &source);
    let endpoint = match kind::read(findings, cursor) {
        Some(Kind::Process(command)) => {
            let args = cursor.get("args");
            let line = command::read(findings, &command, args.as_ref());
            line.map(|line| {
                process.places = command::places(&line, &command, args.is_some());
                process.command = line;
                Endpoint::Process(process)
            })
        }
        Some(Kind::Http(url)) => {
            let http = http_endpoint::read(findings, cursor, &url, process);
            http.map(Endpoint::Http)
        }
        None => {
            // Their types are checked although the source has no endpoint.
            for (key, expected) in [("command", "args"), ("url", "headers")] {
                if cursor.get(key).is_none()
                    && let Some(values) = cursor.get(expected)
                {
                    check_strings(findings, &values);
                }
            }
            None
        }
    };
    let filter = cursor.get("tool_filter");
    let filter = filter.map(|filter| lists::tool_filter(findings, &filter));
    source.endpoint = endpoint?;
    let default = TrustLevel::default_of(source.backend());
    source.exposure = Exposure::new(
        filter.unwrap_or_default(),
        source.trust.unwrap_or(default),
        // The top level sets the sensitive names of all sources.
        Default::default(),
    )
    .with_items(items::exposure(findings, cursor));
    check_stderr(findings, cursor, &source);
    Some(source)
}

/// Refuses `stderr_to_callers` for a server whose stderr the broker does not have, or whose texts are not trusted.
fn check_stderr(findings: &mut Findings<'_>, cursor: &Cursor<'_>, source: &Source) {
    let Some(at) = cursor
        .get("stderr_to_callers")
        .filter(|_| source.stderr_to_callers)
    else {
        return;
    };
    let problem = match &source.endpoint {
        Endpoint::Http(_) => {
            let message = "`stderr_to_callers` needs `command`: a server over HTTP has no stderr";
            Diagnostic::error(Code::ConfigSourceKind, message).help("remove `stderr_to_callers`")
        }
        Endpoint::Process(_) if source.exposure.level() == TrustLevel::Untrusted => {
            let message = "`stderr_to_callers` is not for a source whose `trust` is `untrusted`";
            Diagnostic::error(Code::ConfigRange, message)
                .help("remove `stderr_to_callers`, or raise `trust`")
        }
        Endpoint::Process(_) => return,
    };
    findings.add(&at, problem);
}

impl Source {
    /// Returns the maximum characters of a reply of a tool, if the config sets one: the tool's limit, else the limit of
    /// `"*"`, else the source's limit.
    pub fn output_limit(&self, tool: &str) -> Option<usize> {
        let own = self
            .overrides
            .get(tool)
            .and_then(|own| own.max_output_chars);
        own.or(self.of_every_tool.max_output_chars)
            .or(self.max_output_chars)
    }

    /// Whether arguments of a tool that do not match its schema are converted: by the nearest setting of the tool, `"*"`,
    /// the source and the config.
    pub fn coerces(&self, tool: &str, of_config: bool) -> bool {
        let own = self.overrides.get(tool).and_then(|own| own.coerce);
        let nearest = own.or(self.of_every_tool.coerce).or(self.coerce);
        nearest.unwrap_or(of_config)
    }
}

/// Reads a key of the process; false for any other key.
fn process_key(
    findings: &mut Findings<'_>,
    value: &Cursor<'_>,
    key: &str,
    process: &mut ProcessEndpoint,
) -> bool {
    match key {
        "env" => process.env = fields::templates(findings, value, "variable name", is_env_name),
        "inherit_env" => process.inherit_env = lists::inherit_env(findings, value),
        "cwd" => process.cwd = fields::template(findings, value),
        _ => return false,
    }
    true
}

/// Checks the strings of a list or an object that no endpoint takes.
fn check_strings(findings: &mut Findings<'_>, values: &Cursor<'_>) {
    match &values.value.data {
        Data::Object(_) => {
            fields::templates(
                findings,
                values,
                "header name",
                http_endpoint::is_header_name,
            );
        }
        _ => {
            fields::strings(findings, values, |findings, item, text| {
                fields::template_of(findings, item, text)
            });
        }
    }
}

fn blank(path: &NodePath, cursor: &Cursor<'_>, types: bool) -> Source {
    Source {
        path: path.clone(),
        // Endpoint and exposure are replaced before the source is returned.
        endpoint: Endpoint::Process(ProcessEndpoint::blank()),
        exposure: Exposure::expose_all(),
        trust: None,
        aliases: Default::default(),
        item_aliases: Default::default(),
        overrides: Default::default(),
        of_every_tool: Default::default(),
        max_output_chars: None,
        coerce: None,
        required: keys::key(LEVEL, "required").value(),
        startup_timeout: keys::key(LEVEL, "startup_timeout").time(),
        relist_interval: Some(keys::key(LEVEL, "relist_interval").time()),
        timeout: keys::key(LEVEL, "timeout").time(),
        max_timeout: None,
        max_in_flight: keys::key(LEVEL, "max_in_flight").value(),
        instances: keys::key(LEVEL, "instances").value(),
        retry_idempotent: keys::key(LEVEL, "retry_idempotent").value(),
        on_text_drift: None,
        on_unreachable: None,
        on_drift: None,
        start_wait: None,
        schema: SchemaPolicy::default(),
        types,
        volatile: BTreeSet::new(),
        extensions: Default::default(),
        stderr_to_callers: keys::key(LEVEL, "stderr_to_callers").value(),
        pointer: cursor.pointer(),
    }
}

fn key(findings: &mut Findings<'_>, value: &Cursor<'_>, key: &str, source: &mut Source) {
    match key {
        // The rules between these keys are checked in `kind`; the trust level decides what a filter exposes.
        "command" | "args" | "tool_filter" => {}
        "backend" => {
            fields::string(findings, value);
        }
        // The readers of entries and nodes leave out a source that is disabled.
        "disabled" => {
            fields::boolean(findings, value);
        }
        // The reader of the endpoint checks them.
        key if http_endpoint::KEYS.contains(&key) => {}
        // `items` reads the modes and filters together, since they depend on each other.
        "resources" | "resource_filter" | "prompt_filter" => {}
        "prompt_aliases" => items::aliases(findings, value, &[ItemKind::Prompt], source),
        "resource_aliases" => {
            let kinds = [ItemKind::Template, ItemKind::Resource];
            items::aliases(findings, value, &kinds, source);
        }
        "path_aliases" => source.aliases = overrides::aliases(findings, value),
        "tool_overrides" => {
            (source.overrides, source.of_every_tool) = overrides::read(findings, value);
        }
        "max_output_chars" => {
            source.max_output_chars = keys::integer(findings, value, LEVEL, key);
        }
        "coerce" => source.coerce = fields::boolean(findings, value),
        "volatile" => source.volatile = lists::volatile(findings, value),
        "stderr_to_callers" => set(
            fields::boolean(findings, value),
            &mut source.stderr_to_callers,
        ),
        "extensions" => source.extensions = extensions::read(findings, value),
        "required" => set(fields::boolean(findings, value), &mut source.required),
        "types" => set(fields::boolean(findings, value), &mut source.types),
        "schema" => source.schema = SchemaPolicy::read(findings, value, LEVEL),
        "startup_timeout" => set(
            keys::seconds(findings, value, LEVEL, key),
            &mut source.startup_timeout,
        ),
        "relist_interval" => set(
            relist_interval(findings, value),
            &mut source.relist_interval,
        ),
        "timeout" => set(
            keys::seconds(findings, value, LEVEL, key),
            &mut source.timeout,
        ),
        "max_timeout" => source.max_timeout = keys::seconds(findings, value, LEVEL, key),
        "max_in_flight" => set(
            keys::integer(findings, value, LEVEL, key),
            &mut source.max_in_flight,
        ),
        "instances" => set(
            keys::integer(findings, value, LEVEL, key),
            &mut source.instances,
        ),
        "retry_idempotent" => set(
            fields::boolean(findings, value),
            &mut source.retry_idempotent,
        ),
        "on_text_drift" => source.on_text_drift = TextDrift::read(findings, value, LEVEL),
        "on_unreachable" => source.on_unreachable = Unreachable::read(findings, value, LEVEL),
        "on_drift" => source.on_drift = StartDrift::read(findings, value, LEVEL),
        "start_wait" => source.start_wait = keys::seconds(findings, value, LEVEL, key),
        "trust" => source.trust = trust::level(findings, value),
        unknown => keys::unknown(findings, value, unknown, Level::Source),
    }
}

/// The time between two listings without an announcement; the inner `None` means never.
fn relist_interval(findings: &mut Findings<'_>, value: &Cursor<'_>) -> Option<Option<Duration>> {
    let interval = keys::seconds(findings, value, LEVEL, "relist_interval")?;
    if interval.is_zero() {
        return Some(None);
    }
    if interval < MIN_RELIST_INTERVAL {
        let message = format!(
            "expected seconds: 0 for never, or a number from {} to {}",
            MIN_RELIST_INTERVAL.as_secs(),
            keys::key(LEVEL, "relist_interval").numbers::<u64>().end()
        );
        fields::out_of_range(findings, value, message);
        return None;
    }
    Some(Some(interval))
}

/// Each `max_timeout` must be at least the timeout that applies with it.
fn check_max_timeouts(findings: &mut Findings<'_>, cursor: &Cursor<'_>, source: &Source) {
    let mut check = |at: Option<Cursor<'_>>, max: Option<Duration>, timeout: Duration| {
        if let (Some(at), Some(max)) = (at, max)
            && max < timeout
        {
            let message = format!(
                "`max_timeout` is {} s, less than the `timeout` of {} s",
                max.as_secs_f64(),
                timeout.as_secs_f64()
            );
            let diagnostic = Diagnostic::error(Code::ConfigRange, message);
            findings.add(
                &at,
                diagnostic.help("raise `max_timeout`, or lower `timeout`"),
            );
        }
    };
    check(
        cursor.get("max_timeout"),
        source.max_timeout,
        source.timeout,
    );
    let overrides = cursor.get("tool_overrides");
    for (tool, own) in &source.overrides {
        let at = overrides.as_ref().and_then(|all| all.get(tool));
        let at = at.as_ref().and_then(|own| own.get("max_timeout"));
        check(at, own.max_timeout, own.timeout.unwrap_or(source.timeout));
    }
}

impl Source {
    /// Returns the maximum time in all of a call of a tool with these settings: the limit of these settings, else the
    /// source's limit, else ten times the timeout.
    pub fn max_timeout_of(&self, own: Option<&ToolOverride>) -> Duration {
        let timeout = own.and_then(|own| own.timeout).unwrap_or(self.timeout);
        let set = own.and_then(|own| own.max_timeout).or(self.max_timeout);
        set.map_or_else(
            || timeout.saturating_mul(DEFAULT_MAX_TIMEOUTS),
            |max| max.max(timeout),
        )
    }
}

fn set<T>(read: Option<T>, field: &mut T) {
    if let Some(value) = read {
        *field = value;
    }
}

fn is_env_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Returns the name of the variable that replaces a literal value of this name, in capitals if the name is a `header`.
pub fn variable_for(name: &str, header: bool) -> String {
    let mut variable: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if header {
        variable.make_ascii_uppercase();
    }
    if !is_variable_name(&variable) || is_own_variable(&variable) {
        variable.insert(0, '_');
    }
    variable
}
