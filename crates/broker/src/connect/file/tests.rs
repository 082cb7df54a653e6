//! Backups, modes and files that are refused.

use std::fs::File;

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        // The record of the writes.
        .filter(|name| !name.ends_with(".connect.json"))
        .collect();
    names.sort();
    names
}

#[test]
fn replaced_file_keeps_its_mode_and_every_backup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "one").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    for (text, backups) in [("two", 1), ("three", 2), ("two", 3), ("four", 3)] {
        let file = ClientFile::open(&path).unwrap();
        let backup = file.replace(text, false).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&backup).unwrap(), file.text());
        assert_eq!(
            fs::metadata(&backup).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(names(folder.path()).len(), backups + 1, "{text}");
    }
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    let file = ClientFile::open(&path).unwrap();
    file.replace("secret", true).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        names(folder.path()),
        ["f", "f.bak", "f.bak.1", "f.bak.2", "f.bak.3"]
    );
    // The backup with the same content exists already: it gets the mode of the new file.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("f.bak.3")), 0o600);
    assert_eq!(mode(&folder.path().join("f.bak.1")), 0o640);
    fs::write(&path, "two").unwrap();
    let file = ClientFile::open(&path).unwrap();
    let backup = file.replace("another secret", true).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&backup).unwrap(), "two");
    assert_eq!(mode(&backup), 0o600);
}

#[test]
fn file_that_changed_meanwhile_is_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "one").unwrap();
    let file = ClientFile::open(&path).unwrap();
    fs::write(&path, "other").unwrap();
    let error = file.replace("two", false).unwrap_err().to_string();
    assert!(error.contains("close the client"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    assert_eq!(names(folder.path()), ["f", "f.bak"]);
    let missing = ClientFile::open(&folder.path().join("g")).unwrap();
    fs::write(folder.path().join("g"), "new").unwrap();
    assert!(missing.replace("two", false).is_err());
    assert_eq!(fs::read_to_string(folder.path().join("g")).unwrap(), "new");
}

#[test]
fn backup_of_a_write_that_failed_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "one").unwrap();
    let file = ClientFile::open(&path).unwrap();
    // A folder has the name of the draft, so that it cannot be written.
    let draft = beside(&path, &format!(".connect-{}", std::process::id()));
    fs::create_dir(&draft).unwrap();
    let error = file.replace("two", false).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    fs::remove_dir(&draft).unwrap();
    assert_eq!(names(folder.path()), ["f"]);
}

#[test]
fn file_that_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    File::create(path("large"))
        .and_then(|file| file.set_len(MAX_FILE_BYTES as u64 + 1))
        .unwrap();
    fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
    std::os::unix::fs::symlink("nothing", path("link")).unwrap();
    for (name, part) in [
        ("large", "8388608 bytes"),
        ("bytes", "not UTF-8"),
        ("link", "symbolic link"),
        ("", "a folder"),
    ] {
        let error = ClientFile::open(&path(name)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(ClientFile::open(&path("missing")).unwrap().text(), "");
}

fn record_exists(path: &Path) -> bool {
    fs::symlink_metadata(beside(path, ".connect.json")).is_ok()
}

#[test]
fn undo_takes_each_write_back_and_the_next_one_finds_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let undo = || ClientFile::open(&path).unwrap().undo();
    fs::write(&path, "\u{feff}one\r\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    for (text, is_private) in [("two", false), ("three", true)] {
        ClientFile::open(&path)
            .unwrap()
            .replace(text, is_private)
            .unwrap();
    }
    assert_eq!(undo().unwrap(), Undone::Restored);
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(undo().unwrap(), Undone::Restored);
    assert_eq!(fs::read(&path).unwrap(), "\u{feff}one\r\n".as_bytes());
    let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o644);
    let error = undo().unwrap_err().to_string();
    assert!(error.contains("no write of `connect`"), "{error}");
    assert_eq!(names(folder.path()), ["f"]);
    assert!(!record_exists(&path));
}

#[test]
fn undo_removes_a_file_that_a_write_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    ClientFile::open(&path)
        .unwrap()
        .replace("new", false)
        .unwrap();
    assert_eq!(
        ClientFile::open(&path).unwrap().undo().unwrap(),
        Undone::Removed
    );
    assert!(names(folder.path()).is_empty() && !record_exists(&path));
    assert!(ClientFile::open(&path).unwrap().undo().is_err());
}

#[test]
fn undo_after_edits_of_others_leaves_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "one").unwrap();
    ClientFile::open(&path)
        .unwrap()
        .replace("two", false)
        .unwrap();
    for (text, part) in [("two, edited", "f.bak`"), ("", "was changed")] {
        fs::write(&path, text).unwrap();
        let error = ClientFile::open(&path).unwrap().undo().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    // The edit is taken back by its author, and a backup that was changed is not put back.
    fs::write(&path, "two").unwrap();
    fs::write(folder.path().join("f.bak"), "other").unwrap();
    let error = ClientFile::open(&path).unwrap().undo().unwrap_err();
    assert!(error.to_string().contains("f.bak` was changed"), "{error}");
    fs::write(folder.path().join("f.bak"), "one").unwrap();
    assert_eq!(
        ClientFile::open(&path).unwrap().undo().unwrap(),
        Undone::Restored
    );
    // A file that the user has removed.
    ClientFile::open(&path)
        .unwrap()
        .replace("two", false)
        .unwrap();
    fs::remove_file(&path).unwrap();
    assert!(ClientFile::open(&path).unwrap().undo().is_err());
    assert!(!path.exists());
}

#[test]
fn undo_passes_over_a_write_that_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "one").unwrap();
    ClientFile::open(&path)
        .unwrap()
        .replace("two", false)
        .unwrap();
    // The record of the next write is there, its text is not.
    let mut record = Record::read(&path).unwrap();
    record.push(Write {
        before: Some(Before {
            sha256: digest(b"two"),
            mode: 0o644,
            backup: 1,
        }),
        after: digest(b"three"),
    });
    record.save(&path).unwrap();
    assert_eq!(
        ClientFile::open(&path).unwrap().undo().unwrap(),
        Undone::Restored
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
}

#[test]
fn record_that_is_a_link_or_not_readable_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "one").unwrap();
    let record = beside(&path, ".connect.json");
    std::os::unix::fs::symlink("/etc/hostname", &record).unwrap();
    let file = ClientFile::open(&path).unwrap();
    assert!(
        file.replace("two", false)
            .unwrap_err()
            .to_string()
            .contains("regular file")
    );
    fs::remove_file(&record).unwrap();
    for text in ["", "{}", r#"{"version": 2, "writes": []}"#] {
        fs::write(&record, text).unwrap();
        assert!(file.undo().unwrap_err().to_string().contains("remove it"));
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
}

#[test]
fn read_only_file_is_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "one").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let error = ClientFile::open(&path)
        .unwrap()
        .replace("two", false)
        .unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    assert_eq!(names(folder.path()), ["f"]);
}
