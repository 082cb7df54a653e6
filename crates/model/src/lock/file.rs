//! The lock file: writing gives deterministic text, reading verifies every digest and refuses unknown members.

use serde_json::{Map, Value};

use super::{LOCK_VERSION, Lock, LockedSource, MAX_LOCK_VERSION, format2};
use crate::codes::DiagnosticCode;
use crate::diagnostic::Diagnostic;
use crate::digest::{Digest, HASH_MODEL};
use crate::json::{parse, position_of_offset, position_of_pointer, to_review_text};

/// The known members of the top level.
pub(super) const KEYS: [&str; 6] = [
    "config_digest",
    "generator",
    "hash_model",
    "lock_version",
    "root_digest",
    "sources",
];

impl Lock {
    /// The file's text. Equal locks give equal bytes on every machine.
    pub fn to_text(&self) -> String {
        let mut document = self.document();
        document.insert(
            "root_digest".to_owned(),
            root_digest(&document).as_str().into(),
        );
        document.insert("generator".to_owned(), self.generator.as_str().into());
        to_review_text(&Value::Object(document))
    }

    /// The digest of the lock without `generator` and `root_digest`.
    pub fn root_digest(&self) -> Digest {
        root_digest(&self.document())
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
        let loose: Value = serde_json::from_str(text).map_err(|error| vec![torn(text, &error)])?;
        let Some(members) = loose.as_object() else {
            return Err(vec![
                Diagnostic::error(DiagnosticCode::LockCorrupt, "the lock is not a JSON object")
                    .at(""),
            ]);
        };
        let version = read_version(members)?;
        if version > 1 {
            format2::refuse_unknown_members(members)?;
        }
        let document = parse(text).map_err(|error| {
            vec![Diagnostic::error(
                DiagnosticCode::LockCorrupt,
                error.to_string(),
            )]
        })?;

        let mut problems = Vec::new();
        for key in members.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            problems.push(
                Diagnostic::error(
                    DiagnosticCode::LockCorrupt,
                    format!("unknown member `{key}`"),
                )
                .at(crate::json::child_pointer("", key)),
            );
        }
        let digest_at = |key: &str| {
            document
                .get(key)
                .and_then(Value::as_str)
                .and_then(Digest::from_written)
        };
        let written_root = digest_at("root_digest");
        let Some(config_digest) = digest_at("config_digest") else {
            problems.push(
                Diagnostic::error(
                    DiagnosticCode::LockCorrupt,
                    "`config_digest` is not a valid digest",
                )
                .at("/config_digest"),
            );
            return Err(problems);
        };
        let mut lock = Self {
            version,
            config_digest,
            generator: document
                .get("generator")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            sources: Vec::new(),
        };
        for (index, value) in document
            .get("sources")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let at = format!("/sources/{index}");
            match LockedSource::from_json(value) {
                Ok(source) if lock.source(source.path.as_str()).is_some() => {
                    problems.push(
                        Diagnostic::error(
                            DiagnosticCode::LockOrphan,
                            format!("the lock has the source `{}` twice", source.path),
                        )
                        .at(at),
                    );
                }
                Ok(source) => lock.sources.push(source),
                Err(found) => problems.extend(found.into_iter().map(|problem| {
                    let pointer = format!("{at}{}", problem.pointer.as_deref().unwrap_or_default());
                    problem.at(pointer)
                })),
            }
        }
        if problems.is_empty() {
            let mut covered = document.as_object().cloned().unwrap_or_default();
            covered.retain(|key, _| !matches!(key.as_str(), "generator" | "root_digest"));
            let found = root_digest(&covered);
            if written_root.as_ref() != Some(&found) {
                let message = format!(
                    "the lock was edited: the root digest of its content is {found}, and `root_digest` differs"
                );
                problems.push(
                    Diagnostic::error(DiagnosticCode::LockCorrupt, message).at("/root_digest"),
                );
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        lock.sources.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(lock)
    }

    /// The document that the root digest covers.
    fn document(&self) -> Map<String, Value> {
        let mut sources: Vec<_> = self.sources.iter().collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let mut out = Map::new();
        out.insert(
            "config_digest".to_owned(),
            self.config_digest.as_str().into(),
        );
        out.insert("hash_model".to_owned(), HASH_MODEL.into());
        out.insert("lock_version".to_owned(), self.version.into());
        out.insert(
            "sources".to_owned(),
            sources.into_iter().map(LockedSource::to_json).collect(),
        );
        out
    }
}

fn root_digest(covered: &Map<String, Value>) -> Digest {
    Digest::of("mcp-broker:lock:1", &Value::Object(covered.clone()))
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
    // A line of JSON never begins like this, so one marker is enough.
    let marked = |line: &str| {
        ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
            .iter()
            .any(|mark| line.starts_with(mark))
    };
    match text.lines().position(marked) {
        None => Ok(()),
        Some(line) => {
            let mut problem = Diagnostic::error(
                DiagnosticCode::LockCorrupt,
                "the lock has merge-conflict markers",
            )
            .help("Two branches changed it, and a merged text has wrong digests: take either side, then make a new lock with `broker-gen lock`.");
            problem.position = Some(crate::json::Position {
                line: line + 1,
                column: 1,
            });
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
    let read = format!("{LOCK_VERSION} to {MAX_LOCK_VERSION}");
    let found = match members.get("lock_version").and_then(Value::as_u64) {
        Some(known @ LOCK_VERSION..=MAX_LOCK_VERSION) => known,
        Some(newer) if newer > MAX_LOCK_VERSION => {
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
                crate::text::shown_line(other.unwrap_or("missing"), 40)
            ),
            "Use the broker-gen that wrote it, or make a new lock with this one.",
            "/hash_model",
        ),
    }
}
