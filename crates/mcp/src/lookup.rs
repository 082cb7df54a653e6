//! Finds the program of a source at every start: beside the running executable, then in `PATH`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use broker_model::SourceCause;
use broker_model::text::shown_line;

use crate::executable;
use crate::failure::SourceFailure;
use crate::launch::Launch;

/// Folders that a failure names one by one; the rest are counted.
const NAMED_FOLDERS: usize = 12;
/// Files that are looked over for the nearest name.
const MOST_FILES: usize = 20_000;
/// Below this likeness a name is no suggestion.
const LIKENESS: f64 = 0.9;

/// The file to execute, or why there is none.
pub(crate) fn find(launch: &Launch) -> Result<PathBuf, SourceFailure> {
    let program = Path::new(&launch.program);
    if launch.program.contains('/') {
        return match check(program) {
            Found::Fine => Ok(program.to_owned()),
            Found::Denied => Err(denied(launch, program)),
            Found::Format(reason) => Err(format(launch, program, reason)),
            Found::No => Err(not_found(launch)),
        };
    }
    let mut refused = None;
    for candidate in launch.search.iter().map(|folder| folder.join(program)) {
        match check(&candidate) {
            Found::Fine => return Ok(candidate),
            // As in a shell: what may not be executed is passed over for what may.
            Found::Denied => refused = refused.or_else(|| Some(denied(launch, &candidate))),
            Found::Format(reason) => {
                refused = refused.or_else(|| Some(format(launch, &candidate, reason)));
            }
            Found::No => {}
        }
    }
    Err(refused.unwrap_or_else(|| not_found(launch)))
}

/// Where a bare name is looked for: beside the executable (out of `examples` and `deps` also one
/// above), then in `path`, in which an empty element means the current folder.
pub(crate) fn search_folders(exe_dir: Option<&Path>, path: &str, base: &Path) -> Vec<PathBuf> {
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

enum Found {
    Fine,
    Denied,
    Format(&'static str),
    No,
}

fn check(file: &Path) -> Found {
    let Ok(metadata) = fs::metadata(file) else {
        return Found::No;
    };
    if !metadata.is_file() {
        return Found::No;
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Found::Denied;
    }
    match executable::check(file) {
        Ok(()) => Found::Fine,
        Err(reason) => Found::Format(reason),
    }
}

fn shown(launch: &Launch, path: &Path) -> String {
    shown_line(&launch.redactor.redact(&path.to_string_lossy()), 300)
}

fn denied(launch: &Launch, path: &Path) -> SourceFailure {
    let message = format!("`{}` may not be executed", shown(launch, path));
    SourceFailure::new(SourceCause::SpawnDenied, message)
}

fn format(launch: &Launch, path: &Path, reason: &str) -> SourceFailure {
    let message = format!("`{}` is no program: {reason}", shown(launch, path));
    SourceFailure::new(SourceCause::SpawnFormat, message)
}

fn not_found(launch: &Launch) -> SourceFailure {
    let program = Path::new(&launch.program);
    let (wanted, mut folders) = match (program.file_name(), program.parent()) {
        (Some(name), Some(folder)) if launch.program.contains('/') => {
            (name.to_string_lossy(), vec![folder.to_owned()])
        }
        _ => (launch.program.as_str().into(), launch.search.clone()),
    };
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    let mut message = format!("`{}` was not found", shown(launch, program));
    for (index, folder) in folders.iter().take(NAMED_FOLDERS).enumerate() {
        let lead = if index == 0 { "; looked in" } else { "," };
        message.push_str(lead);
        write!(message, " `{}`", shown(launch, folder)).expect("writing to a string cannot fail");
    }
    if let Some(more @ 1..) = folders.len().checked_sub(NAMED_FOLDERS) {
        write!(message, " and {more} more").expect("writing to a string cannot fail");
    }
    if let Some(nearest) = nearest(&wanted, &folders) {
        write!(message, "; did you mean `{}`?", shown_line(&nearest, 100))
            .expect("writing to a string cannot fail");
    }
    SourceFailure::new(SourceCause::SpawnNotFound, message)
}

/// The most similar name in these folders, where one is similar enough.
fn nearest(wanted: &str, folders: &[PathBuf]) -> Option<String> {
    folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .take(MOST_FILES)
        .map(|name| (strsim::jaro_winkler(wanted, &name), name))
        .filter(|(likeness, name)| *likeness >= LIKENESS && name != wanted)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)))
        .map(|(_, name)| name)
}
