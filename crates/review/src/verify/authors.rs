//! `verify --require-other-author`: a tool is audited by other people than the authors of the commits that brought it into
//! the lock or changed its name there.
//!
//! A commit counts if its lock has the tool with the audited bytes at a path where all its parents lack them: a merge
//! that takes the tool over from a parent does not count; a commit that adds it at another path counts. All commits
//! that HEAD reaches are read, so the clone must not be shallow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use broker_build::lock_file;
use broker_model::digest::Digest;
use broker_model::lock::Lock;
use broker_model::text::{counted, shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode};

use super::outcome::Outcome;
use crate::audits::{AuditStatus, Audits, Date, Person, Subject, different, subjects};
use crate::baseline::read_baseline;
use crate::moved::LAST_COMMIT;
use broker_process::program;

/// Maximum number of versions of the lock that are read.
const MAX_VERSIONS: usize = 5_000;
/// The begin of each record of the log.
const MARK: &str = "commit";
/// The log of the lock: one record for each commit and parent with different locks. Fields end with NUL, since a field
/// cannot contain it.
const LOG: [&str; 23] = [
    "--no-replace-objects",
    "--literal-pathspecs",
    "-c",
    "log.follow=false",
    "-c",
    "log.diffMerges=separate",
    "-c",
    "log.showSignature=false",
    "-c",
    "log.showRoot=true",
    "log",
    "--full-history",
    "-m",
    "--raw",
    "--no-abbrev",
    "--no-renames",
    "--no-color",
    "--no-notes",
    "--encoding=UTF-8",
    "-z",
    "--format=%x00commit%x00%H%x00%P%x00%an%x00%ae%x00%B%x00",
    "HEAD",
    "--",
];

/// A commit that changed the lock.
#[derive(Debug, Default)]
struct Commit {
    id: String,
    parents: usize,
    authors: Vec<(Person, String)>,
    /// The object of its lock, and the objects of the parents that have another one.
    new: String,
    old: Vec<String>,
}

/// An author of a commit.
struct Author<'c> {
    person: &'c Person,
    shown: &'c str,
    commit: &'c str,
}

/// A tool, `None` for a source itself, and its bytes.
type Key = (Option<String>, Digest);
/// The sources of a version of the lock that have what is audited, each with its name there and whether it is unvalidated.
type Version = BTreeMap<Key, BTreeMap<String, (String, bool)>>;

/// Checks the audits that count for `needed` people.
pub fn check(outcome: &mut Outcome, lock: &Lock, audits: &Audits, config: &Path, needed: u8) {
    let commits = match commits(lock, config) {
        Ok(commits) => commits,
        Err(why) => return outcome.problems.push(unknown(config, &why)),
    };
    let today = Date::today();
    let mut audited = subjects(lock);
    audited.retain(|one| audits.status(one, today, needed) == AuditStatus::Audited);
    let wanted: BTreeSet<Key> = audited.iter().map(key).collect();
    let mut versions = BTreeMap::new();
    for commit in &commits {
        for object in commit.old.iter().chain([&commit.new]) {
            if versions.contains_key(object) {
                continue;
            }
            match version(object, &wanted, config) {
                Ok(version) => versions.insert(object.clone(), version),
                Err(why) => return outcome.problems.push(unknown(config, &why)),
            };
        }
    }
    let mut problems = Vec::new();
    for subject in &audited {
        let authors = authors(subject, &commits, &versions);
        let author_of = |who: &str| {
            let person = Person::parse(who);
            authors.iter().find(|author| author.person.is_like(&person))
        };
        let people = || {
            let audits = audits.valid(subject, today);
            audits.map(|audit| audit.who.as_str())
        };
        let others = different(people().filter(|who| author_of(who).is_none()));
        if others.len() >= usize::from(needed.max(1)) {
            continue;
        }
        let found = people().find_map(|who| Some((who, author_of(who)?)));
        if let Some((who, author)) = found {
            problems.push(problem(subject, who, author, config, needed));
        }
    }
    if problems.is_empty() {
        let how = format!(
            "none of {} of the lock is by those who audited its change",
            counted(commits.len(), "commit")
        );
        outcome.holds("authors", how);
    }
    outcome.problems.extend(problems);
}

