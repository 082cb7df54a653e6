//! The lock file: writing gives deterministic text, reading verifies every digest and refuses unknown members.

use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;

use super::wire::LockWire;
use super::{Lock, MIN_LOCK_VERSION, PARTIAL_LOCK_VERSION, format2};
use crate::codes::DiagnosticCode;
use crate::conflict_markers::first_marker;
use crate::diagnostic::Diagnostic;
use crate::digest::{Digest, HASH_MODEL};
use crate::json::{child_pointer, parse, position_of_offset, position_of_pointer, to_review_text};
use crate::text::shown_line;

impl Lock {
    /// The file's text. Equal locks give equal bytes on every machine.
    pub fn to_text(&self) -> String {
        let wire = LockWire::from(self);
        if self.version < 2 {
            // Sorted by key.
            return to_review_text(&json!(wire));
        }
        to_review_text(&wire)
    }

    /// The digest of the lock without `generator` and `root_digest`.
    pub fn root_digest(&self) -> Digest {
        LockWire::from(self).computed_root_digest()
    }

    /// Reads a lock and verifies every digest. `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        Self::read(text).map_err(|problems| {
            let placed = |problem: Diagnostic| {
                let position = problem
                    .position
                    .or_else(|| position_of_pointer(text, problem.pointer.as_deref()?));
                Diagnostic {
                    position,
                    ..problem.in_file(file)
                }
            };
            problems.into_iter().map(placed).collect()
        })
    }

    fn read(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let text = text.trim_start_matches('\u{feff}');
        refuse_merge_conflict(text)?;
        // The version is checked first: a newer lock is "another version", not "unknown member".
        let strict = parse(text);
        let loose = match &strict {
            Ok(document) => document.clone(),
            Err(_) => serde_json::from_str(text).map_err(|error| vec![torn(text, &error)])?,
        };
        let corrupt = DiagnosticCode::LockCorrupt;
        let Some(members) = loose.as_object() else {
            let problem = Diagnostic::error(corrupt, "the lock is not a JSON object");
            return Err(vec![problem.at("")]);
        };
        let version = read_version(members)?;
        format2::refuse_unknown_members(members, version)?;
        let document =
            strict.map_err(|error| vec![Diagnostic::error(corrupt, error.to_string())])?;
        let wire: LockWire =
            serde_path_to_error::deserialize(&document).map_err(|error| vec![malformed(&error)])?;
        // Serde accepts a list for an object, `null` for an absent member, and several forms of a word.
        let again = json!(wire);
        let place = match document == again {
            true => None,
            false => place_of_difference(&document, &again, ""),
        };
        if let Some(place) = place.or_else(|| wire.place_of_other_words()) {
            return Err(vec![other_form(&place)]);
        }
        wire.try_into()
    }
}

/// The error for a member at `place` that the writer would write in another form.
fn other_form(place: &str) -> Diagnostic {
    let member = place.rsplit('/').find(|token| !is_index(token));
    let message = format!(
        "`{}` has another form than `broker-gen lock` writes",
        shown_line(member.unwrap_or_default(), 80)
    );
    Diagnostic::error(DiagnosticCode::LockCorrupt, message).at(place)
}

/// The JSON pointer of the first member that differs, or that only one of both has.
fn place_of_difference(one: &Value, other: &Value, at: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(members), Value::Object(others)) => {
            let differs = members.iter().find_map(|(name, one)| {
                let at = child_pointer(at, name);
                match others.get(name) {
                    Some(other) => place_of_difference(one, other, &at),
                    None => Some(at),
                }
            });
            let is_added = |name: &&String| !members.contains_key(*name);
            differs.or_else(|| {
                others
                    .keys()
                    .find(is_added)
                    .map(|name| child_pointer(at, name))
            })
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(index, (one, other))| {
                place_of_difference(one, other, &format!("{at}/{index}"))
            })
        }
        _ => (one != other).then(|| at.to_owned()),
    }
}

fn is_index(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the place where the document deviates from the form of a lock.
fn malformed(error: &serde_path_to_error::Error<serde_json::Error>) -> Diagnostic {
    let mut pointer = String::new();
    for segment in error.path() {
        let token = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.clone(),
            Segment::Enum { .. } | Segment::Unknown => continue,
        };
        pointer = child_pointer(&pointer, &token);
    }
    let message = error.inner().to_string();
    if message.starts_with("data did not match any variant") {
        return other_form(&pointer);
    }
    let message = shown_line(&message, 300);
    Diagnostic::error(DiagnosticCode::LockCorrupt, message).at(pointer)
}

fn torn(text: &str, error: &serde_json::Error) -> Diagnostic {
    let message = format!("the lock is incomplete: {error}");
    let mut problem = Diagnostic::error(DiagnosticCode::LockCorrupt, message);
    // The parser counts columns in bytes, and reports 0 for an empty text.
    let before = text.split_inclusive('\n').take(error.line().max(1) - 1);
    let offset = before.map(str::len).sum::<usize>() + error.column().max(1) - 1;
    problem.position = Some(position_of_offset(text, offset));
    problem
}

fn refuse_merge_conflict(text: &str) -> Result<(), Vec<Diagnostic>> {
    match first_marker(text) {
        None => Ok(()),
        Some(at) => {
            let mut problem = Diagnostic::error(
                DiagnosticCode::LockCorrupt,
                "the lock has merge-conflict markers",
            )
            .help("Two branches changed it, and a merged text has wrong digests: settle the config first, then run `broker-gen lock --merge`, which launches nothing. docs/lock.md has the merge driver that does it in `git merge`. Without git, make a new lock with `broker-gen lock`.");
            problem.position = Some(position_of_offset(text, at));
            Err(vec![problem])
        }
    }
}

/// The version, if this program supports it and the digest formula.
fn read_version(members: &Map<String, Value>) -> Result<u64, Vec<Diagnostic>> {
    let refused = |message: String, help: &str, at: &str| {
        Err(vec![
            Diagnostic::error(DiagnosticCode::LockVersion, message)
                .help(help)
                .at(at),
        ])
    };
    let read = format!("{MIN_LOCK_VERSION} to {PARTIAL_LOCK_VERSION}");
    let found = match members.get("lock_version").and_then(Value::as_u64) {
        Some(known @ MIN_LOCK_VERSION..=PARTIAL_LOCK_VERSION) => known,
        Some(newer) if newer > PARTIAL_LOCK_VERSION => {
            return refused(
                format!("the lock has format version {newer}, this program reads {read}"),
                "Upgrade mcp-broker and broker-gen to the version that wrote it, or make a new lock with this one.",
                "/lock_version",
            );
        }
        Some(older) => {
            return refused(
                format!("the lock has format version {older}, this program reads {read}"),
                "Make a new lock with `broker-gen lock`.",
                "/lock_version",
            );
        }
        None => {
            return Err(vec![
                Diagnostic::error(DiagnosticCode::LockCorrupt, "`lock_version` is missing")
                    .at("/lock_version"),
            ]);
        }
    };
    match members.get("hash_model").and_then(Value::as_str) {
        Some(HASH_MODEL) => Ok(found),
        other => refused(
            format!(
                "the lock's digests have the formula `{}`, this program uses `{HASH_MODEL}`",
                shown_line(other.unwrap_or("missing"), 40)
            ),
            "Use the broker-gen that wrote it, or make a new lock with this one.",
            "/hash_model",
        ),
    }
}
