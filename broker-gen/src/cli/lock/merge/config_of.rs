//! The config of a merge that git is making. Git runs a merge driver before it writes the merged config, so that the
//! config in the work tree is still that of one side. The configs of both sides and of their base are found in git: by
//! their digests, which the locks name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use broker_model::Diagnostic;
use broker_model::config::Config;
use broker_model::digest::Digest;
use broker_model::lock::Lock;

use super::three_way::Sides;
use crate::build_script::parse_config_text;
use crate::cli::program::{self, folder_of};

/// Maximum number of versions of the config that are read.
const MAX_VERSIONS: usize = 500;
/// Maximum time of a merge of texts.
const MERGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The exit code of `git merge-file` from which on it is an error and not the number of conflicts.
const MIN_ERROR_CODE: i32 = 128;

/// The config of a merge.
pub(super) enum MergedConfig {
    Known(Box<Config>),
    /// The texts of both sides conflict.
    Conflict,
    /// Git merges the texts, and the result is not a config.
    Invalid(Vec<Diagnostic>),
    /// Git does not have the configs of the locks.
    Unknown,
}

/// Finds the config that git will write at `path`.
pub(super) fn find(path: &Path, sides: &Sides<'_>) -> MergedConfig {
    let mut versions = Versions::new(path);
    let mut text = |lock: &Lock| versions.with_digest(&lock.config_digest);
    let (Some(ours), Some(theirs)) = (text(sides.ours), text(sides.theirs)) else {
        return MergedConfig::Unknown;
    };
    let merged = if ours == theirs {
        ours
    } else {
        match sides.base.and_then(text) {
            Some(base) if base == theirs => ours,
            Some(base) if base == ours => theirs,
            Some(base) => match merge_texts(&base, &ours, &theirs) {
                Some(Ok(merged)) => merged,
                Some(Err(())) => return MergedConfig::Conflict,
                None => return MergedConfig::Unknown,
            },
            None => return MergedConfig::Unknown,
        }
    };
    match parse(path, &merged) {
        Ok(config) => MergedConfig::Known(Box::new(config)),
        Err(problems) => MergedConfig::Invalid(problems),
    }
}

fn parse(path: &Path, text: &str) -> Result<Config, Vec<Diagnostic>> {
    let parsed = parse_config_text(path, &path.to_string_lossy(), text.as_bytes());
    Ok(parsed?.config)
}

/// The versions of a config in git, newest first.
struct Versions<'p> {
    path: &'p Path,
    /// Blobs that were not read yet, the next one last.
    blobs: Vec<String>,
    /// Versions that were read.
    known: Vec<(Digest, String)>,
}

impl<'p> Versions<'p> {
    fn new(path: &'p Path) -> Self {
        let mut blobs = blobs(path);
        blobs.reverse();
        Self {
            path,
            blobs,
            known: Vec::new(),
        }
    }

    /// The text of the newest version with this digest.
    fn with_digest(&mut self, digest: &Digest) -> Option<String> {
        if let Some((_, text)) = self.known.iter().find(|(known, _)| known == digest) {
            return Some(text.clone());
        }
        while let Some(blob) = self.blobs.pop() {
            let Ok(text) = program::git(&["cat-file", "blob", &blob], existing_folder(self.path))
            else {
                continue;
            };
            let Ok(config) = parse(self.path, &text) else {
                continue;
            };
            let found = config.digest();
            self.known.push((found.clone(), text.clone()));
            if found == *digest {
                return Some(text);
            }
        }
        None
    }
}

/// The folder of a file, or the working folder if only a side has it.
fn existing_folder(path: &Path) -> &Path {
    let folder = folder_of(path);
    match folder.is_dir() {
        true => folder,
        false => Path::new("."),
    }
}

/// The ids of the versions of a file in all branches, stashes and reflogs, newest first.
fn blobs(path: &Path) -> Vec<String> {
    let count = MAX_VERSIONS.to_string();
    let Some(path) = path.to_str() else {
        return Vec::new();
    };
    // A raw line has modes, the ids before and after, and the kind of change. Merges are compared with each parent.
    let args = [
        "--literal-pathspecs",
        "log",
        "--all",
        "--reflog",
        "--full-history",
        "--format=",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "-m",
        "-n",
        &count,
        "HEAD",
        "--",
        path,
    ];
    let lines = program::git(&args, Path::new(".")).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let ids = lines.lines().flat_map(|line| {
        let words: Vec<_> = line.split_whitespace().skip(2).take(2).collect();
        words.into_iter().rev()
    });
    ids.filter(|id| id.bytes().any(|byte| byte != b'0') && seen.insert(*id))
        .take(MAX_VERSIONS)
        .map(str::to_owned)
        .collect()
}

/// The merged text, as git makes it; an error if both sides conflict. `None` if git cannot be run.
fn merge_texts(base: &str, ours: &str, theirs: &str) -> Option<Result<String, ()>> {
    let folder = tempfile::tempdir().ok()?;
    for (name, text) in [("ours", ours), ("base", base), ("theirs", theirs)] {
        fs::write(folder.path().join(name), text).ok()?;
    }
    let command = program::command("git", |command| {
        let args = ["merge-file", "-p", "ours", "base", "theirs"];
        command.args(args).current_dir(folder.path());
    });
    let most = 2 * (base.len() + ours.len() + theirs.len()) as u64 + 1024;
    let output = program::run(command, MERGE_TIMEOUT, most).ok()?;
    match output.status.code()? {
        0 => String::from_utf8(output.stdout).ok().map(Ok),
        code if code < MIN_ERROR_CODE => Some(Err(())),
        _ => None,
    }
}
