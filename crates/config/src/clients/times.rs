//! Times of clients in the seconds of a config. docs/clients.md has the table of clients, keys and units.

use super::Client;
use super::entry::{Entry, position};
use crate::keys::{self, Level};
use crate::spanned::{Data, Member, Spanned};

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Seconds,
    Milliseconds,
    /// Seconds, but milliseconds from this number on: older versions of the client counted them.
    Both(f64),
}

/// A key of a client, the key of a config for the same time, and its unit.
type Row = (&'static str, &'static str, Unit);

const CODEX: [Row; 3] = [
    ("startup_timeout_sec", "startup_timeout", Unit::Seconds),
    ("startup_timeout_ms", "startup_timeout", Unit::Milliseconds),
    ("tool_timeout_sec", "timeout", Unit::Seconds),
];
/// A timeout of Zed has at most this number of seconds.
const MAX_SECONDS_OF_ZED: f64 = 1000.0;

/// The times of a client. Without a row, a number is read as seconds, as in a config.
fn rows(client: Option<Client>) -> &'static [Row] {
    match client {
        Some(Client::Claude | Client::Gemini | Client::Copilot | Client::AmazonQ) => {
            &[("timeout", "timeout", Unit::Milliseconds)]
        }
        Some(Client::LibreChat) => &[
            ("timeout", "timeout", Unit::Milliseconds),
            ("initTimeout", "startup_timeout", Unit::Milliseconds),
        ],
        Some(Client::Continue) => &[("connectionTimeout", "startup_timeout", Unit::Milliseconds)],
        Some(Client::Opencode) => &[
            ("timeout", "timeout", Unit::Milliseconds),
            ("request", "timeout", Unit::Milliseconds),
            ("startup", "startup_timeout", Unit::Milliseconds),
        ],
        Some(Client::Zed) => &[("timeout", "timeout", Unit::Both(MAX_SECONDS_OF_ZED))],
        Some(Client::Cline | Client::Roo | Client::Goose) => {
            &[("timeout", "timeout", Unit::Seconds)]
        }
        _ => &CODEX,
    }
}

/// Converts the times of a server.
pub(super) fn convert(entry: &mut Entry<'_, '_>, members: &mut Vec<Member>) {
    if entry.rules.client == Some(Client::Opencode) {
        unnest(members);
    }
    for (theirs, ours, unit) in rows(entry.rules.client) {
        let Some(at) = position(members, theirs) else {
            continue;
        };
        let is_taken = theirs != ours && position(members, ours).is_some();
        let Some(member) = members.get_mut(at) else {
            continue;
        };
        let Data::Number(text) = &member.value.data else {
            // The reader of the entry says what is wrong with another value.
            continue;
        };
        let seconds = seconds(text, *unit);
        let (place, value_at) = (member.at, member.value.at);
        let in_range = seconds.is_some_and(|seconds| {
            let range = keys::key(Level::Source, ours).numbers();
            range.contains(&seconds)
        });
        // A number in seconds has the range of a config, and its reader says so.
        let is_converted = matches!(unit, Unit::Milliseconds | Unit::Both(_));
        if is_taken || (is_converted && !in_range) {
            members.remove(at);
            let reason = match is_taken {
                true => "another key has the time",
                false => "a config does not take a time of this length",
            };
            entry.not_taken(place, theirs, Some(reason));
            continue;
        }
        let text = match (is_converted, seconds) {
            (true, Some(seconds)) => decimal(seconds),
            _ => text.clone(),
        };
        (*ours).clone_into(&mut member.key);
        member.value = Spanned {
            at: value_at,
            data: Data::Number(text),
        };
        if theirs != ours {
            entry.renamed(ours, theirs);
        }
    }
}

fn seconds(text: &str, unit: Unit) -> Option<f64> {
    let number = text
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())?;
    Some(match unit {
        Unit::Milliseconds => number / 1000.0,
        Unit::Both(limit) if number >= limit => number / 1000.0,
        Unit::Both(_) | Unit::Seconds => number,
    })
}

/// Returns a number as JSON writes it; an integer has no fraction.
fn decimal(number: f64) -> String {
    number.to_string()
}

/// opencode has one number, or an object with one for each kind of request.
fn unnest(members: &mut Vec<Member>) {
    let Some(at) = position(members, "timeout") else {
        return;
    };
    let Some(Data::Object(inner)) = members.get_mut(at).map(|member| &mut member.value.data) else {
        return;
    };
    let inner = std::mem::take(inner);
    members.remove(at);
    members.extend(inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_in_milliseconds_is_a_number_of_seconds() {
        for (text, unit, expected) in [
            ("15000", Unit::Milliseconds, "15"),
            ("2500", Unit::Milliseconds, "2.5"),
            ("600000", Unit::Milliseconds, "600"),
            ("60", Unit::Both(1000.0), "60"),
            ("60000", Unit::Both(1000.0), "60"),
        ] {
            assert_eq!(seconds(text, unit).map(decimal).as_deref(), Some(expected));
        }
    }
}
