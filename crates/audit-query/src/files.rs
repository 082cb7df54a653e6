//! Finds the lock, the config and the audits that were in force at a line: compiled in, named, or in git.

use std::path::{Path, PathBuf};

use broker_audits_file::Audits;
use broker_config::Config;
use broker_model::Diagnostic;
use broker_model::lock::{Lock, LockedSource, MAX_BYTES as MAX_LOCK_BYTES};
use broker_model::text::shown_line;

use crate::error::QueryError;
use crate::git::{self, Found};

/// The maximum bytes of a config.
const MAX_CONFIG_BYTES: usize = 16 << 20;

/// The lock that is compiled into the program, with its config.
#[derive(Clone, Debug)]
pub struct CompiledLock {
    /// The digest of its catalog.
    pub catalog_digest: String,
    /// Its root digest.
    pub root_digest: String,
    /// Its sources.
    pub sources: Vec<LockedSource>,
    /// The file name of its config.
    pub config_name: String,
    /// The text of its config.
    pub config: String,
}

/// The files of an explanation, as a command line names them.
#[derive(Clone, Debug, Default)]
pub struct ExplainFiles {
    /// The files of the log, in any order.
    pub logs: Vec<PathBuf>,
    /// A lock.
    pub lock: Option<PathBuf>,
    /// A config, for the access rules and the hints of its overrides.
    pub config: Option<PathBuf>,
    /// An audits file.
    pub audits: Option<PathBuf>,
    /// A git repository in which the lock is searched.
    pub repo: Option<PathBuf>,
    /// The revision whose history is searched.
    pub revision: Option<String>,
}

/// The digests that a line names.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineVersions {
    pub(crate) catalog: String,
    pub(crate) policy: String,
    /// The root digest of the lock, if a line of the log names it.
    pub(crate) lock: Option<String>,
}

/// A file, and its place for people.
#[derive(Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) place: String,
    /// Whether its digest is the one that the line names; `None` if the log does not name one.
    pub(crate) is_same: Option<bool>,
}

/// The files in force at a line. Those that were not found have a reason.
#[derive(Debug)]
pub(crate) struct FoundFiles {
    pub(crate) lock: Result<Placed<FoundLock>, String>,
    pub(crate) config: Result<Placed<Config>, String>,
    /// Whether the caller named the config, so that its filters are known too.
    pub(crate) is_config_named: bool,
    pub(crate) audits: Result<Placed<Audits>, String>,
}

/// A lock.
#[derive(Debug)]
pub(crate) struct FoundLock {
    pub(crate) root_digest: String,
    pub(crate) sources: Vec<LockedSource>,
}

impl From<Lock> for FoundLock {
    fn from(lock: Lock) -> Self {
        Self {
            root_digest: lock.root_digest().as_str().to_owned(),
            sources: lock.sources,
        }
    }
}

/// Finds the files. A named file that cannot be used is an error; a file that is missing is not.
pub(crate) fn find(
    files: &ExplainFiles,
    versions: &LineVersions,
    compiled: Option<&CompiledLock>,
) -> Result<FoundFiles, QueryError> {
    let revision = files.revision.as_deref().unwrap_or("HEAD");
    git::check_revision(revision).map_err(|problem| argument("--revision", &problem))?;
    if let Some(repo) = &files.repo
        && !repo.is_dir()
    {
        let problem = format!("`{}` is not a folder", repo.display());
        return Err(argument("--repo", &problem));
    }
    let compiled = compiled.filter(|one| one.catalog_digest == versions.catalog);
    let mut in_git = None;
    let lock = match (&files.lock, compiled) {
        (Some(file), _) => Ok(named_lock(file, versions)?),
        (None, Some(compiled)) => Ok(Placed {
            value: FoundLock {
                root_digest: compiled.root_digest.clone(),
                sources: compiled.sources.clone(),
            },
            place: "compiled into this program".to_owned(),
            is_same: Some(true),
        }),
        (None, None) => search(files, revision, versions).map(|found| {
            let place = found.place();
            let value = FoundLock::from(found.lock.clone());
            in_git = Some(found);
            Placed {
                value,
                place,
                is_same: Some(true),
            }
        }),
    };
    let repo = files.repo.as_deref().unwrap_or(Path::new("."));
    let mut config = config(files, versions, compiled, in_git.as_ref(), repo)?;
    if let (Ok(config), Ok(lock)) = (&mut config, &lock) {
        use_word_lists(&mut config.value, &lock.value.sources);
    }
    let audits = audits(files, compiled, in_git.as_ref(), (repo, revision))?;
    Ok(FoundFiles {
        lock,
        config,
        is_config_named: files.config.is_some(),
        audits,
    })
}

fn argument(name: &str, problem: &str) -> QueryError {
    QueryError::Argument(format!("`{name}`: {problem}"))
}

/// Searches the lock in git; the error says why there is none.
fn search(files: &ExplainFiles, revision: &str, versions: &LineVersions) -> Result<Found, String> {
    let Some(root) = &versions.lock else {
        return Err(
            "no line `start` or `reload` of these files names the lock of this catalog; name more files of the log, or the lock with `--lock`"
                .to_owned(),
        );
    };
    if files.repo.is_none() && files.revision.is_none() {
        return Err(format!(
            "it has the root digest {}; name it with `--lock`, or a repository that has it with `--repo`",
            shown_line(root, 80)
        ));
    }
    let repo = files.repo.as_deref().unwrap_or(Path::new("."));
    let none = || {
        let revision = shown_line(revision, 100);
        format!(
            "no commit that `{revision}` reaches in `{}` has a lock with the root digest {root}; name another `--revision`, or the lock with `--lock`",
            repo.display()
        )
    };
    git::find(repo, revision, root)?.ok_or_else(none)
}