fn problem(
    subject: &Subject<'_>,
    who: &str,
    author: &Author<'_>,
    config: &Path,
    needed: u8,
) -> Diagnostic {
    let people = match needed {
        0 | 1 => "another person".to_owned(),
        people => format!("{people} other people"),
    };
    let message = format!(
        "`{}` was audited by {}, and {} is an author of the commit {} that brought it into the lock",
        subject.shown(),
        shown_line(who, 80),
        shown_line(author.shown, 80),
        author.commit.get(..12).unwrap_or(author.commit)
    );
    let help = format!(
        "It needs the audit of {people}: `broker-gen review --config {}`.",
        shell_word(&config.to_string_lossy())
    );
    Diagnostic::error(DiagnosticCode::AuditByAuthor, message).help(help)
}

/// Returns the authors of the commits whose lock has the subject at a path where no parent has the same.
fn authors<'c>(
    subject: &Subject<'_>,
    commits: &'c [Commit],
    versions: &BTreeMap<String, Version>,
) -> Vec<Author<'c>> {
    let key = key(subject);
    let places = |object: &String| versions.get(object)?.get(&key);
    let mut authors = Vec::new();
    for commit in commits {
        // A parent that has no record has the same lock.
        if commit.old.len() < commit.parents {
            continue;
        }
        let is_of_parent = |path: &String, tool: &(String, bool)| {
            let mut parents = commit.old.iter().filter_map(places);
            parents.any(|places| places.get(path) == Some(tool))
        };
        let mut new = places(&commit.new).into_iter().flatten();
        if new.any(|(path, tool)| !is_of_parent(path, tool)) {
            authors.extend(commit.authors.iter().map(|(person, shown)| Author {
                person,
                shown,
                commit: &commit.id,
            }));
        }
    }
    authors
}

fn key(subject: &Subject<'_>) -> Key {
    let tool = subject.tool_name().map(str::to_owned);
    (tool, subject.digest.clone())
}

/// Returns the audited content of a version of the lock. An invalid version has no content, so that the commit after it
/// brought the content in.
fn version(object: &str, wanted: &BTreeSet<Key>, config: &Path) -> Result<Version, String> {
    let mut version = Version::new();
    // Git writes zeros for a file that a commit does not have.
    if object.bytes().all(|byte| byte == b'0') {
        return Ok(version);
    }
    let folder = program::folder_of(config);
    let text = program::git(&["cat-file", "blob", object], folder)?;
    let Ok(lock) = Lock::parse(object, &text) else {
        return Ok(version);
    };
    for subject in subjects(&lock) {
        let key = key(&subject);
        if wanted.contains(&key) {
            let tool = subject.tool;
            let name = tool.map_or(String::new(), |tool| tool.exposed_name.clone());
            let is_unvalidated = tool.is_some_and(|tool| tool.unvalidated);
            let places = version.entry(key).or_default();
            places.insert(subject.source.path.to_string(), (name, is_unvalidated));
        }
    }
    Ok(version)
}

/// The error if the history is not known.
fn unknown(config: &Path, why: &str) -> Diagnostic {
    let file = lock_file(config);
    let shown = shown_line(&file.to_string_lossy(), 200);
    let message = format!("the authors of `{shown}` cannot be read from git: {why}");
    Diagnostic::error(DiagnosticCode::AuthorsUnknown, message)
}

