//! Finds the folder of a local model: a path, or a name in the cache of Hugging Face. Does not download models.

use std::fmt;
use std::path::{Path, PathBuf};

/// The variables that may name a local model; the first one that is set counts.
pub const MODEL_VARIABLES: [&str; 2] = ["MCP_BROKER_HF_MODEL", "MCPPROXY_HF_MODEL"];
/// The variables that locate the cache.
pub const CACHE_VARIABLES: [&str; 3] = ["HF_HUB_CACHE", "HF_HOME", "HOME"];
/// The organisation of a name without one.
const DEFAULT_ORGANISATION: &str = "sentence-transformers";
/// Maximum bytes of the file that names a snapshot.
const MAX_REFERENCE_BYTES: usize = 100;

/// Reads a variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// No folder has the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelNotFound {
    /// The name, in the config or a variable.
    pub name: String,
    /// The folders that were searched.
    pub searched: Vec<PathBuf>,
}

impl fmt::Display for ModelNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let searched: Vec<_> = self
            .searched
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let (name, searched) = (self.name.escape_debug(), searched.join(", "));
        write!(f, "the model `{name}` was not found; searched: {searched}")
    }
}

impl std::error::Error for ModelNotFound {}

/// Returns the name of the local model in a variable, if one is set.
pub fn model_of_variable(lookup: Lookup<'_>) -> Option<String> {
    let mut values = MODEL_VARIABLES.iter().filter_map(|name| lookup(name));
    values.find(|value| !value.is_empty())
}

/// Finds the folder of a model: a path, or a name in the cache of Hugging Face.
///
/// # Errors
///
/// If no folder has it; the error lists the folders.
pub fn find_model(name: &str, base: &Path, lookup: Lookup<'_>) -> Result<PathBuf, ModelNotFound> {
    let missing = |searched: Vec<PathBuf>| ModelNotFound {
        name: name.to_owned(),
        searched,
    };
    let local = base.join(name);
    if local.is_dir() {
        return Ok(local);
    }
    let (organisation, model) = name.split_once('/').unwrap_or((DEFAULT_ORGANISATION, name));
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let cache = cache_folder(lookup).filter(|_| is_part(organisation) && is_part(model));
    let Some(cache) = cache else {
        return Err(missing(vec![local]));
    };
    let cached = cache.join(format!("models--{organisation}--{model}"));
    match snapshot(&cached) {
        Some(folder) => Ok(folder),
        None => Err(missing(vec![local, cached])),
    }
}

/// Returns the cache of Hugging Face.
fn cache_folder(lookup: Lookup<'_>) -> Option<PathBuf> {
    let set = |name| lookup(name).filter(|value| !value.is_empty());
    let [cache, home, user] = CACHE_VARIABLES;
    if let Some(cache) = set(cache) {
        return Some(cache.into());
    }
    let home = match set(home) {
        Some(home) => PathBuf::from(home),
        None => Path::new(&set(user)?).join(".cache/huggingface"),
    };
    Some(home.join("hub"))
}

/// Returns the snapshot that `main` names, or the only one.
fn snapshot(cached: &Path) -> Option<PathBuf> {
    let snapshots = cached.join("snapshots");
    if let Ok(revision) = crate::read_text(&cached.join("refs/main"), MAX_REFERENCE_BYTES) {
        let revision = revision.trim();
        let is_hash = !revision.is_empty() && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
        let folder = snapshots.join(revision);
        return (is_hash && folder.is_dir()).then_some(folder);
    }
    let mut folders = std::fs::read_dir(&snapshots).ok()?;
    let folder = folders.next()?.ok()?.path();
    (folders.next().is_none() && folder.is_dir()).then_some(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn names_are_found_in_the_cache_and_nowhere_else() {
        let cache = TempDir::new().expect("a folder");
        let snapshots = cache
            .path()
            .join("hub/models--sentence-transformers--tiny/snapshots");
        fs::create_dir_all(snapshots.join("abc123")).expect("writable");
        let home = cache.path().to_str().expect("a path").to_owned();
        let lookup = |name: &str| (name == "HF_HOME").then(|| home.clone());
        let base = TempDir::new().expect("a folder");
        let find = |name: &str| find_model(name, base.path(), &lookup);
        assert_eq!(find("tiny"), Ok(snapshots.join("abc123")));
        assert_eq!(find("sentence-transformers/tiny"), find("tiny"));
        // Of two snapshots, `main` is one.
        fs::create_dir_all(snapshots.join("def456")).expect("writable");
        assert!(find("tiny").is_err());
        let refs = cache
            .path()
            .join("hub/models--sentence-transformers--tiny/refs");
        fs::create_dir_all(&refs).expect("writable");
        fs::write(refs.join("main"), "def456\n").expect("writable");
        assert_eq!(find("tiny"), Ok(snapshots.join("def456")));
        fs::write(refs.join("main"), "../../..").expect("writable");
        assert!(find("tiny").is_err());
        for name in ["../hub", "a/../b", "a/b/c", "other", ".."] {
            let refused = find(name).map(|found| found.starts_with(cache.path()));
            assert_ne!(refused, Ok(true), "{name}");
        }
        let missing = find("org/none").expect_err("no such model").to_string();
        assert!(missing.contains("models--org--none"), "{missing}");
        fs::create_dir_all(base.path().join("models/own")).expect("writable");
        assert_eq!(find("models/own"), Ok(base.path().join("models/own")));
    }
}
