//! Replaces a file atomically: a reader sees the old text or the new one, never a part of it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use broker_model::{Diagnostic, DiagnosticCode};

use broker_process::program::folder_of;

/// The minimum age of a draft that a killed program left behind. A running program renames its draft within seconds.
const MIN_STALE_AGE: Duration = Duration::from_secs(3600);
/// The mode of a new file. No other user may write it, whatever the umask is.
const NEW_MODE: u32 = 0o644;
/// The mode of a program.
const PROGRAM_MODE: u32 = 0o755;
/// Number of random letters and digits in the name of a draft.
const RANDOM_CHARS: usize = 6;

/// Waits until no other run of this program writes a file in the folder of `path`, so that a run that compares the file
/// with what it read, and then writes it, does not undo another run. The turn ends when the value is dropped. A file
/// system without locks of files gives an error, and leaves this to its users.
pub fn turn(path: &Path) -> io::Result<fs::File> {
    let folder = fs::File::open(folder_of(path))?;
    folder.lock()?;
    Ok(folder)
}

/// Waits for the turn, and refuses a file that is not as it was read: `before` has its bytes, `None` if there was no
/// readable file. The file may be written until the value is dropped.
pub fn turn_if_unchanged(
    path: &Path,
    before: Option<&[u8]>,
    max_bytes: usize,
) -> Result<Option<fs::File>, Vec<Diagnostic>> {
    let turn = turn(path).ok();
    let current = broker_files::read(path, max_bytes);
    if current.as_deref().ok() == before {
        return Ok(turn);
    }
    let how = match current {
        Ok(_) => "another program changed it while this run worked".to_owned(),
        Err(error) => format!("another program changed it while this run worked: {error}"),
    };
    let message = format!("`{}` is not written: {how}", path.display());
    let help = "Run the command again; it reads the file as it is now.";
    Err(vec![
        Diagnostic::error(DiagnosticCode::FileWrite, message).help(help),
    ])
}

/// Writes `bytes` to a draft in the same folder and renames it to the file. Drafts of the same file that
/// killed programs left behind are removed. A symbolic link stays: the file behind it is replaced, and there must be one. A
/// device or a pipe is written as it is.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, None)
}

/// [`write_whole`] for a program: everyone may execute it, and only its user may write it, whatever mode the file had.
pub fn write_program(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, Some(PROGRAM_MODE))
}

fn write_with_mode(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let target = broker_files::link_target(path)?;
    let kind = fs::metadata(&target).map(|metadata| metadata.file_type());
    if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
        return fs::write(&target, bytes);
    }
    let draft = draft(&target, bytes).map_err(broker_files::with_help)?;
    if let Some(mode) = mode {
        draft
            .as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
    }
    broker_files::put_in_place(draft.path(), &target)
}

/// [`write_whole`] for a file that must not exist. If there is one, the error is `AlreadyExists`.
pub fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let draft = draft(path, text.as_bytes()).map_err(broker_files::with_help)?;
    draft.persist_noclobber(path)?;
    Ok(())
}

/// A draft with these bytes and the mode of the file, in its folder.
fn draft(path: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let folder = folder_of(path);
    let prefix = draft_prefix(path);
    remove_stale_drafts(folder, &prefix);
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .rand_bytes(RANDOM_CHARS)
        // A temporary file is private by default; a lock has the usual permissions of a file, less those that the
        // umask takes away.
        .permissions(fs::Permissions::from_mode(NEW_MODE))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Ok(old) = fs::metadata(path) {
        let mode = old.permissions().mode() & 0o777;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

/// The prefix of the names of this file's drafts. It contains the file's name, since a folder may have
/// several.
fn draft_prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}-")
}

