//! Writes the lock, or shows what would be written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use broker_build::describe;
use broker_doctor::text_between_locks;
use broker_drift::{Report, access_lines};
use broker_files::ReadError;
use broker_model::lock::{LOCK_VERSION, Lock, MAX_BYTES, PARTIAL_LOCK_VERSION};
use broker_model::{Diagnostic, DiagnosticCode, NodePath, text};
use broker_review::lock_diff::access;
use broker_review::lock_diff::diff_locks;
use broker_review::lock_file::{LockFile, parse_lock};
use broker_review::whole_file::{turn, write_whole};

use super::draft::{Draft, LeftOutOf};
use super::merge::settle::{Settled, settle};
use super::merge::three_way::{Sides, merge};
use crate::cli::input::Input;
use crate::cli::output::{self, say};

/// Maximum number of shown changes of access.
const MAX_ACCESS_LINES: usize = 40;

/// The lock of a draft. It has an older version if the lock before has it and is the same.
pub(super) fn lock_of(draft: Draft, input: &Input, old: Option<&Lock>) -> Lock {
    let config = &input.config;
    let mut lock = draft.into_lock(config.digest(), config.access_digest());
    describe::describe(&mut lock, config);
    lock.settle_version(old);
    lock
}

/// The file as it was before the run.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Its text; `None` if the file was missing or not readable as text.
    text: Option<String>,
    /// The lock in it, if it could be read.
    pub(super) lock: Option<Lock>,
}

impl Before {
    /// Reads the file. A lock that cannot be read is an error only if parts of it are needed.
    pub(super) fn read(input: &Input, is_needed: bool) -> Result<Self, Vec<Diagnostic>> {
        let text = broker_files::read_text(&input.lock_path, MAX_BYTES);
        match parse_lock(&input.lock_path, text) {
            Ok(LockFile { lock, text }) => Ok(Self {
                text: Some(text),
                lock: Some(lock),
            }),
            Err(problems) if is_needed => Err(problems),
            Err(_) => Ok(Self {
                text: current_text(input).unwrap_or_default(),
                lock: None,
            }),
        }
    }
}

