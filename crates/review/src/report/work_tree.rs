//! The path of a file in annotations and SARIF: services resolve it from the top of the repository, not from the working
//! folder of a step.

use std::path::{Path, PathBuf};

/// The folder with the files of a job of GitHub Actions.
const WORKSPACE_VARIABLE: &str = "GITHUB_WORKSPACE";

/// The path relative to the top of its git work tree, else to the workspace of the job. A path outside of both stays as
/// it is.
pub(super) fn path_in_repository(path: &Path) -> String {
    let workspace = std::env::var_os(WORKSPACE_VARIABLE).map(PathBuf::from);
    let inside = relative(path, workspace.as_deref());
    inside
        .as_deref()
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

fn relative(path: &Path, workspace: Option<&Path>) -> Option<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let whole = folder.canonicalize().ok()?.join(path.file_name()?);
    // In a linked work tree and in a submodule, `.git` is a file.
    let top = whole
        .ancestors()
        .skip(1)
        .find(|folder| folder.join(".git").exists());
    let workspace = workspace.and_then(|folder| folder.canonicalize().ok());
    let root = top.or(workspace.as_deref())?;
    Some(whole.strip_prefix(root).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn path_is_relative_to_the_work_tree_or_to_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let service = folder.path().join("services/a");
        fs::create_dir_all(&service).unwrap();
        let lock = service.join("c.lock.json");
        assert_eq!(relative(&lock, None), None);
        assert_eq!(
            relative(&lock, Some(folder.path())),
            Some("services/a/c.lock.json".into())
        );
        fs::write(folder.path().join("services/.git"), "gitdir: x").unwrap();
        for workspace in [None, Some(folder.path()), Some(Path::new("/nowhere"))] {
            assert_eq!(relative(&lock, workspace), Some("a/c.lock.json".into()));
        }
        assert_eq!(relative(&folder.path().join("none/c.json"), None), None);
    }
}
