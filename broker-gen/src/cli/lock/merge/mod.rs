//! The merge of two locks, or of two audits files. It starts no server.
//!
//! `lock --merge` takes the sides from files or from git's index, and the config beside the lock. The config must be
//! settled. `lock --merge-driver` is a merge driver of git; `driver` has its rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use broker_audits_file::audits_file;
use broker_build::build_script::parse_config;
use broker_build::left_out_audits::LeftOutAudits;
use broker_build::lock_file;
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::{Diagnostic, DiagnosticCode, NodePath, text};
use broker_review::audits::Audits;
use broker_review::whole_file::{turn, write_whole};

use super::table;
use crate::cli::LockArgs;
use crate::cli::output::{self, say};

mod audits;
mod blocks;
mod config_of;
pub(super) mod driver;
pub(in crate::cli) mod settle;
mod sides;
#[cfg(test)]
mod tests;
pub(in crate::cli) mod three_way;

use settle::{conflict, remove_gone, settle};
use sides::{Kind, Texts, refuse_same, unmerged, unreadable};
use three_way::{Conflict, MergedSources, Side, Sides, merge};

/// The locks of a merge.
struct Locks {
    base: Option<Lock>,
    ours: Lock,
    theirs: Lock,
}

impl Locks {
    /// Reads the locks and verifies their digests. A base that cannot be read, since it is itself the conflict of an
    /// older merge, counts as missing.
    fn read(texts: &Texts) -> Result<Self, Vec<Diagnostic>> {
        let parse = |side, text: &str| Lock::parse(&texts.name_of(side), text);
        let ours = parse(Side::Ours, &texts.ours);
        let theirs = parse(Side::Theirs, &texts.theirs);
        let (ours, theirs) = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (ours, theirs) => {
                let problems = [ours.err(), theirs.err()].into_iter().flatten();
                return Err(problems.flatten().collect());
            }
        };
        let base = texts.base.as_ref();
        Ok(Self {
            base: base.and_then(|text| Lock::parse("base", text).ok()),
            ours,
            theirs,
        })
    }

    fn sides(&self) -> Sides<'_> {
        Sides {
            base: self.base.as_ref(),
            ours: &self.ours,
            theirs: &self.theirs,
        }
    }
}

/// `lock --merge` without `--source`.
pub(super) fn run(args: &LockArgs) -> Exit {
    let all = match texts(args) {
        Ok(all) => all,
        Err(problems) => {
            let exit = output::diagnostics(&problems);
            say("the merge was not written");
            return exit;
        }
    };
    let mut exit = Exit::Ok;
    for (kind, texts) in &all {
        let written = match kind {
            Kind::Lock => write_lock(args, texts),
            Kind::Audits => write_audits(args, texts),
        };
        exit = exit.or(written.unwrap_or_else(|problems| {
            let exit = output::diagnostics(&problems);
            say(text!("{}: the merge was not written", texts.name));
            exit
        }));
    }
    exit
}

/// `lock --merge` with `--source`: the lock of both sides. The named sources may conflict in it, since they are
/// launched.
pub(super) fn before_launch(args: &LockArgs) -> Result<Lock, Vec<Diagnostic>> {
    let all = texts(args)?;
    let Some((_, texts)) = all.iter().find(|(kind, _)| *kind == Kind::Lock) else {
        return Err(unreadable(
            "only audits are to be merged, which need no `--source`".to_owned(),
        ));
    };
    let locks = Locks::read(texts)?;
    let sides = locks.sides();
    let chosen = chosen(args)?;
    check_chosen(&chosen, &sides)?;
    let mut merged = merge(&sides, &chosen);
    let file = &args.config.file.config;
    let config = parse_config(file, &file.to_string_lossy())?.config;
    remove_gone(&config, &mut merged);
    let is_asked = |one: &Conflict| {
        args.config
            .sources
            .iter()
            .any(|path| path == one.path.as_str())
    };
    merged.conflicts.retain(|one| !is_asked(one));
    if !merged.conflicts.is_empty() {
        return Err(merged.conflicts.iter().map(conflict).collect());
    }
    let MergedSources {
        sources, left_out, ..
    } = merged;
    // Only its sources are taken over.
    Ok(Lock {
        sources,
        left_out,
        ..locks.ours
    })
}

