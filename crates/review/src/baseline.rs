//! The baseline of a comparison: a lock in a file, or the lock in a git revision.

use std::path::{Path, PathBuf};

use broker_build::lock_file;
use broker_model::lock::Lock;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};

use crate::lock_file::read_lock;
use broker_process::program;

/// Reads `git:REV[:PATH]` or a file. PATH is relative to the working folder, like every path on the
/// command line; without it, it is the lock beside the config. Returns `None` if the revision lacks the path.
pub fn read_baseline(text: &str, config: &Path) -> Result<Option<Lock>, Vec<Diagnostic>> {
    let Some(rest) = text.strip_prefix("git:") else {
        return read_lock(Path::new(text)).map(|file| Some(file.lock));
    };
    let (revision, path) = match rest.split_once(':') {
        Some((revision, path)) => (revision, PathBuf::from(path)),
        None => (rest, lock_file(config)),
    };
    let unreadable = |why: String| {
        let shown = shown_line(text, 200);
        let message = format!("the baseline `{shown}` cannot be read: {why}");
        vec![Diagnostic::error(
            DiagnosticCode::BaselineUnreadable,
            message,
        )]
    };
    // Git would parse it as an option.
    if revision.is_empty() || revision.starts_with('-') {
        return Err(unreadable(
            "a revision was expected after `git:`".to_owned(),
        ));
    }
    let Some(text) = at_revision(revision, &path).map_err(unreadable)? else {
        return Ok(None);
    };
    let name = shown_line(&format!("{revision}:{}", path.display()), 200);
    Lock::parse(&name, &text).map(Some)
}

/// Whether [`read_baseline`] reads the lock beside the config.
pub fn is_of_config(text: &str) -> bool {
    text.strip_prefix("git:")
        .is_some_and(|rest| !rest.contains(':'))
}

/// Reads a file at a revision; `None` if the revision lacks it. Git resolves `./` relative to its working folder, anywhere
/// in the repository.
fn at_revision(revision: &str, path: &Path) -> Result<Option<String>, String> {
    let folder = program::folder_of(path);
    // The folder may have been removed since.
    let (folder, name) = match path.file_name() {
        Some(name) if folder.is_dir() => (folder, Path::new(name)),
        _ => (Path::new("."), path),
    };
    let Some(name) = name.to_str() else {
        return Err("its path is not UTF-8".to_owned());
    };
    let file = format!("./{name}");
    let list = [
        "--literal-pathspecs",
        "ls-tree",
        "-z",
        revision,
        "--",
        &file,
    ];
    match program::git(&list, folder) {
        Ok(listed) if listed.is_empty() => return Ok(None),
        Ok(_) => {}
        Err(problem) if is_shallow(folder) => {
            return Err(format!(
                "{problem}; this clone is shallow: fetch the revision, for `actions/checkout` with `fetch-depth: 0`"
            ));
        }
        Err(problem) => return Err(problem),
    }
    let object = format!("{revision}:{file}");
    // Not `show`: it lists a folder and applies filters of the repository.
    program::git(&["cat-file", "blob", &object], folder).map(Some)
}

fn is_shallow(folder: &Path) -> bool {
    program::git(&["rev-parse", "--is-shallow-repository"], folder)
        .is_ok_and(|answer| answer.trim() == "true")
}
