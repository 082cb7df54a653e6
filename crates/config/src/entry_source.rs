//! An entry of `mcpServers` as a source of a tree: keys and values of other clients are left out with a warning, and the
//! rest has the meaning that it has in a source. Values keep their places in the file.

use std::time::Duration;

use super::fields;
use super::findings::{Cursor, Findings};
use super::http_endpoint::is_own_auth;
use super::keys::{self, Level};
use super::spanned::{Data, Member, Spanned};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;

/// Above it, `timeout` in a file of another client may be in milliseconds.
const MAX_USUAL_TIMEOUT: Duration = Duration::from_secs(3600);
/// The keys of each kind of server that editors of other clients write empty for the other kind.
const OF_PROCESS: [&str; 3] = ["args", "env", "inherit_env"];
const OF_HTTP: [&str; 1] = ["headers"];

/// Returns an entry as a source of a tree.
pub(super) fn as_source(findings: &mut Findings<'_>, entry: &Cursor<'_>) -> Spanned {
    let mut source = entry.value.clone();
    let Data::Object(members) = &mut source.data else {
        return source;
    };
    members.retain(|member| is_kept(findings, entry, member));
    for member in &mut *members {
        if matches!(member.key.as_str(), "backend" | "type") {
            rename_transport(&mut member.value);
        }
    }
    settle_type(findings, entry, members);
    let program = entry.get("command").filter(|_| entry.get("args").is_none());
    // With arguments, `command` is the program itself.
    if let Some(program) = program.filter(|it| matches!(it.value.data, Data::String(_))) {
        let at = program.value.at;
        members.push(Member {
            at,
            key: "args".to_owned(),
            value: Spanned {
                at,
                data: Data::Array(Vec::new()),
            },
        });
    }
    source
}

/// Whether a member has a meaning in a source; else a warning says so.
fn is_kept(findings: &mut Findings<'_>, entry: &Cursor<'_>, member: &Member) -> bool {
    let value = entry.member(member);
    match member.key.as_str() {
        "enabled" => false,
        "type" => fields::string(findings, &value).is_some(),
        "auth" if !is_own_auth(&value) => {
            keys::unknown_or_foreign(findings, &value, "auth");
            false
        }
        "trust" if matches!(value.value.data, Data::Bool(_)) => {
            let message = "a `trust` that is a boolean has no meaning here and is ignored";
            let diagnostic = Diagnostic::warning(Code::KeyIgnored, message);
            let help = "write the level: `trusted`, `verified` or `untrusted`";
            findings.add_key(&value, diagnostic.help(help));
            false
        }
        "timeout" => is_seconds(findings, &value),
        key if OF_PROCESS.contains(&key) => entry.get("command").is_some() || !is_empty(&value),
        key if OF_HTTP.contains(&key) => entry.get("url").is_some() || !is_empty(&value),
        key if Level::Source.keys().contains(&key) => true,
        key => {
            keys::unknown_or_foreign(findings, &value, key);
            false
        }
    }
}

fn is_empty(value: &Cursor<'_>) -> bool {
    match &value.value.data {
        Data::Object(members) => members.is_empty(),
        Data::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Writes the name of a transport as a source has it.
fn rename_transport(value: &mut Spanned) {
    if let Data::String(name) = &mut value.data
        && matches!(
            name.as_str(),
            "sse" | "streamable-http" | "streamableHttp" | "streamable_http"
        )
    {
        "http".clone_into(name);
    }
}

/// Gives `type` the name `backend`, unless the entry has both.
fn settle_type(findings: &mut Findings<'_>, entry: &Cursor<'_>, members: &mut Vec<Member>) {
    let place = |members: &[Member], key: &str| members.iter().position(|one| one.key == key);
    let Some(at) = place(members, "type") else {
        return;
    };
    if !matches!(&members[at].value.data, Data::String(name) if ["stdio", "http"].contains(&name.as_str()))
    {
        let typed = members.remove(at);
        let message = "`type` is neither `stdio` nor `http`".to_owned();
        return fields::out_of_range(findings, &entry.member(&typed), message);
    }
    let Some(backend) = place(members, "backend") else {
        "backend".clone_into(&mut members[at].key);
        return;
    };
    let typed = members.remove(at);
    let backend = backend - usize::from(backend > at);
    let (Data::String(one), Data::String(other)) =
        (&members[backend].value.data, &typed.value.data)
    else {
        return;
    };
    if one != other {
        let message = "`backend` and `type` contradict each other";
        let diagnostic = Diagnostic::error(Code::ConfigSourceKind, message);
        findings.add(&entry.member(&typed), diagnostic);
        members.remove(backend);
    }
}

/// Whether a time is in seconds. Other clients count milliseconds: a value above the bound for seconds is ignored.
fn is_seconds(findings: &mut Findings<'_>, value: &Cursor<'_>) -> bool {
    let Data::Number(text) = &value.value.data else {
        return true;
    };
    let range = keys::key(Level::Source, "timeout").numbers::<f64>();
    let number = text.parse::<f64>().unwrap_or_default();
    if number > *range.end() && number < 1e9 {
        let message = "`timeout` is in seconds here, at most 86400; it is ignored";
        let diagnostic = Diagnostic::warning(Code::KeyIgnored, message);
        let help = "other clients count milliseconds; write seconds";
        findings.add(value, diagnostic.help(help));
        return false;
    }
    if number > MAX_USUAL_TIMEOUT.as_secs_f64() && range.contains(&number) {
        findings.add(value, suspicious_timeout(Duration::from_secs_f64(number)));
    }
    true
}

/// Returns the warning about a `timeout` that is valid in seconds, and usual in milliseconds.
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