/// Removes old drafts. A draft that cannot be inspected or removed is harmless and stays.
fn remove_stale_drafts(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_old = || {
            let data = entry.metadata().ok()?;
            let age = SystemTime::now().duration_since(data.modified().ok()?);
            Some(data.is_file() && age.ok()? >= MIN_STALE_AGE)
        };
        if is_draft(&entry.file_name(), prefix) && is_old() == Some(true) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn is_draft(name: &OsStr, prefix: &str) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(prefix));
    random.is_some_and(|random| {
        random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_changed_since_it_was_read_has_no_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        let turn_of = |before: Option<&[u8]>| turn_if_unchanged(&path, before, 8);
        assert!(turn_of(None).unwrap().is_some());
        for (text, before, is_fine) in [
            ("one", Some("one"), true),
            ("two", Some("one"), false),
            ("two", None, false),
            // It could not be read before either.
            ("too long a text", None, true),
            ("too long a text", Some("one"), false),
        ] {
            fs::write(&path, text).unwrap();
            let result = turn_of(before.map(str::as_bytes));
            assert_eq!(result.is_ok(), is_fine, "{text}, {before:?}");
        }
        fs::remove_file(&path).unwrap();
        let problems = turn_of(Some(b"one")).unwrap_err();
        assert!(problems[0].message.contains("c.json"), "{problems:?}");
    }

    #[test]
    fn program_is_executable_whatever_mode_the_file_had() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broker");
        for mode in [None, Some(0o600), Some(0o777)] {
            if let Some(mode) = mode {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            write_program(&path, b"new").unwrap();
            let written = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(written & 0o777, 0o755, "{mode:?}");
        }
    }

    #[test]
    fn file_behind_a_link_is_replaced_and_the_link_stays() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("store")).unwrap();
        fs::write(at("store/real.json"), "old").unwrap();
        fs::set_permissions(at("store/real.json"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("store/real.json", at("c.json")).unwrap();
        write_whole(&at("c.json"), b"new").unwrap();
        assert_eq!(
            fs::read_link(at("c.json")).unwrap().to_str(),
            Some("store/real.json")
        );
        assert_eq!(fs::read_to_string(at("store/real.json")).unwrap(), "new");
        let mode = fs::metadata(at("store/real.json"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640);
        for name in ["", "store"] {
            let drafts = fs::read_dir(at(name)).unwrap().flatten();
            assert!(
                drafts
                    .map(|entry| entry.file_name())
                    .all(|name| !is_draft(&name, ".real.json-"))
            );
        }

        symlink("store/missing.json", at("dangling.json")).unwrap();
        let error = write_whole(&at("dangling.json"), b"new").unwrap_err();
        assert!(error.to_string().contains("a symbolic link"), "{error}");
        assert!(!at("store/missing.json").exists());
        write_whole(Path::new("/dev/null"), b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn file_that_is_new_replaces_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        write_new(&path, "one").unwrap();
        let error = write_new(&path, "two").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "no draft is left");
    }

    #[test]
    fn file_drafts_that_are_stale_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let make = |name: &str, age: Duration| {
            let file = fs::File::create(at(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        let stale = [".a.lock.json-AbC123", ".a.lock.json-000000"];
        let others = [
            ".b.lock.json-AbC123",
            ".a.lock.json-AbC12",
            ".a.lock.json-AbC12~",
            ".a.lock.json-AbC1234",
            "a.lock.json-AbC123",
            "other",
        ];
        for name in stale.iter().chain(&others) {
            make(name, 2 * MIN_STALE_AGE);
        }
        make(".a.lock.json-recent", Duration::ZERO);
        make(".a.lock.json-Recent", MIN_STALE_AGE / 2);
        make("a.lock.json", 2 * MIN_STALE_AGE);
        fs::create_dir(at(".a.lock.json-folder")).unwrap();

        write_whole(&at("a.lock.json"), b"new").unwrap();
        assert_eq!(fs::read_to_string(at("a.lock.json")).unwrap(), "new");
        assert!(!stale.iter().any(|name| at(name).exists()));
        let kept = [
            ".a.lock.json-recent",
            ".a.lock.json-Recent",
            ".a.lock.json-folder",
        ];
        assert!(others.iter().chain(&kept).all(|name| at(name).exists()));
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, others.len() + kept.len() + 1, "no draft is left");
    }
}