/// The commits that changed the lock, if all of them can be read and the lock is the committed one.
fn commits(lock: &Lock, config: &Path) -> Result<Vec<Commit>, String> {
    let file = lock_file(config);
    let folder = program::folder_of(config);
    let is_shallow = program::git(&["rev-parse", "--is-shallow-repository"], folder)?;
    if is_shallow.trim() != "false" {
        return Err("this clone is shallow".to_owned());
    }
    let committed = read_baseline(LAST_COMMIT, config).map_err(|problems| {
        let messages: Vec<_> = problems.into_iter().map(|one| one.message).collect();
        messages.join("; ")
    })?;
    match committed {
        Some(committed) if committed.root_digest() == lock.root_digest() => {}
        Some(_) => return Err("it is not as it is committed".to_owned()),
        None => return Err("it is not committed".to_owned()),
    }
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or("its name is not UTF-8")?;
    let name = format!("./{name}");
    let args: Vec<&str> = LOG.into_iter().chain([name.as_str()]).collect();
    let log = program::git(&args, folder)?;
    let commits = parse(&log).ok_or("git printed a log of another form")?;
    let versions: BTreeSet<_> = commits.iter().map(|commit| &commit.new).collect();
    match versions.len() {
        0 => Err("no commit has it".to_owned()),
        1..=MAX_VERSIONS => Ok(commits),
        many => Err(format!(
            "it has {many} versions, and at most {MAX_VERSIONS} are read"
        )),
    }
}

/// The commits of a log; `None` if it has another form.
fn parse(log: &str) -> Option<Vec<Commit>> {
    let mut commits: Vec<Commit> = Vec::new();
    let mut fields = log.split('\0');
    while let Some(field) = fields.next() {
        let field = field.trim_start_matches('\n');
        if field == MARK {
            let id = fields.next()?.to_owned();
            let parents = fields.next()?.split_whitespace().count();
            let (name, address) = (fields.next()?, fields.next()?);
            let authors = authors_of(name, address, fields.next()?);
            // A merge has a record for each parent.
            if commits.last().is_none_or(|last| last.id != id) {
                commits.push(Commit {
                    id,
                    parents,
                    authors,
                    ..Commit::default()
                });
            }
        } else if let Some(change) = field.strip_prefix(':') {
            let mut words = change.split(' ').skip(2);
            let (old, new) = (words.next()?, words.next()?);
            let commit = commits.last_mut()?;
            commit.old.push(old.to_owned());
            new.clone_into(&mut commit.new);
            // The path.
            fields.next()?;
        } else if !field.is_empty() {
            return None;
        }
    }
    Some(commits)
}

/// The author of a commit, and the other ones that its message names.
fn authors_of(name: &str, address: &str, message: &str) -> Vec<(Person, String)> {
    const TRAILER: &str = "co-authored-by:";
    let named = message.lines().filter_map(|line| {
        let line = line.trim();
        let is_trailer = line.get(..TRAILER.len())?.eq_ignore_ascii_case(TRAILER);
        is_trailer.then(|| line[TRAILER.len()..].trim().to_owned())
    });
    let own = (Person::new(name, address), format!("{name} <{address}>"));
    let named = named.map(|who| (Person::parse(&who), who));
    [own].into_iter().chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_of_a_merge_is_one_commit_with_each_parent() {
        let record = |old: &str| {
            format!(
                "\0commit\0c1\0p1 p2\0A\0a@x\0commit\n\nCo-Authored-By: B <b@x>\n\0\0\n:100644 100644 {old} n1 M\0commit\0"
            )
        };
        let log = format!("{}{}", record("o1"), record("o2"));
        let commits = parse(&log).expect("a log");
        assert_eq!(commits.len(), 1);
        assert_eq!((commits[0].parents, commits[0].new.as_str()), (2, "n1"));
        assert_eq!(commits[0].old, ["o1", "o2"]);
        let authors: Vec<_> = commits[0].authors.iter().map(|(_, who)| who).collect();
        assert_eq!(authors, ["A <a@x>", "B <b@x>"]);
    }

    #[test]
    fn log_in_another_form_is_not_read() {
        for log in [
            "\0commit\0c1\0",
            "x\0",
            "\0:1 2 3 4 M\0f\0",
            "\0commit\0c\0\0A\0a\0m\0\0:1 2 3",
        ] {
            assert!(parse(log).is_none(), "{log:?}");
        }
        assert!(parse("").expect("a log").is_empty());
    }
}