fn named_lock(file: &Path, versions: &LineVersions) -> Result<Placed<FoundLock>, QueryError> {
    let lock = FoundLock::from(read_lock(file)?);
    Ok(Placed {
        is_same: versions
            .lock
            .as_deref()
            .map(|root| root == lock.root_digest),
        value: lock,
        place: file.display().to_string(),
    })
}

/// Compares the tool names of each source with the list of sensitive words in the version of its lock.
pub(crate) fn use_word_lists(config: &mut Config, sources: &[LockedSource]) {
    config.use_word_lists(&|path| {
        let mut sources = sources.iter();
        sources.find(|source| source.path == *path)?.word_list()
    });
}

/// Reads a lock.
pub(crate) fn read_lock(file: &Path) -> Result<Lock, QueryError> {
    let text = broker_files::read_text(file, MAX_LOCK_BYTES).map_err(|error| {
        QueryError::Argument(format!(
            "cannot read the lock `{}`: {error}; name a lock that `broker-gen lock` wrote",
            file.display()
        ))
    })?;
    Lock::parse(&file.to_string_lossy(), &text).map_err(QueryError::Files)
}

/// Reads a config.
pub(crate) fn read_config(file: &Path) -> Result<Config, QueryError> {
    let bytes = broker_files::read(file, MAX_CONFIG_BYTES).map_err(|error| {
        QueryError::Argument(format!(
            "cannot read the config `{}`: {error}; name the config of a broker",
            file.display()
        ))
    })?;
    let parsed = Config::parse(&file.to_string_lossy(), &bytes).map_err(QueryError::Files)?;
    Ok(parsed.config)
}

/// Returns the config with the access rules of the line, else another one.
fn config(
    files: &ExplainFiles,
    versions: &LineVersions,
    compiled: Option<&CompiledLock>,
    in_git: Option<&Found>,
    repo: &Path,
) -> Result<Result<Placed<Config>, String>, QueryError> {
    let placed = |config: Config, place: String| {
        let digest = config.access_digest();
        let digest = digest.as_ref().map_or("", |digest| digest.as_str());
        Placed {
            is_same: Some(digest == versions.policy),
            value: config,
            place,
        }
    };
    if let Some(file) = &files.config {
        let config = read_config(file)?;
        return Ok(Ok(placed(config, file.display().to_string())));
    }
    let mut found = Vec::new();
    if let Some(compiled) = compiled
        && let Ok(parsed) = Config::parse(&compiled.config_name, compiled.config.as_bytes())
    {
        let place = "compiled into this program".to_owned();
        found.push(placed(parsed.config, place));
    }
    if let Some(one) = in_git
        && let Some((place, text)) = one.beside(repo, ".json", &one.commit)
        && let Ok(parsed) = Config::parse(&place, text.as_bytes())
    {
        found.push(placed(parsed.config, place));
    }
    // A config beside a named lock has its name.
    if let Some(file) = files.lock.as_deref().and_then(|lock| beside(lock, ".json"))
        && let Ok(config) = read_config(&file)
    {
        found.push(placed(config, file.display().to_string()));
    }
    let same = found.iter().position(|one| one.is_same == Some(true));
    Ok(match same {
        Some(at) => Ok(found.swap_remove(at)),
        None => found
            .pop()
            .ok_or_else(|| "no config was found; name it with `--config`".to_owned()),
    })
}

/// Returns the file beside a lock with another end of the name.
fn beside(lock: &Path, end: &str) -> Option<PathBuf> {
    let stem = lock.file_name()?.to_str()?.strip_suffix(".lock.json")?;
    Some(lock.with_file_name(format!("{stem}{end}")))
}

/// Returns the audits: the named file, else the one beside the lock or the config, else the one in git.
fn audits(
    files: &ExplainFiles,
    compiled: Option<&CompiledLock>,
    in_git: Option<&Found>,
    (repo, revision): (&Path, &str),
) -> Result<Result<Placed<Audits>, String>, QueryError> {
    const END: &str = ".audits.toml";
    let placed = |audits: Audits, place: String| Placed {
        value: audits,
        place,
        is_same: None,
    };
    let named = files.audits.clone();
    let of_config = |config: &PathBuf| broker_audits_file::audits_file(config);
    let by_lock = || files.lock.as_deref().and_then(|lock| beside(lock, END));
    let near = named
        .clone()
        .or_else(|| files.config.as_ref().map(of_config))
        .or_else(by_lock);
    let near = near.or_else(|| match (in_git, compiled) {
        (None, Some(compiled)) => Some(of_config(&PathBuf::from(&compiled.config_name))),
        _ => None,
    });
    if let Some(file) = near {
        let text = broker_audits_file::text_of(&file).map_err(QueryError::Files)?;
        let place = file.display().to_string();
        return match text {
            Some(text) => Audits::parse(&place, &text)
                .map(|audits| Ok(placed(audits, place)))
                .map_err(QueryError::Files),
            None if named.is_some() => Err(argument(
                "--audits",
                &format!("`{place}` does not exist; name an audits file"),
            )),
            None => Ok(Err(format!(
                "`{place}` does not exist; name the audits with `--audits`"
            ))),
        };
    }
    // The file is only appended to, so that the newest one has every entry.
    let of_git = in_git.and_then(|found| found.beside(repo, END, revision));
    Ok(match of_git {
        Some((place, text)) => Audits::parse(&place, &text)
            .map(|audits| placed(audits, place))
            .map_err(|problems| first_problem(&problems)),
        None => Err("no audits file was found; name it with `--audits`".to_owned()),
    })
}

fn first_problem(problems: &[Diagnostic]) -> String {
    let first = problems.first();
    first.map_or_else(String::new, |problem| {
        shown_line(&problem.whole_message(), 300)
    })
}
