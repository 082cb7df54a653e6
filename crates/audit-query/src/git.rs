//! Finds a lock in the history of a git repository by its root digest. Runs `git`, never through a shell, with bounds on its
//! time and its output.

use std::path::Path;
use std::time::Duration;

use broker_model::lock::{Lock, MAX_BYTES};
use broker_model::text::shown_line;
use broker_process::program;

/// The maximum time of one git command.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum bytes of the list of changed locks.
const MAX_LIST_BYTES: u64 = 1 << 20;
/// The maximum number of locks that are read.
const MAX_LOCKS: usize = 16;
/// The end of the name of a lock.
const LOCK_END: &str = ".lock.json";

/// A lock that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) lock: Lock,
    /// The commit, and the path in it.
    pub(crate) commit: String,
    pub(crate) path: String,
}

impl Found {
    /// Reads the file beside the lock whose name has another end: `.json` for the config, `.audits.toml` for the audits.
    pub(crate) fn beside(
        &self,
        repo: &Path,
        end: &str,
        revision: &str,
    ) -> Option<(String, String)> {
        let path = format!("{}{end}", self.path.strip_suffix(LOCK_END)?);
        let text = blob(repo, &format!("{revision}:{path}")).ok()?;
        Some((format!("{}:{path}", short(revision)), text))
    }

    /// The place for people.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", short(&self.commit), self.path)
    }
}

/// Finds the lock with a root digest in the commits that a revision reaches. `Ok(None)` if no commit has it.
///
/// # Errors
///
/// A text with the reason, safe to show.
pub(crate) fn find(repo: &Path, revision: &str, root: &str) -> Result<Option<Found>, String> {
    check_revision(revision)?;
    if !is_digest(root) {
        return Err("the digest of the lock in the log is not one".to_owned());
    }
    // The digest is a text of the lock, so that commits that change its number of occurrences are the ones.
    let search = format!("-S{root}");
    let arguments = [
        "--no-pager",
        "-c",
        "core.quotePath=false",
        "log",
        "-m",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--root",
        "--raw",
        "--no-abbrev",
        "--format=commit %H",
        &search,
        "--end-of-options",
        revision,
        "--",
        ":(top,glob)**/*.lock.json",
    ];
    let listed = run(&arguments, repo, MAX_LIST_BYTES)?;
    let mut commit = "";
    let mut read = 0;
    for line in listed.lines() {
        if let Some(hash) = line.strip_prefix("commit ") {
            commit = hash;
        }
        let Some((id, path)) = changed(line) else {
            continue;
        };
        read += 1;
        if read > MAX_LOCKS {
            return Err(format!(
                "more than {MAX_LOCKS} locks in its history have the digest"
            ));
        }
        let Ok(text) = blob(repo, id) else { continue };
        if let Ok(lock) = Lock::parse(path, &text)
            && lock.root_digest().as_str() == root
        {
            return Ok(Some(Found {
                lock,
                commit: commit.to_owned(),
                path: path.to_owned(),
            }));
        }
    }
    Ok(None)
}

/// Returns the new object and the path of a line of `--raw`: `:100644 100644 OLD NEW M<tab>PATH`.
fn changed(line: &str) -> Option<(&str, &str)> {
    let (facts, path) = line.strip_prefix(':')?.split_once('\t')?;
    let id = facts.split(' ').nth(3)?;
    let is_object =
        id.bytes().all(|byte| byte.is_ascii_hexdigit()) && id.bytes().any(|b| b != b'0');
    // Git puts a path with control characters in quotes.
    (is_object && !path.starts_with('"') && path.ends_with(LOCK_END)).then_some((id, path))
}

/// Refuses a text that git would read as an option.
pub(crate) fn check_revision(revision: &str) -> Result<(), String> {
    match revision.is_empty() || revision.starts_with('-') || revision.contains(char::is_control) {
        true => Err(format!("`{}` is not a revision", shown_line(revision, 100))),
        false => Ok(()),
    }
}

fn blob(repo: &Path, object: &str) -> Result<String, String> {
    run(&["cat-file", "blob", object], repo, MAX_BYTES as u64)
}

fn run(arguments: &[&str], repo: &Path, most: u64) -> Result<String, String> {
    let output = program::run(program::git_command(arguments, repo), TIMEOUT, most)
        .map_err(|error| format!("git cannot be run in `{}`: {error}", repo.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git said: {}", shown_line(said.trim(), 300)));
    }
    String::from_utf8(output.stdout).map_err(|_| "git printed text that is not UTF-8".to_owned())
}

/// Whether a text of a log is a digest.
pub(crate) fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256/1:");
    hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The begin of a commit's hash; a name of a revision as it is.
fn short(revision: &str) -> &str {
    let is_hash = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { &revision[..12] } else { revision }
}
