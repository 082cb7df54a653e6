//! One `source` object, or one entry of `mcpServers`: type and range of every key, then the rules
//! between keys. Keys of later versions are checked in the same way and then refused.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::spanned::Data;
use super::template::{is_own_variable, is_variable_name};
use super::{Source, TextDrift, ToolOverride, Unreachable, command, fields, lists, overrides};
use crate::codes::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::filter::ToolFilter;
use crate::path::NodePath;

/// Bounds of a call's time, in seconds.
pub(super) const TIMEOUT: RangeInclusive<f64> = 0.1..=86_400.0;
/// The number of timeouts that a call with progress may take if no maximum is set.
const DEFAULT_MAX_TIMEOUTS: u32 = 10;
/// The keys of a URL: ours, and in entries those of other clients.
const URL_KEYS: [&str; 3] = ["url", "httpUrl", "serverUrl"];
/// Above it, `timeout` in a file of another client may be in milliseconds.
const MAX_USUAL_TIMEOUT: Duration = Duration::from_secs(3600);
const STARTUP_TIMEOUT: RangeInclusive<f64> = 1.0..=3_600.0;
/// Bounds of the seconds between two listings; 0 disables it, values between 0 and the minimum are refused.
const RELIST_INTERVAL: RangeInclusive<f64> = 0.0..=86_400.0;
const MIN_RELIST_INTERVAL: Duration = Duration::from_secs(1);
const MAX_IN_FLIGHT: RangeInclusive<u64> = 1..=10_000;
const INSTANCES: RangeInclusive<u64> = 1..=64;

/// The format of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `source` of a node: unknown keys are errors.
    Tree,
    /// An entry of `mcpServers`: keys of other clients are accepted, `command` is the program itself.
    Entry,
}

/// Reads a source for the node at `path`. `None` if the value cannot be a source; errors are in
/// `findings`.
pub(super) fn read(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    path: &NodePath,
    types: bool,
    form: Form,
) -> Option<Source> {
    let members = fields::object(findings, cursor, "an object, the source")?;
    let mut source = blank(path, cursor, types);
    for member in members {
        let value = cursor.member(member);
        if is_other_url(&member.key, cursor, form) {
            fields::string(findings, &value);
            continue;
        }
        key(findings, &value, &member.key, &mut source, form);
    }
    if !source.required
        && source.on_unreachable == Some(Unreachable::Refuse)
        && let Some(at) = cursor.get("on_unreachable")
    {
        let message = "`on_unreachable` is `refuse`, but no start waits for a source with `\"required\": false`";
        let diagnostic = Diagnostic::error(Code::ConfigRange, message);
        findings.add(&at, diagnostic.help("remove one of the two keys"));
    }
    check_max_timeouts(findings, cursor, &source);
    let line = kind(findings, cursor, form).and_then(|command| {
        let args = cursor.get("args");
        command::read(findings, &command, args.as_ref(), form == Form::Entry)
    });
    if cursor.get("command").is_none()
        && let Some(args) = cursor.get("args")
    {
        // Their types are checked although no command takes them.
        fields::strings(findings, &args, |findings, item, text| {
            fields::template_of(findings, item, text)
        });
    }
    source.command = line?;
    if let Some(command) = cursor.get("command") {
        let has_args = cursor.get("args").is_some();
        source.places = command::places(&source.command, &command, has_args);
    }
    Some(source)
}

fn blank(path: &NodePath, cursor: &Cursor<'_>, types: bool) -> Source {
    Source {
        path: path.clone(),
        command: super::CommandLine::Direct {
            program: super::Template::literal(""),
            args: Vec::new(),
            script: None,
        },
        places: Vec::new(),
        env: Default::default(),
        inherit_env: Vec::new(),
        cwd: None,
        filter: ToolFilter::default(),
        aliases: Default::default(),
        overrides: Default::default(),
        required: true,
        startup_timeout: Duration::from_secs(120),
        relist_interval: Some(Duration::from_secs(300)),
        timeout: Duration::from_secs(60),
        max_timeout: None,
        max_in_flight: 32,
        instances: 1,
        retry_idempotent: false,
        on_text_drift: None,
        on_unreachable: None,
        types,
        volatile: BTreeSet::new(),
        pointer: cursor.pointer(),
    }
}