/// The text of the file; `None` if there is no file.
fn current_text(input: &Input) -> Result<Option<String>, ReadError> {
    match broker_files::read_text(&input.lock_path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A lock that was written.
pub(super) struct Written {
    pub(super) lock: Lock,
    /// Whether the file has it.
    pub(super) is_in_file: bool,
    /// The parts that it leaves out in addition to the parts of the draft.
    pub(super) left_out: Vec<(NodePath, LeftOutOf)>,
}

/// Writes the lock unless the file has it already. If another run wrote the file meanwhile, its sources are taken over:
/// of two runs at once, neither undoes the other.
pub(super) fn write(
    lock: Lock,
    input: &Input,
    config: &Path,
    before: &Before,
    dry_run: bool,
) -> Result<Written, Vec<Diagnostic>> {
    if dry_run {
        let is_in_file = write_over(&lock, input, before.lock.as_ref(), true)?;
        return Ok(Written {
            lock,
            is_in_file,
            left_out: Vec::new(),
        });
    }
    let _turn = turn(&input.lock_path);
    // A file that could not be read before the run is replaced like a missing file.
    let current = match (current_text(input), &before.text) {
        (Ok(None) | Err(_), None) => None,
        (Ok(Some(text)), _) => Some(text),
        (Ok(None), Some(_)) => return Err(changed_meanwhile(input, "is gone")),
        (Err(error), Some(_)) => {
            return Err(changed_meanwhile(
                input,
                &format!("cannot be read now: {error}"),
            ));
        }
    };
    match current {
        Some(text) if Some(&text) != before.text.as_ref() => {
            let current = parse_lock(&input.lock_path, Ok(text)).map_err(|problems| {
                let mut all = changed_meanwhile(input, "cannot be read now");
                all.extend(problems);
                all
            })?;
            let settled = with_current(&lock, input, config, before, &current.lock)?;
            say(text!(
                "{}: another run wrote it meanwhile; its sources are taken over",
                input.lock_path.display()
            ));
            let is_in_file = write_over(&settled.lock, input, Some(&current.lock), false)?;
            Ok(Written {
                lock: settled.lock,
                is_in_file,
                left_out: settled.left_out,
            })
        }
        _ => {
            let is_in_file = write_over(&lock, input, before.lock.as_ref(), false)?;
            Ok(Written {
                lock,
                is_in_file,
                left_out: Vec::new(),
            })
        }
    }
}

/// The problem of a lock that another program changed during the run.
fn changed_meanwhile(input: &Input, how: &str) -> Vec<Diagnostic> {
    let message = format!(
        "`{}` was changed while this run launched the sources, and {how}",
        input.lock_path.display()
    );
    vec![Diagnostic::error(DiagnosticCode::LockCorrupt, message)]
}

/// The lock of this run with the sources that another run has written since.
fn with_current(
    lock: &Lock,
    input: &Input,
    config: &Path,
    before: &Before,
    current: &Lock,
) -> Result<Settled, Vec<Diagnostic>> {
    let sides = Sides {
        base: before.lock.as_ref(),
        ours: lock,
        theirs: current,
    };
    let merged = merge(&sides, &BTreeMap::new());
    settle(&input.config, config, &sides, merged).map_err(|problems| {
        let help = "Another run wrote the lock while this one launched the sources: run it again.";
        let problems = problems.into_iter();
        problems.map(|problem| problem.help(help)).collect()
    })
}

/// Writes the lock over the lock in the file; returns whether the file has it now.
fn write_over(
    lock: &Lock,
    input: &Input,
    old: Option<&Lock>,
    dry_run: bool,
) -> Result<bool, Vec<Diagnostic>> {
    let shown = input.lock_path.display();
    let text = lock.to_text();
    if text.len() > MAX_BYTES {
        let message = format!(
            "the lock would have {} bytes; at most {MAX_BYTES} are read",
            text.len()
        );
        let help = "Hide tools with `tool_filter`, or lock fewer sources in one config.";
        return Err(vec![
            Diagnostic::error(DiagnosticCode::FileWrite, message).help(help),
        ]);
    }
    let is_same = old.is_some_and(|old| old.root_digest() == lock.root_digest());
    // A lock of an older version stays as it is, with the program that wrote it.
    let has_older_version = lock.version
        < match input.config.access {
            None => LOCK_VERSION,
            Some(_) => PARTIAL_LOCK_VERSION,
        }
        || lock.has_older_words();
    if (is_same && has_older_version) || broker_files::holds(&input.lock_path, text.as_bytes()) {
        say(text!("{} is up to date", shown));
        return Ok(true);
    }
    if dry_run {
        would_write(input, lock);
        return Ok(false);
    }
    if let Some(old) = old {
        say_access(input, old, lock);
    }
    write_whole(&input.lock_path, text.as_bytes()).map_err(|error| {
        vec![Diagnostic::error(
            DiagnosticCode::FileWrite,
            format!("`{shown}` cannot be written: {error}"),
        )]
    })?;
    say(text!("wrote {}: review and commit it, then build", shown));
    if old.is_some_and(|old| old.version < LOCK_VERSION && old.version < lock.version) {
        say(text!(
            "note: the lock had format version 1 and has version {} now, so its lines moved; `broker-gen diff --baseline git:HEAD` shows what changed",
            lock.version
        ));
    }
    Ok(true)
}

/// Who gains or loses what by the new lock.
fn say_access(input: &Input, old: &Lock, new: &Lock) {
    let mut report = Report::default();
    access::add(&mut report, &input.config, &old.sources, &new.sources);
    for line in access_lines(&report.access, MAX_ACCESS_LINES) {
        say(text!("access: {}", line));
    }
}

/// The changes of a dry run, as a report on two locks.
fn would_write(input: &Input, lock: &Lock) {
    let shown = input.lock_path.display();
    let why = match fs::metadata(&input.lock_path) {
        Err(_) => ", which does not exist yet",
        Ok(_) => match input.read_lock() {
            Ok(old) => {
                let mut report = diff_locks(&old.lock, lock);
                let (old, new) = (&old.lock.sources, &lock.sources);
                access::add_between_locks(&mut report, &input.config, old, new);
                output::data(&text_between_locks(&report));
                ""
            }
            Err(_) => "; the existing one cannot be read, so it is not compared",
        },
    };
    say(text!("would write {}{}", shown, why));
}
