//! The config that a program reads if its arguments do not name one: the same for every verb and for a build.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names the config.
pub const CONFIG_VARIABLE: &str = "MCP_BROKER_CONFIG";
/// The names of a config in the folder, the preferred one first. This repository uses the second one.
const CONFIG_NAMES: [&str; 2] = ["config.json", "smoke_config.json"];

/// A config that no argument named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultConfig {
    /// The file, absolute or relative to the folder.
    pub file: PathBuf,
    /// Whether the variable named it.
    pub is_from_variable: bool,
}

/// Returns the file that `MCP_BROKER_CONFIG` names, else `config.json` if `folder` has one, else `smoke_config.json` if
/// `folder` has one, else `config.json`. In the last case the file is missing.
pub fn default_config(folder: &Path) -> DefaultConfig {
    choose(std::env::var_os(CONFIG_VARIABLE), folder)
}

fn choose(variable: Option<OsString>, folder: &Path) -> DefaultConfig {
    match variable.filter(|name| !name.is_empty()) {
        Some(name) => DefaultConfig {
            file: name.into(),
            is_from_variable: true,
        },
        None => DefaultConfig {
            file: default_file(folder).into(),
            is_from_variable: false,
        },
    }
}

/// The default without the variable.
fn default_file(folder: &Path) -> &'static str {
    // A dangling link counts as existing: its error is better than the choice of another file.
    let exists = |name: &&str| folder.join(name).symlink_metadata().is_ok();
    CONFIG_NAMES
        .into_iter()
        .find(exists)
        .unwrap_or(CONFIG_NAMES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_config_is_that_of_the_variable_or_the_first_existing_name() {
        let folder = tempfile::TempDir::new().unwrap();
        let chosen = |variable: Option<&str>| {
            let chosen = choose(variable.map(OsString::from), folder.path());
            let file = chosen.file.to_str().unwrap().to_owned();
            (file, chosen.is_from_variable)
        };
        let expected = |file: &str, is_from_variable| (file.to_owned(), is_from_variable);
        let write = |name| std::fs::write(folder.path().join(name), "{}").unwrap();
        assert_eq!(chosen(None), expected("config.json", false));
        write("smoke_config.json");
        assert_eq!(chosen(None), expected("smoke_config.json", false));
        write("config.json");
        assert_eq!(chosen(None), expected("config.json", false));
        assert_eq!(chosen(Some("")), expected("config.json", false));
        assert_eq!(chosen(Some("a/b.json")), expected("a/b.json", true));
    }
}
