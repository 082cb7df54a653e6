//! The merge driver of git: `lock --merge-driver %O %A %B %P`. Git passes three files and the path of the merged one;
//! the result replaces the second file, and an exit code that is not 0 means a conflict. Then the file has markers, so
//! that no reader takes it. Only a second file that is not a regular one is left as it is; git never passes one.

use std::fs;
use std::path::{Path, PathBuf};

use broker_model::conflict_markers::with_markers;
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::lock_file::config_of_lock;
use broker_review::whole_file::write_whole;

use super::config_of::{self, Bound, MergedConfig};
use super::settle::{settle, settle_by_digest};
use super::sides::{Kind, Texts, not_read, refuse_same, unreadable};
use super::three_way::{Sides, merge};
use super::{Locks, conflict, merge_audits, refuse_large};
use crate::cli::output::{self, say};

/// Merges the files `BASE OURS THEIRS [PATH]` and replaces OURS.
pub(in crate::cli::lock) fn run(files: &[PathBuf]) -> Exit {
    let [base, ours, theirs, path @ ..] = files else {
        return output::diagnostics(&unreadable("`--merge-driver` takes %O %A %B %P".to_owned()));
    };
    let path = path.first().map(PathBuf::as_path);
    if let Err(problems) = refuse_unwritable(ours) {
        let exit = output::diagnostics(&problems);
        say(text!("{}: unchanged, and not merged", ours.display()));
        return exit;
    }
    let sides = [base, ours, theirs].map(|file| read(file, path));
    let merged = match &sides {
        [Ok(of_base), Ok(of_ours), Ok(of_theirs)] => {
            let files = [base, ours, theirs].map(Clone::clone);
            refuse_same(&files).and_then(|()| merged(path, of_base, of_ours, of_theirs))
        }
        _ => {
            let problems = sides.iter().filter_map(|side| side.as_ref().err());
            Err(problems.flatten().cloned().collect())
        }
    };
    let (text, problems) = match merged {
        Ok(text) => (text, Vec::new()),
        Err(problems) => {
            let [_, ours, theirs] = sides.map(Result::unwrap_or_default);
            (with_markers(&ours, &theirs), problems)
        }
    };
    let mut exit = output::diagnostics(&problems);
    if !problems.is_empty() {
        say_way(path);
        // Whatever the problems are, git must not take the file.
        exit = exit.or(Exit::Failure);
    }
    if let Err(error) = write_whole(ours, text.as_bytes()) {
        // Git must not take the side that is still in the file.
        drop(fs::write(ours, ""));
        let message = format!("`{}` cannot be written: {error}", ours.display());
        let problem = Diagnostic::error(DiagnosticCode::FileWrite, message);
        exit = exit.or(output::diagnostics(&[problem]));
    }
    exit
}

/// Names the way out of a conflict.
fn say_way(path: Option<&Path>) {
    let name = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
    say(text!(
        "{}not merged: settle the config first, then run `broker-gen lock --merge`",
        name
    ));
}

/// Refuses a file in whose place no markers can be written. The target of a link may belong to another repository, and
/// markers in place of the link would remove the link.
fn refuse_unwritable(ours: &Path) -> Result<(), Vec<Diagnostic>> {
    match fs::symlink_metadata(ours) {
        Ok(data) if data.is_symlink() => Err(linked(ours)),
        Ok(data) if !data.is_file() => {
            let shown = shown_line(&ours.to_string_lossy(), 200);
            Err(unreadable(format!("`{shown}` is not a regular file")))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn linked(file: &Path) -> Vec<Diagnostic> {
    let shown = shown_line(&file.to_string_lossy(), 200);
    unreadable(format!(
        "`{shown}` is a symbolic link; git passes regular files"
    ))
}

/// Reads one of the files that git passes. Refuses a link, since git does not pass links.
fn read(file: &Path, path: Option<&Path>) -> Result<String, Vec<Diagnostic>> {
    if fs::symlink_metadata(file).is_ok_and(|data| data.is_symlink()) {
        return Err(linked(file));
    }
    let kind = Kind::detect(path, "{");
    broker_files::read_text(file, kind.max_bytes()).map_err(|error| not_read(file, &error))
}

fn merged(
    path: Option<&Path>,
    base: &str,
    ours: &str,
    theirs: &str,
) -> Result<String, Vec<Diagnostic>> {
    let texts = Texts {
        name: path.map_or_else(
            || "the merged file".to_owned(),
            |path| path.to_string_lossy().into_owned(),
        ),
        // Without a common file git passes an empty one.
        base: (!base.is_empty()).then(|| base.to_owned()),
        ours: ours.to_owned(),
        theirs: theirs.to_owned(),
    };
    match Kind::detect(path, ours) {
        Kind::Lock => merge_locks(path, &texts),
        Kind::Audits => merge_audits(&texts),
    }
}

fn merge_locks(path: Option<&Path>, texts: &Texts) -> Result<String, Vec<Diagnostic>> {
    let locks = Locks::read(texts)?;
    let sides = locks.sides();
    let merged = merge(&sides, &Default::default());
    // No person has settled the config yet, so that it decides no conflict.
    if !merged.conflicts.is_empty() {
        return Err(merged.conflicts.iter().map(conflict).collect());
    }
    let config = path.and_then(config_of_lock);
    let found = config
        .as_deref()
        .map(|file| (file, config_of::find(file, &sides)));
    let by_digest = |merged, ended_by| {
        let side = side_of_config(&sides, ended_by)?;
        let lock = settle_by_digest(side, config.as_deref(), &sides, merged)?;
        let text = lock.to_text();
        refuse_large(&texts.name, &text, Kind::Lock)?;
        Ok(text)
    };
    match found {
        Some((file, MergedConfig::Known(config))) => {
            let settled = settle(&config, file, &sides, merged)?;
            let text = settled.lock.to_text();
            refuse_large(&texts.name, &text, Kind::Lock)?;
            for (source, one) in &settled.left_out {
                say(text!("{}: {}", source, one.problem.message));
            }
            Ok(text)
        }
        Some((file, MergedConfig::Conflict)) => {
            let message = format!("the configs of both sides conflict: `{}`", file.display());
            Err(vec![Diagnostic::error(
                DiagnosticCode::MergeConflict,
                message,
            )])
        }
        Some((file, MergedConfig::Invalid(mut problems))) => {
            let message = format!("the merged config is not valid: `{}`", file.display());
            problems.push(Diagnostic::error(DiagnosticCode::MergeConflict, message));
            Err(problems)
        }
        Some((_, MergedConfig::Unknown(ended_by))) => by_digest(merged, ended_by),
        None => by_digest(merged, None),
    }
}

/// The side that has the merged config, if one side at most changed it. `ended_by` is the bound that ended the search for
/// its text.
fn side_of_config<'a>(
    sides: &Sides<'a>,
    ended_by: Option<Bound>,
) -> Result<&'a Lock, Vec<Diagnostic>> {
    let (ours, theirs) = (&sides.ours.config_digest, &sides.theirs.config_digest);
    let base = sides.base.map(|base| &base.config_digest);
    if ours == theirs || base == Some(theirs) {
        Ok(sides.ours)
    } else if base == Some(ours) {
        Ok(sides.theirs)
    } else {
        let message = match ended_by {
            None => "both sides changed the config, and git has no version of it that belongs to each lock".to_owned(),
            Some(bound) => format!(
                "both sides changed the config, and the search in git for the versions that belong to the locks ended {bound}"
            ),
        };
        Err(vec![Diagnostic::error(
            DiagnosticCode::MergeConflict,
            message,
        )])
    }
}