/// The texts of the merge: of the files of the command line, or of every unmerged file beside the config.
fn texts(args: &LockArgs) -> Result<Vec<(Kind, Texts)>, Vec<Diagnostic>> {
    let config = &args.config.file.config;
    let (base, ours, theirs) = match args.merge.merge.as_deref() {
        Some([ours, theirs]) => (None, ours, theirs),
        Some([ours, theirs, base]) => (Some(base), ours, theirs),
        Some([_]) => {
            let message = "`--merge` takes two or three files, OURS THEIRS [BASE], or none";
            return Err(unreadable(message.to_owned()));
        }
        _ => return read_index(config),
    };
    let files: Vec<PathBuf> = [Some(ours), Some(theirs), base]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    refuse_same(&files)?;
    let read = |path: &PathBuf| sides::read(path);
    let (ours_text, theirs_text) = (read(ours)?, read(theirs)?);
    let kind = Kind::detect(Some(ours), &ours_text);
    let name = match kind {
        Kind::Lock => lock_file(config),
        Kind::Audits => audits_file(config),
    };
    let texts = Texts {
        name: name.to_string_lossy().into_owned(),
        base: base.map(read).transpose()?,
        ours: ours_text,
        theirs: theirs_text,
    };
    Ok(vec![(kind, texts)])
}

fn read_index(config: &Path) -> Result<Vec<(Kind, Texts)>, Vec<Diagnostic>> {
    // The audits first: they accept parts that the lock leaves out.
    let files = [
        (Kind::Audits, audits_file(config)),
        (Kind::Lock, lock_file(config)),
    ];
    let (mut all, mut is_settled) = (Vec::new(), false);
    for (kind, file) in files {
        match unmerged(&file)? {
            Some(_) if kind == Kind::Audits && is_settled_by_hand(&file) => {
                is_settled = true;
                say(text!("{}: settled already; `git add` it", file.display()));
            }
            texts => all.extend(texts.map(|texts| (kind, texts))),
        }
    }
    match all.is_empty() && !is_settled {
        false => Ok(all),
        true => Err(unreadable(
            "git has no unmerged lock and no unmerged audits beside the config; name the files: `--merge OURS THEIRS [BASE]`".to_owned(),
        )),
    }
}

/// Whether a person has settled a file of audits: it is valid. A file with the markers of a conflict is not.
fn is_settled_by_hand(file: &Path) -> bool {
    let text = broker_files::read_text(file, Kind::Audits.max_bytes());
    text.is_ok_and(|text| Audits::parse(&file.to_string_lossy(), &text).is_ok())
}

