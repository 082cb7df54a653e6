//! Puts a draft in the place of a file: through a symbolic link, and where the file cannot be replaced by a rename because
//! it is mounted by itself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The ending of the copy of a file that is written in place.
const COPY_ENDING: &str = ".before";

/// Returns the file itself, where links end. A missing file without a link is fine.
///
/// # Errors
///
/// A link to a file that does not exist, a circle of links, or an error of the operating system.
pub fn link_target(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {}
        Ok(_) => return Ok(path.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
        Err(error) => return Err(error),
    }
    fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(
            "it is a symbolic link to a file that does not exist; make the file or remove the link",
        ),
        _ => error,
    })
}

/// Renames a draft to the file, which is not a link. A file that is mounted by itself is written in place, after a copy
/// beside it: the copy stays only if neither the new text nor the old one could be written. The draft may still exist
/// afterwards.
///
/// # Errors
///
/// The error of the operating system, with a help if it has one.
pub fn put_in_place(draft: &Path, target: &Path) -> io::Result<()> {
    let renamed = fs::rename(draft, target);
    let put = renamed.or_else(|error| match error.kind() {
        io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => in_place(draft, target),
        _ => Err(error),
    });
    put.map_err(with_help)
}

/// Adds to an error of writing a file what to do about it, if the words of the operating system do not say it.
pub fn with_help(error: io::Error) -> io::Error {
    let help = match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "mount its folder for writing; if the file is mounted by itself, mount its folder instead"
        }
        io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => {
            "the file is mounted by itself; mount its folder instead"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space in its folder; the file is as it was"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}: {help}"))
}

/// Writes the text of a draft over the file.
fn in_place(draft: &Path, target: &Path) -> io::Result<()> {
    let (new, old) = (fs::read(draft)?, fs::read(target)?);
    let mut copy = draft.as_os_str().to_owned();
    copy.push(COPY_ENDING);
    let copy = PathBuf::from(copy);
    let copied = fs::copy(target, &copy).and_then(|_| File::open(&copy)?.sync_all());
    if let Err(error) = copied {
        // The reported error is the first one.
        drop(fs::remove_file(&copy));
        return Err(error);
    }
    let written = overwrite(target, &new);
    if written.is_err() && overwrite(target, &old).is_err() {
        let copy = copy.display();
        return written.map_err(|error| {
            let message = format!("{error}; the text before is in `{copy}`");
            io::Error::new(error.kind(), message)
        });
    }
    drop(fs::remove_file(&copy));
    written
}

/// Writes over a file without emptying it first: a full disk fails before the old text is cut.
fn overwrite(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(target)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn link_leads_to_its_file_and_a_dangling_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(link_target(&at("new")).unwrap(), at("new"));
        fs::write(at("file"), "old").unwrap();
        assert_eq!(link_target(&at("file")).unwrap(), at("file"));
        symlink("file", at("link")).unwrap();
        symlink("link", at("second")).unwrap();
        let file = fs::canonicalize(at("file")).unwrap();
        assert_eq!(link_target(&at("second")).unwrap(), file);
        symlink("missing", at("dangling")).unwrap();
        let error = link_target(&at("dangling")).unwrap_err().to_string();
        assert!(error.contains("a file that does not exist"), "{error}");
        symlink("circle", at("circle")).unwrap();
        assert!(link_target(&at("circle")).is_err());
    }

    #[test]
    fn file_that_is_written_in_place_leaves_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("draft"), "new").unwrap();
        fs::write(at("file"), "a longer old text").unwrap();
        in_place(&at("draft"), &at("file")).unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(in_place(&at("draft"), &at("missing")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
