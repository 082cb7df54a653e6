//! Paths that lead to one file, and the files that names of programs lead to.

use std::env;
use std::path::{Path, PathBuf};

/// Whether two paths lead to the same existing file, after every symbolic link.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Returns the name of a program's file, after every symbolic link. A bare name is searched for in `PATH`. `None` if no
/// such file exists.
pub fn program_name(program: &Path) -> Option<String> {
    let found = if program.components().count() > 1 || program.is_absolute() {
        program.canonicalize().ok()
    } else {
        let path = env::var_os("PATH")?;
        let mut files = env::split_paths(&path).map(|folder| folder.join(program));
        files.find_map(|file: PathBuf| file.is_file().then(|| file.canonicalize().ok())?)
    };
    Some(found?.file_name()?.to_string_lossy().into_owned())
}

/// Whether a file or a program of this name exists for the config in `file`: a bare name is searched for in `PATH`, a
/// relative path in the folder of the file and in the one above it, because a file in a hidden folder refers to the
/// latter.
pub fn exists(name: &str, file: &Path) -> bool {
    let program = Path::new(name);
    let folder = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let mut folders = folder.ancestors().skip(1).take(2);
    folders.any(|folder| folder.join(program).exists()) || program_name(program).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_or_file_exists_beside_the_config_or_in_path() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("mcp.json");
        std::fs::write(folder.path().join("my server"), "x").unwrap();
        for (name, found) in [
            ("my server", true),
            ("./my server", true),
            ("sh", true),
            ("/bin/sh", true),
            ("sh -c x", false),
            ("./other", false),
        ] {
            assert_eq!(exists(name, &file), found, "{name}");
        }
    }

    #[test]
    fn links_lead_to_the_file_and_its_name() {
        let folder = tempfile::TempDir::new().unwrap();
        let [file, link, other] =
            ["mcp-broker", "link", "other"].map(|name| folder.path().join(name));
        std::fs::write(&file, "x").unwrap();
        std::fs::write(&other, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(is_same_file(&file, &link));
        assert!(!is_same_file(&file, &other));
        let missing = folder.path().join("missing");
        assert!(!is_same_file(&missing, &missing));
        assert_eq!(program_name(&link).as_deref(), Some("mcp-broker"));
        assert_eq!(program_name(&missing), None);
        assert_eq!(program_name(Path::new("sh-that-does-not-exist")), None);
    }
}
