//! The config of a merge that git is making. Git runs a merge driver before it writes the merged config, so that the
//! config in the work tree is still the config of one side. The configs of both sides and of their base are in git;
//! each lock names the digest of its config, and the search finds the config by it. The search has bounds on versions,
//! bytes and time: a repository may have any number of versions of any size.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use std::{fmt, fs};

use broker_build::build_script::parse_config_text;
use broker_config::Config;
use broker_model::Diagnostic;
use broker_model::digest::Digest;
use broker_model::lock::Lock;
use broker_process::program::{self, folder_of};
use tokio::time::Instant;

use super::three_way::Sides;

/// Maximum number of versions of the config that are read.
const MAX_VERSIONS: usize = 500;
/// Maximum number of bytes of all versions together. One that is read at this moment is read to its end.
const MAX_TOTAL_BYTES: usize = 64 << 20;
/// Maximum time of the search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of bytes of the list of versions.
const MAX_LIST_BYTES: u64 = 4 << 20;
/// Maximum time of a merge of texts.
const MERGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The minimum exit code of `git merge-file` for an error; a lower one is the number of conflicts.
const MIN_ERROR_CODE: i32 = 128;

/// The config of a merge.
pub(super) enum MergedConfig {
    Known(Box<Config>),
    /// The texts of both sides conflict.
    Conflict,
    /// Git merges the texts, and the result is not a config.
    Invalid(Vec<Diagnostic>),
    /// Git does not have the configs of the locks, or the search for them ended before all versions were read.
    Unknown(Option<Bound>),
}

/// A bound that ended the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Versions,
    Bytes,
    Time,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Versions => write!(f, "after {MAX_VERSIONS} versions"),
            Self::Bytes => write!(f, "after {} MiB of versions", MAX_TOTAL_BYTES >> 20),
            Self::Time => write!(f, "after {} s", SEARCH_TIMEOUT.as_secs()),
        }
    }
}

/// Finds the config that git will write at `path`.
pub(super) fn find(path: &Path, sides: &Sides<'_>) -> MergedConfig {
    let mut versions = Versions::new(path, Instant::now() + SEARCH_TIMEOUT);
    let mut text = |lock: &Lock| versions.with_digest(&lock.config_digest);
    let found = text(sides.ours).zip(text(sides.theirs));
    let merged = match found {
        Some((ours, theirs)) if ours == theirs => Some(ours),
        Some((ours, theirs)) => match sides.base.and_then(text) {
            Some(base) if base == theirs => Some(ours),
            Some(base) if base == ours => Some(theirs),
            Some(base) => match merge_texts(&base, &ours, &theirs) {
                Some(Ok(merged)) => Some(merged),
                Some(Err(())) => return MergedConfig::Conflict,
                None => None,
            },
            None => None,
        },
        None => None,
    };
    let Some(merged) = merged else {
        return MergedConfig::Unknown(versions.ended_by);
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
    /// Whether git has more versions than `blobs` had.
    has_more: bool,
    /// Versions that were read.
    known: Vec<(Digest, String)>,
    /// Number of bytes that were read.
    read: usize,
    deadline: Instant,
    /// The bound that ended a search without a result.
    ended_by: Option<Bound>,
}

impl<'p> Versions<'p> {
    fn new(path: &'p Path, deadline: Instant) -> Self {
        let (mut blobs, has_more) = blobs(path, deadline);
        blobs.reverse();
        Self {
            path,
            blobs,
            has_more,
            known: Vec::new(),
            read: 0,
            deadline,
            ended_by: None,
        }
    }

    /// The text of the newest version with this digest.
    fn with_digest(&mut self, digest: &Digest) -> Option<String> {
        if let Some((_, text)) = self.known.iter().find(|(known, _)| known == digest) {
            return Some(text.clone());
        }
        loop {
            let left = left(self.deadline);
            if left.is_zero() {
                self.ended_by = Some(Bound::Time);
                return None;
            }
            if self.read >= MAX_TOTAL_BYTES {
                self.ended_by = Some(Bound::Bytes);
                return None;
            }
            let Some(blob) = self.blobs.pop() else {
                self.ended_by = self.has_more.then_some(Bound::Versions);
                return None;
            };
            let folder = existing_folder(self.path);
            let command = program::git_command(&["cat-file", "blob", &blob], folder);
            let most = broker_config::MAX_BYTES as u64;
            let Ok(output) = program::run(command, left, most) else {
                // The time is over, or the version is larger than a config may be: then git has printed this much.
                self.read += broker_config::MAX_BYTES;
                continue;
            };
            self.read += output.stdout.len();
            let text = String::from_utf8(output.stdout);
            let Some(text) = text.ok().filter(|_| output.status.success()) else {
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
    }
}

/// The time until the deadline.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// The folder of a file, or the working folder if only a side has it.
fn existing_folder(path: &Path) -> &Path {
    let folder = folder_of(path);
    match folder.is_dir() {
        true => folder,
        false => Path::new("."),
    }
}

/// The ids of the versions of a file in all branches, stashes and reflogs, newest first, and whether there are more.
fn blobs(path: &Path, deadline: Instant) -> (Vec<String>, bool) {
    // One more than is read shows that there are more.
    let count = (MAX_VERSIONS + 1).to_string();
    let Some(path) = path.to_str() else {
        return (Vec::new(), false);
    };
    // A raw line has modes, the ids before and after, and the kind of change. Merges are compared with each parent.
    let args = [
        "--literal-pathspecs",
        "log",
        "--all",
        "--reflog",
        "--full-history",
        "--format=%H",
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
    let command = program::git_command(&args, Path::new("."));
    let listed = program::run(command, left(deadline), MAX_LIST_BYTES);
    let lines = match listed {
        Ok(output) if output.status.success() => {
            String::from_utf8(output.stdout).unwrap_or_default()
        }
        Ok(_) | Err(_) => String::new(),
    };
    let (mut seen, mut commits, mut ids) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let Some(change) = line.strip_prefix(':') else {
            commits.insert(line);
            continue;
        };
        let words: Vec<_> = change.split(' ').skip(2).take(2).collect();
        let named = words.into_iter().rev();
        let named = named.filter(|id| id.bytes().any(|byte| byte != b'0'));
        ids.extend(named.filter(|id| seen.insert(*id)).map(str::to_owned));
    }
    let has_more = commits.len() > MAX_VERSIONS || ids.len() > MAX_VERSIONS;
    ids.truncate(MAX_VERSIONS);
    (ids, has_more)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_after_its_deadline_reads_nothing_and_names_the_bound() {
        let mut versions = Versions::new(Path::new("c.json"), Instant::now());
        let digest = Digest::from_text("test", "x");
        assert_eq!(versions.with_digest(&digest), None);
        assert_eq!((versions.read, versions.ended_by), (0, Some(Bound::Time)));
        let shown = [Bound::Versions, Bound::Bytes, Bound::Time].map(|bound| bound.to_string());
        assert_eq!(
            shown,
            [
                "after 500 versions",
                "after 64 MiB of versions",
                "after 30 s"
            ]
        );
    }
}
