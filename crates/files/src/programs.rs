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

/// The name of the file that a program is, after every symbolic link. A bare name is searched for in `PATH`. `None` if
/// there is no such file.
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

#[cfg(test)]
mod tests {
    use super::*;

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