fn key(
    findings: &mut Findings<'_>,
    value: &Cursor<'_>,
    key: &str,
    source: &mut Source,
    form: Form,
) {
    match key {
        // The rules between these keys are checked by `kind`.
        "command" | "args" => {}
        "backend" => {
            fields::string(findings, value);
        }
        "type" | "disabled" | "enabled" if form == Form::Entry => {
            if key == "type" {
                fields::string(findings, value);
            }
        }
        "url" => {
            fields::template(findings, value);
        }
        "headers" => {
            fields::templates(findings, value, "header name", is_header_name);
            keys::later(findings, value, "`headers`");
        }
        "env" => {
            source.env = fields::templates(findings, value, "variable name", is_env_name);
        }
        "inherit_env" => source.inherit_env = lists::inherit_env(findings, value),
        "cwd" => source.cwd = fields::template(findings, value),
        "tool_filter" => source.filter = lists::tool_filter(findings, value),
        "path_aliases" => source.aliases = overrides::aliases(findings, value),
        "tool_overrides" => source.overrides = overrides::read(findings, value),
        "volatile" => source.volatile = lists::volatile(findings, value),
        "required" => set(fields::boolean(findings, value), &mut source.required),
        "types" => set(fields::boolean(findings, value), &mut source.types),
        "startup_timeout" => set(
            fields::seconds(findings, value, STARTUP_TIMEOUT),
            &mut source.startup_timeout,
        ),
        "relist_interval" => set(
            relist_interval(findings, value),
            &mut source.relist_interval,
        ),
        "timeout" if form == Form::Entry && is_milliseconds(value) => {
            let message = "`timeout` is in seconds here, at most 86400; it is ignored";
            let diagnostic = Diagnostic::warning(Code::KeyIgnored, message);
            findings.add(
                value,
                diagnostic.help("other clients count milliseconds; write seconds"),
            );
        }
        "timeout" => {
            let timeout = fields::seconds(findings, value, TIMEOUT);
            if let Some(timeout) = timeout.filter(|timeout| *timeout > MAX_USUAL_TIMEOUT)
                && form == Form::Entry
            {
                findings.add(value, suspicious_timeout(timeout));
            }
            set(timeout, &mut source.timeout);
        }
        "max_timeout" => source.max_timeout = fields::seconds(findings, value, TIMEOUT),
        "max_in_flight" => set(
            fields::integer(findings, value, MAX_IN_FLIGHT),
            &mut source.max_in_flight,
        ),
        "instances" => set(
            fields::integer(findings, value, INSTANCES),
            &mut source.instances,
        ),
        "retry_idempotent" => set(
            fields::boolean(findings, value),
            &mut source.retry_idempotent,
        ),
        "on_text_drift" => source.on_text_drift = text_drift(findings, value),
        "on_unreachable" => source.on_unreachable = unreachable(findings, value),
        "trust" => keys::later(findings, value, "`trust`"),
        unknown if form == Form::Entry => {
            keys::unknown_or_foreign(findings, value, unknown, Level::Source);
        }
        unknown => keys::unknown(findings, value, unknown, Level::Source),
    }
}

/// The time between two listings without an announcement; the inner `None` means never.
fn relist_interval(findings: &mut Findings<'_>, value: &Cursor<'_>) -> Option<Option<Duration>> {
    let interval = fields::seconds(findings, value, RELIST_INTERVAL)?;
    if interval.is_zero() {
        return Some(None);
    }
    if interval < MIN_RELIST_INTERVAL {
        let message = format!(
            "expected seconds: 0 for never, or a number from {} to {}",
            MIN_RELIST_INTERVAL.as_secs(),
            RELIST_INTERVAL.end()
        );
        fields::out_of_range(findings, value, message);
        return None;
    }
    Some(Some(interval))
}

/// `on_text_drift`, of a source or of the whole config.
pub(super) fn text_drift(findings: &mut Findings<'_>, value: &Cursor<'_>) -> Option<TextDrift> {
    match fields::string(findings, value)? {
        "serve" => Some(TextDrift::Serve),
        "withdraw" => Some(TextDrift::Withdraw),
        _ => {
            let message = "`on_text_drift` is neither `serve` nor `withdraw`".to_owned();
            fields::out_of_range(findings, value, message);
            None
        }
    }
}

/// `on_unreachable`, of a source or of the whole config.
pub(super) fn unreachable(findings: &mut Findings<'_>, value: &Cursor<'_>) -> Option<Unreachable> {
    match fields::string(findings, value)? {
        "refuse" => Some(Unreachable::Refuse),
        "serve" => Some(Unreachable::Serve),
        _ => {
            let message = "`on_unreachable` is neither `refuse` nor `serve`".to_owned();
            fields::out_of_range(findings, value, message);
            None
        }
    }
}

/// Each `max_timeout` must be at least the timeout beside which it applies.
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
    /// The maximum time in all of a call of a tool with these settings: its own, else that of the source, else
    /// ten times its timeout.
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

