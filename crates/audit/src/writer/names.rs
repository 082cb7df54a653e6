//! The names of the files of a log.

use std::io;
use std::path::{Path, PathBuf};

use crate::file::FileLayer;

/// Returns the folder of a file.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns the name of a file while it is prepared.
pub(super) fn new_file_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Returns the name of an older file: `audit-4711.jsonl` for `audit.jsonl`.
pub fn rotated_name(path: &Path, first_seq: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{first_seq}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{first_seq}"),
    };
    path.with_file_name(name)
}

/// Returns the older files, from the oldest to the newest, with the numbers of their first lines.
pub(super) fn rotated_files(disk: &dyn FileLayer, path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut files: Vec<_> = disk
        .list(&folder_of(path))?
        .into_iter()
        .filter_map(|file| {
            let name = file.file_stem()?.to_str()?;
            let number = name.strip_prefix(&*stem)?.strip_prefix('-')?;
            let number: u64 = number.parse().ok()?;
            let is_ours = rotated_name(path, number).file_name() == file.file_name();
            is_ours.then_some((number, file))
        })
        .collect();
    files.sort();
    Ok(files)
}
