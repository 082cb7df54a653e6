//! `accept --moved`: carries the entries of a source over to its new path, for equal bytes of an equal source.

use std::path::Path;

use broker_audits_file::HintValues;
use broker_build::build_script::parse_config;
use broker_config::Config;
use broker_model::lock::{LeftOutPart, Lock};
use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use crate::audits::{Audits, Decision, Move};
use crate::moved::{Comparison, Former};

/// The old and the new path of a source, as the command line has them.
#[derive(Debug)]
pub struct Paths<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// The lock to search for the old path, instead of the one beside the config and the last commit.
    pub baseline: Option<&'a str>,
}

/// The entries of the old path for the new one, without those that are there, and warnings. `lock` is the one beside the config.
pub fn entries(
    file: &Path,
    lock: Option<&Lock>,
    audits: &Audits,
    paths: &Paths<'_>,
    who: &str,
) -> Result<(Vec<Decision>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let shown = file.to_string_lossy();
    let config = parse_config(file, &shown)?.config;
    let [old, new] = [path(paths.old)?, path(paths.new)?];
    if old == new {
        let message = format!("both paths are `{old}`");
        return Err(refused(
            message,
            "Give the old path first, then the path in the config.",
        ));
    }
    if !audits.name_source(&old) {
        let message = format!("no entry of the audits is of `{old}`");
        let help = "Give the path in the audits file first, then the path in the config.";
        return Err(refused(message, help));
    }
    let former = Former::new(&config, lock, file, paths.baseline);
    match former.compare(&old, &new) {
        Some(Comparison::Same) => {}
        None => return Err(no_source(&config, &new)),
        Some(Comparison::Other { old: was, new: is }) => {
            let message = format!("`{old}` runs `{was}`, and `{new}` runs `{is}`");
            let help = "Another server needs a review: run `broker-gen review`.";
            return Err(refused(message, help));
        }
        Some(Comparison::Unknown(reason)) => {
            let message = format!("the command of `{old}` is unknown: {reason}");
            let help =
                "Name a lock that has the old path: `--baseline git:REV`, or `--baseline FILE`.";
            return Err(refused(message, help));
        }
    }
    // `lock` writes no lock for a config with unaudited hints. Then the bytes to compare are in the lock at the old path.
    let is_locked = lock.is_some_and(|lock| has(lock, &new));
    let (locked, parts) = match (is_locked, lock) {
        (true, Some(lock)) => (lock.source(new.as_str()), parts(lock, &new)),
        _ => {
            let parts = lock.map(|lock| parts(lock, &old));
            (former.locked(&old).ok(), parts.unwrap_or_default())
        }
    };
    let hints = |tool: &str| {
        let own = config.source(&new)?.overrides.get(tool)?;
        own.annotations.as_ref().map(HintValues::new)
    };
    let moved = Move {
        old: &old,
        new: &new,
        who,
        locked,
        left_out: &parts,
        hints: &hints,
    };
    let carried = audits.moved(&moved);
    if carried.matching == 0 {
        let message = format!("no entry of `{old}` is for bytes that `{new}` has");
        let config = shell_word(&shown);
        let help = format!("Run `broker-gen review --config {config}`.");
        return Err(refused(message, &help));
    }
    let (old, new) = (old.as_str(), new.as_str());
    Ok((carried.new, audits.violations().left_behind(old, new)))
}

fn path(text: &str) -> Result<NodePath, Vec<Diagnostic>> {
    NodePath::parse(text).map_err(|error| {
        let message = format!("`--moved {}`: {error}", shown_line(text, 200));
        vec![Diagnostic::error(DiagnosticCode::PathInvalid, message)]
    })
}

/// Whether a lock has a source, or leaves it out as a whole.
fn has(lock: &Lock, path: &NodePath) -> bool {
    lock.source(path.as_str()).is_some() || lock.left_out_source(path).is_some()
}

fn parts<'l>(lock: &'l Lock, path: &NodePath) -> Vec<LeftOutPart<'l>> {
    let parts = lock.left_out_parts().into_iter();
    parts.filter(|part| part.source == path).collect()
}

fn no_source(config: &Config, path: &NodePath) -> Vec<Diagnostic> {
    let known: Vec<_> = config
        .sources()
        .map(|one| format!("`{}`", one.path))
        .collect();
    let message = format!("`{path}` is not a source of the config");
    let help = format!("The sources are {}.", shown_line(&known.join(", "), 1000));
    refused(message, &help)
}

fn refused(message: String, help: &str) -> Vec<Diagnostic> {
    vec![Diagnostic::error(DiagnosticCode::MovedRefused, message).help(help)]
}
