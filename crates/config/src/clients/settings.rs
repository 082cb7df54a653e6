//! Keys at the top of a client's file: keys of a config are kept, keys of the client are not errors.

use super::{Converted, Note, NoteKind};
use crate::keys::{self, Level};
use crate::spanned::{Data, Member, Spanned};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::child_pointer;
use broker_model::text::shown_line;

/// Keys that say who may do what, and how much. A value of another shape is never taken for a client's setting.
const STRICT: [&str; 8] = [
    "access",
    "audit",
    "identities",
    "audits_required",
    "allowed_hosts",
    "allowed_origins",
    "limits",
    "trust",
];

/// Keeps the servers and the settings of a config, and notes the other keys. If a person named the client, only
/// servers are kept.
pub(super) fn keep_own(
    members: &mut Vec<Member>,
    servers: &str,
    is_named: bool,
    converted: &mut Converted,
) {
    members.retain(|member| {
        let key = member.key.as_str();
        if key == servers {
            return true;
        }
        // Questions of VS Code to its user: a use of one is reported where it is.
        if is_named || key == "inputs" {
            converted.settings_of_client.push(key.to_owned());
            return false;
        }
        if is_own(key, &member.value) {
            return true;
        }
        if let Some(problem) = problem(member) {
            let problem = problem.at(child_pointer("", key));
            converted.problems.push((member.at, problem));
        } else {
            converted.notes.extend(typing_error(member));
            converted.settings_of_client.push(key.to_owned());
        }
        false
    });
}

/// The note about a key that differs from one of a config by a typing error: ignoring `acces` in silence would let
/// every caller in.
fn typing_error(member: &Member) -> Option<Note> {
    let key = member.key.as_str();
    let most = if key.len() < 10 { 1 } else { 2 };
    let distance = |own: &str| strsim::osa_distance(key, own);
    let mut own = Level::Top.keys().iter();
    let near = own.find(|own| !own.starts_with('$') && (1..=most).contains(&distance(own)))?;
    let key = shown_line(key, 80);
    Some(Note {
        at: member.at,
        pointer: child_pointer("", &member.key),
        server: String::new(),
        kind: NoteKind::Changed(format!(
            "`{key}` is ignored as a setting of a client; did you mean `{near}`?"
        )),
    })
}

/// Whether a key at the top of a client's file is a setting of a config: it has the name of one, and its value has
/// the shape of one.
fn is_own(key: &str, value: &Spanned) -> bool {
    // One key of a config is enough, so that a typing error in another one is reported.
    let has_key = |level: Level| {
        let members = value.members();
        let mut known = members.iter();
        matches!(value.data, Data::Object(_))
            && (members.is_empty()
                || known.any(|member| level.keys().contains(&member.key.as_str())))
    };
    let is_list = matches!(value.data, Data::Array(_));
    match key {
        // It describes the file of the client.
        "tree" | "mcpServers" => false,
        "mcp" => has_key(Level::Mcp),
        "search" => has_key(Level::Search),
        "audit" => has_key(Level::Audit),
        "telemetry" => has_key(Level::Telemetry),
        "trust" => has_key(Level::Trust),
        "access" => has_key(Level::Access),
        "identities" => has_key(Level::Identities),
        "limits" => has_key(Level::Limits),
        "types" => matches!(value.data, Data::Bool(_)),
        "$schema" => matches!(value.data, Data::String(_)),
        "audits_required" => matches!(value.data, Data::Bool(_) | Data::Number(_)),
        "allowed_hosts" | "allowed_origins" => is_list,
        // No client has a key of such a name.
        key => Level::Top.keys().contains(&key),
    }
}

/// The error for a key that is one of a config and cannot be read as one.
fn problem(member: &Member) -> Option<Diagnostic> {
    let key = member.key.as_str();
    if STRICT.contains(&key) {
        let message =
            format!("`{key}` is a setting of a config, and its value has not the shape of one");
        let help = format!(
            "correct `{key}` as docs/config.md describes it; if it is a setting of the client, convert the file: `broker-gen import --from CLIENT FILE`"
        );
        return Some(Diagnostic::error(Code::ConfigShape, message).help(help));
    }
    is_misplaced(key, Level::Top).then(|| keys::unknown_key(key, Level::Top))
}

/// Whether a key that is unknown at this level is one of a config at another level, with a name that no client has.
fn is_misplaced(key: &str, level: Level) -> bool {
    (key.contains('_') || STRICT.contains(&key))
        && !level.keys().contains(&key)
        && keys::has_elsewhere(key, level)
}

/// The error for a key of a server that belongs at another place of a config.
pub(super) fn misplaced(key: &str) -> Option<Diagnostic> {
    is_misplaced(key, Level::Source).then(|| keys::unknown_key(key, Level::Source))
}
