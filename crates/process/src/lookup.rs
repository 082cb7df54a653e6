//! Finds the program of a process at every start: next to the running executable, then in `PATH`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use broker_model::SourceCause;
use broker_model::suggest;
use broker_model::text::shown_line;

use crate::{ProcessSpec, SpawnError, executable};

/// The maximum number of folders that a failure names; the rest are counted.
const MAX_NAMED_FOLDERS: usize = 12;
/// The maximum number of files that are compared for the nearest name.
const MAX_FILES: usize = 20_000;
/// Names below this likeness are not suggested.
const MIN_LIKENESS: f64 = 0.9;

impl ProcessSpec {
    /// Returns the file that a start would execute now, if it exists.
    pub fn program_file(&self) -> Option<PathBuf> {
        find(self).ok()
    }
}

/// Finds the file to execute.
pub(crate) fn find(spec: &ProcessSpec) -> Result<PathBuf, SpawnError> {
    let program = Path::new(&spec.program);
    if spec.program.contains('/') {
        return match check(program) {
            Candidate::Fine => Ok(program.to_owned()),
            Candidate::Denied => Err(denied(spec, program)),
            Candidate::Format(reason) => Err(format(spec, program, reason)),
            Candidate::No => Err(not_found(spec)),
        };
    }
    let mut refused = None;
    for candidate in spec.search.iter().map(|folder| folder.join(program)) {
        match check(&candidate) {
            Candidate::Fine => return Ok(candidate),
            // As in a shell: files that cannot be executed are skipped.
            Candidate::Denied => refused = refused.or_else(|| Some(denied(spec, &candidate))),
            Candidate::Format(reason) => {
                refused = refused.or_else(|| Some(format(spec, &candidate, reason)));
            }
            Candidate::No => {}
        }
    }
    Err(refused.unwrap_or_else(|| not_found(spec)))
}

/// Returns the search folders of a bare name: next to the executable (out of `examples` and `deps` also one above),
/// then in `path`. An empty element of `path` means the current folder.
pub fn search_folders(exe_dir: Option<&Path>, path: &str, base: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(dir) = exe_dir {
        folders.push(dir.to_owned());
        let name = dir.file_name().and_then(|name| name.to_str());
        if let (Some("examples" | "deps"), Some(above)) = (name, dir.parent()) {
            folders.push(above.to_owned());
        }
    }
    if !path.is_empty() {
        folders.extend(path.split(':').map(|folder| base.join(folder)));
    }
    folders
}

enum Candidate {
    Fine,
    Denied,
    Format(&'static str),
    No,
}

fn check(file: &Path) -> Candidate {
    let Ok(metadata) = fs::metadata(file) else {
        return Candidate::No;
    };
    if !metadata.is_file() {
        return Candidate::No;
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Candidate::Denied;
    }
    match executable::check(file) {
        Ok(()) => Candidate::Fine,
        Err(reason) => Candidate::Format(reason),
    }
}

fn shown(spec: &ProcessSpec, path: &Path) -> String {
    shown_line(&spec.redactor.redact(&path.to_string_lossy()), 300)
}

fn denied(spec: &ProcessSpec, path: &Path) -> SpawnError {
    let message = format!(
        "`{}` cannot be executed: permission denied",
        shown(spec, path)
    );
    SpawnError::new(SourceCause::SpawnDenied, message)
}

fn format(spec: &ProcessSpec, path: &Path, reason: &str) -> SpawnError {
    let message = format!("`{}` is not a program: {reason}", shown(spec, path));
    SpawnError::new(SourceCause::SpawnFormat, message)
}

fn not_found(spec: &ProcessSpec) -> SpawnError {
    let program = Path::new(&spec.program);
    let (wanted, mut folders) = match (program.file_name(), program.parent()) {
        (Some(name), Some(folder)) if spec.program.contains('/') => {
            (name.to_string_lossy(), vec![folder.to_owned()])
        }
        _ => (spec.program.as_str().into(), spec.search.clone()),
    };
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    let mut message = format!("`{}` was not found", shown(spec, program));
    for (index, folder) in folders.iter().take(MAX_NAMED_FOLDERS).enumerate() {
        let lead = if index == 0 { "; looked in" } else { "," };
        message.push_str(lead);
        write!(message, " `{}`", shown(spec, folder)).expect("writing to a string cannot fail");
    }
    if let Some(more @ 1..) = folders.len().checked_sub(MAX_NAMED_FOLDERS) {
        write!(message, " and {more} more").expect("writing to a string cannot fail");
    }
    if let Some(nearest) = nearest(&wanted, &folders) {
        write!(message, "; did you mean `{}`?", shown_line(&nearest, 100))
            .expect("writing to a string cannot fail");
    }
    SpawnError::new(SourceCause::SpawnNotFound, message)
}

/// Finds the most similar name in these folders, if one is similar enough.
fn nearest(wanted: &str, folders: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .take(MAX_FILES)
        .collect();
    let ranked = suggest::ranked(wanted, names.iter().map(String::as_str));
    let alike = |entry: &&(f64, &str)| entry.0 >= MIN_LIKENESS && entry.1 != wanted;
    ranked
        .iter()
        .find(alike)
        .map(|(_, name)| (*name).to_owned())
}