/// The `command` of the source; `None` if it is not a process or the keys contradict each other.
fn kind<'a>(findings: &mut Findings<'_>, cursor: &'a Cursor<'a>, form: Form) -> Option<Cursor<'a>> {
    let command = cursor.get("command");
    let url = URL_KEYS.iter().find_map(|key| {
        let is_url = *key == "url" || is_other_url(key, cursor, form);
        cursor.get(key).filter(|_| is_url)
    });
    let wrong = |findings: &mut Findings<'_>, at: &Cursor<'_>, message: &str| {
        findings.add(at, Diagnostic::error(Code::ConfigSourceKind, message));
        None
    };
    let mut said = backend(findings, cursor, "backend", form);
    let typed = match form {
        Form::Entry => backend(findings, cursor, "type", form),
        Form::Tree => None,
    };
    if let (Some((one, _)), Some((other, at))) = (&said, &typed)
        && one != other
    {
        return wrong(findings, at, "`backend` and `type` contradict each other");
    }
    said = said.or(typed);
    match (command, url, said) {
        (Some(_), Some(url), _) => wrong(
            findings,
            &url,
            "the source has both `command` and `url`; give exactly one",
        ),
        (None, None, Some(("http", at))) => wrong(findings, &at, "an `http` source needs a `url`"),
        (None, None, _) => wrong(
            findings,
            cursor,
            "the source has neither `command` nor `url`; give exactly one",
        ),
        (Some(command), None, Some(("http", _))) => wrong(
            findings,
            &command,
            "an `http` source has a `url` and no `command`",
        ),
        (None, Some(url), Some(("stdio", _))) => wrong(
            findings,
            &url,
            "a `stdio` source has a `command` and no `url`",
        ),
        (None, Some(url), said) => {
            let at = said.map_or(url, |(_, at)| at);
            findings.add_key(&at, remote(form));
            if let Some(args) = cursor.get("args") {
                wrong(findings, &args, "`args` needs `command`");
            }
            None
        }
        (Some(command), None, _) => Some(command),
    }
}

/// Whether it is a URL of a server in a file of another client: such a key has no meaning beside `command`.
fn is_other_url(key: &str, source: &Cursor<'_>, form: Form) -> bool {
    form == Form::Entry && URL_KEYS[1..].contains(&key) && source.get("command").is_none()
}

/// The error for a server over HTTP, with today's ways.
fn remote(form: Form) -> Diagnostic {
    let message = "a source over `http` is not supported by this version";
    let remove = match form {
        Form::Entry => "remove the entry, set `\"disabled\": true` in it",
        Form::Tree => "remove the source",
    };
    let help = format!(
        "{remove}, or use a bridge, a program that connects to the URL: `\"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote@VERSION\", URL]`"
    );
    Diagnostic::error(Code::NotSupportedYet, message).help(help)
}

/// The backend that `backend` or `type` names, in the terms of this config, and its place.
fn backend<'a>(
    findings: &mut Findings<'_>,
    cursor: &'a Cursor<'a>,
    key: &str,
    form: Form,
) -> Option<(&'static str, Cursor<'a>)> {
    let at = cursor.get(key)?;
    let Data::String(text) = &at.value.data else {
        return None;
    };
    let known = match text.as_str() {
        "stdio" => Some("stdio"),
        "http" => Some("http"),
        "sse" | "streamable-http" | "streamableHttp" | "streamable_http" if form == Form::Entry => {
            Some("http")
        }
        _ => None,
    };
    if known.is_none() {
        fields::out_of_range(
            findings,
            &at,
            format!("`{key}` is neither `stdio` nor `http`"),
        );
    }
    known.map(|known| (known, at))
}

/// Other clients count milliseconds: a value above the bound for seconds is treated as milliseconds.
fn is_milliseconds(value: &Cursor<'_>) -> bool {
    matches!(&value.value.data, Data::Number(text)
        if text.parse::<f64>().is_ok_and(|n| n > *TIMEOUT.end() && n < 1e9))
}

/// The warning about a `timeout` that is valid in seconds, and usual in milliseconds.
fn suspicious_timeout(timeout: Duration) -> Diagnostic {
    let seconds = timeout.as_secs_f64();
    let (hours, minutes) = (timeout.as_secs() / 3600, timeout.as_secs() / 60 % 60);
    let message = format!("`timeout` is in seconds: {seconds} seconds are {hours} h {minutes} min");
    let help = format!(
        "other clients count milliseconds; write `{}` if these were milliseconds",
        seconds / 1000.0
    );
    Diagnostic::warning(Code::TimeoutUnit, message).help(help)
}

fn is_env_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// The name of the variable that replaces a literal value of this name in the compiled-in config.
pub(super) fn variable_for(name: &str, header: bool) -> String {
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
