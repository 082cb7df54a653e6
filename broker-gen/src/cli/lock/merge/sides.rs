//! The texts to merge: files that the command line names, or the sides of an unmerged file in git's index.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use broker_audits_file as audits_file;
use broker_files::ReadError;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_process::program::{self, folder_of};

use super::three_way::Side;

/// The kinds of files that are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lock,
    Audits,
}

impl Kind {
    /// Detects the kind by the name of a file, else by the first character of a text.
    pub(super) fn detect(name: Option<&Path>, text: &str) -> Self {
        let name = name.map(|name| name.to_string_lossy());
        match name {
            Some(name) if name.ends_with(".toml") => Self::Audits,
            Some(name) if name.ends_with(".json") => Self::Lock,
            _ if text
                .trim_start_matches('\u{feff}')
                .trim_start()
                .starts_with('{') =>
            {
                Self::Lock
            }
            _ => Self::Audits,
        }
    }

    /// The maximum size of a file.
    pub(super) fn max_bytes(self) -> usize {
        match self {
            Self::Lock => broker_model::lock::MAX_BYTES,
            Self::Audits => audits_file::MAX_BYTES,
        }
    }
}

/// The texts of one merge.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    /// The file, for messages.
    pub(super) name: String,
    pub(super) base: Option<String>,
    pub(super) ours: String,
    pub(super) theirs: String,
}

impl Texts {
    /// The name of a side in messages.
    pub(super) fn name_of(&self, side: Side) -> String {
        format!("{} ({side})", self.name)
    }
}

/// An error of the command line or of a file that it names.
pub(super) fn unreadable(message: String) -> Vec<Diagnostic> {
    vec![Diagnostic::error(DiagnosticCode::MergeUnreadable, message)]
}

/// Reads one file of at most the size of a lock. A pipe is read as well.
pub(super) fn read(path: &Path) -> Result<String, Vec<Diagnostic>> {
    let text = broker_files::read_text_or_pipe(path, broker_model::lock::MAX_BYTES);
    text.map_err(|error| not_read(path, &error))
}

pub(super) fn not_read(path: &Path, error: &ReadError) -> Vec<Diagnostic> {
    let shown = shown_line(&path.to_string_lossy(), 200);
    unreadable(format!("`{shown}` cannot be read: {error}"))
}

/// Refuses that two of the files are the same one: a merge needs two sides.
pub(super) fn refuse_same(files: &[PathBuf]) -> Result<(), Vec<Diagnostic>> {
    // Two names may be one file by hard links.
    let id = |file: &PathBuf| {
        let data = file.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((data.dev(), data.ino()))
    };
    for (index, one) in files.iter().enumerate() {
        let mut others = files[index + 1..].iter();
        let same = others.find(|other| id(one).is_some() && id(one) == id(other));
        if let Some(other) = same {
            let shown = |path: &Path| shown_line(&path.to_string_lossy(), 200);
            let message = format!("`{}` and `{}` are the same file", shown(one), shown(other));
            return Err(unreadable(message));
        }
    }
    Ok(())
}

/// The sides of an unmerged file, `None` if git has no such file.
pub(super) fn unmerged(file: &Path) -> Result<Option<Texts>, Vec<Diagnostic>> {
    let shown = shown_line(&file.to_string_lossy(), 200);
    let refused = |why: String| unreadable(format!("the sides of `{shown}` cannot be read: {why}"));
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| refused("its name is not UTF-8".to_owned()))?;
    let folder = folder_of(file);
    let args = ["--literal-pathspecs", "ls-files", "-u", "-z", "--", name];
    let listed = program::git(&args, folder).map_err(refused)?;
    let (mut base, mut ours, mut theirs) = (None, None, None);
    for entry in listed.split('\0').filter(|entry| !entry.is_empty()) {
        // `MODE ID STAGE<tab>PATH`
        let words: Vec<_> = entry.split(['\t', ' ']).take(3).collect();
        let [mode, id, stage] = words[..] else {
            continue;
        };
        if !mode.starts_with("100") {
            return Err(refused("a side is not a regular file".to_owned()));
        }
        let text = program::git(&["cat-file", "blob", id], folder).map_err(refused)?;
        match stage {
            "1" => base = Some(text),
            "2" => ours = Some(text),
            _ => theirs = Some(text),
        }
    }
    match (ours, theirs) {
        (None, None) => Ok(None),
        (Some(ours), Some(theirs)) => Ok(Some(Texts {
            name: file.to_string_lossy().into_owned(),
            base,
            ours,
            theirs,
        })),
        _ => Err(refused(
            "one side removed it; keep it with `git add` or remove it with `git rm`".to_owned(),
        )),
    }
}