/// Refuses `--ours` and `--theirs` of a source that no side has.
fn check_chosen(
    chosen: &BTreeMap<NodePath, Side>,
    sides: &Sides<'_>,
) -> Result<(), Vec<Diagnostic>> {
    let has = |lock: &Lock, path: &NodePath| {
        lock.source(path.as_str()).is_some() || lock.left_out_source(path).is_some()
    };
    let locks = [Some(sides.ours), Some(sides.theirs), sides.base];
    let is_known = |path: &NodePath| locks.into_iter().flatten().any(|lock| has(lock, path));
    let problems: Vec<_> = chosen
        .iter()
        .filter(|(path, _)| !is_known(path))
        .map(|(path, side)| {
            let message = format!("`--{side} {path}`: neither side has this source");
            Diagnostic::error(DiagnosticCode::PathInvalid, message)
        })
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

/// Returns the sources that the command line names a side for.
fn chosen(args: &LockArgs) -> Result<BTreeMap<NodePath, Side>, Vec<Diagnostic>> {
    let mut chosen = BTreeMap::new();
    for (side, paths) in [
        (Side::Ours, &args.merge.ours),
        (Side::Theirs, &args.merge.theirs),
    ] {
        for path in paths {
            let parsed = NodePath::parse(path).map_err(|problem| {
                let message = format!("`--{side} {path}` is not a path: {problem}");
                vec![Diagnostic::error(DiagnosticCode::PathInvalid, message)]
            })?;
            if chosen
                .insert(parsed, side)
                .is_some_and(|other| other != side)
            {
                let message = format!("both `--ours {path}` and `--theirs {path}` are given");
                return Err(vec![Diagnostic::error(
                    DiagnosticCode::PathInvalid,
                    message,
                )]);
            }
        }
    }
    Ok(chosen)
}

/// Merges the locks for the config and writes the lock beside it. The config must be settled.
fn write_lock(args: &LockArgs, texts: &Texts) -> Result<Exit, Vec<Diagnostic>> {
    let file = &args.config.file.config;
    let config = parse_config(file, &file.to_string_lossy())?.config;
    let locks = Locks::read(texts)?;
    let sides = locks.sides();
    let chosen = chosen(args)?;
    check_chosen(&chosen, &sides)?;
    let settled = settle(&config, file, &sides, merge(&sides, &chosen))?;
    output::diagnostics(&settled.warnings);
    for path in &settled.gone {
        say(text!("{}: the config does not have it", path));
    }
    let audits = LeftOutAudits::read(file)?;
    let text = settled.lock.to_text();
    refuse_large(&texts.name, &text, Kind::Lock)?;
    put(&lock_file(file), &text)?;
    Ok(table::show(&settled.lock, &settled.left_out, &audits, file))
}

/// Merges the audits, and writes the file beside the config.
fn write_audits(args: &LockArgs, texts: &Texts) -> Result<Exit, Vec<Diagnostic>> {
    put(
        &audits_file(&args.config.file.config),
        &merge_audits(texts)?,
    )?;
    Ok(Exit::Ok)
}

/// Returns the merged text of the audits, after a check that they are valid.
fn merge_audits(texts: &Texts) -> Result<String, Vec<Diagnostic>> {
    for (side, text) in [(Side::Ours, &texts.ours), (Side::Theirs, &texts.theirs)] {
        Audits::parse(&texts.name_of(side), text)?;
    }
    let base = texts.base.as_deref();
    let merged = audits::merge(base, &texts.ours, &texts.theirs).map_err(|conflicts| {
        let conflicts = conflicts.into_iter();
        let help = "Write the entry that holds into the file by hand.";
        let problem = |message| {
            let problem = Diagnostic::error(DiagnosticCode::MergeConflict, message);
            problem.in_file(texts.name.as_str()).help(help)
        };
        conflicts.map(problem).collect::<Vec<_>>()
    })?;
    Audits::parse(&texts.name, &merged)?;
    refuse_large(&texts.name, &merged, Kind::Audits)?;
    Ok(merged)
}

/// Refuses a merged text that no reader would take.
fn refuse_large(name: &str, text: &str, kind: Kind) -> Result<(), Vec<Diagnostic>> {
    let most = kind.max_bytes();
    if text.len() <= most {
        return Ok(());
    }
    let message = format!(
        "the merged `{name}` would have {} bytes; at most {most} are read",
        text.len()
    );
    Err(vec![Diagnostic::error(
        DiagnosticCode::MergeConflict,
        message,
    )])
}

/// Writes a merged file.
fn put(path: &Path, text: &str) -> Result<(), Vec<Diagnostic>> {
    let _turn = turn(path);
    // A symbolic link is kept.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    write_whole(&target, text.as_bytes()).map_err(|error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
    })?;
    say(text!(
        "wrote {}: both sides merged; no source was launched. Verify it, then `git add` it",
        path.display()
    ));
    Ok(())
}
