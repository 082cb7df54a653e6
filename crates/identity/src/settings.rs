//! The settings of an authenticator: keys and issuers of the config, and the file of further keys.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use broker_config::identities::{
    ApiKey, Issuer, MAX_KEYS, MAX_KEYS_FILE_BYTES, groups_of_keys, parse_file,
};
use broker_config::{Identities, MissingVariable};
use broker_files::ReadError;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};

/// Keys and issuers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub(crate) keys: Vec<ApiKey>,
    pub(crate) issuers: Vec<Issuer>,
    file: Option<KeysFile>,
}

/// The names of keys and issuers that differ between two settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialChanges {
    /// The new ones.
    pub added: Vec<String>,
    /// The ones that are gone.
    pub removed: Vec<String>,
}

impl CredentialChanges {
    /// Whether nothing differs.
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// The file of keys that was read.
#[derive(Clone, Debug)]
struct KeysFile {
    path: PathBuf,
    /// The index of its first key.
    first: usize,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Variables of `keys_file` have no value.
    #[error("`identities.keys_file` needs variables that are not set: {}", names(.0))]
    Variables(Vec<MissingVariable>),
    /// The file cannot be read.
    #[error("cannot read the file of keys `{}`: {source}", shown(file))]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: ReadError,
    },
    /// The content is refused.
    #[error("the file of keys `{}` has {} problems", shown(file), problems.len())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Every problem, with its place.
        problems: Vec<Diagnostic>,
    },
    /// A key is in the config as well.
    #[error(
        "the key `{name}` of the file `{}` has the name or the digest of a key of the config",
        shown(file)
    )]
    Twice {
        /// The file.
        file: PathBuf,
        /// The name in the file.
        name: String,
        /// The index in the file.
        index: usize,
    },
    /// Together there are too many.
    #[error(
        "the config and the file of keys `{}` have {count} keys together; at most {MAX_KEYS} are used",
        shown(file)
    )]
    Count {
        /// The file.
        file: PathBuf,
        /// The number of keys.
        count: usize,
    },
}

fn shown(path: &Path) -> String {
    shown_line(&path.to_string_lossy(), 300)
}

fn names(missing: &[MissingVariable]) -> String {
    let names: Vec<_> = missing.iter().map(|one| format!("`{}`", one.0)).collect();
    names.join(", ")
}

impl Settings {
    /// Loads the settings of a config. `folder` is the folder of relative paths, `lookup` the environment.
    ///
    /// # Errors
    ///
    /// [`SettingsError`], if the file of keys cannot be used.
    pub fn load(
        identities: &Identities,
        folder: &Path,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self {
            keys: identities.keys.clone(),
            issuers: identities.issuers.clone(),
            file: None,
        };
        let Some(file) = &identities.keys_file else {
            return Ok(settings);
        };
        let file = file.expand(lookup).map_err(SettingsError::Variables)?;
        if !file.is_empty() {
            settings.read(folder.join(file))?;
        }
        Ok(settings)
    }

    fn read(&mut self, file: PathBuf) -> Result<(), SettingsError> {
        let bytes = match broker_files::read(&file, MAX_KEYS_FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(source) => return Err(SettingsError::Unreadable { file, source }),
        };
        let keys = match parse_file(&file.to_string_lossy(), &bytes) {
            Ok(keys) => keys,
            Err(problems) => return Err(SettingsError::Invalid { file, problems }),
        };
        let count = self.keys.len() + keys.len();
        if count > MAX_KEYS {
            return Err(SettingsError::Count { file, count });
        }
        let names: HashSet<_> = self.keys.iter().map(|key| &key.name).collect();
        let digests: HashSet<_> = self.keys.iter().map(|key| key.sha256).collect();
        let twice = |key: &ApiKey| names.contains(&key.name) || digests.contains(&key.sha256);
        if let Some(index) = keys.iter().position(twice) {
            let name = keys[index].name.clone();
            return Err(SettingsError::Twice { file, name, index });
        }
        let first = self.keys.len();
        self.file = Some(KeysFile { path: file, first });
        self.keys.extend(keys);
        Ok(())
    }

    /// Whether there is neither a key nor an issuer.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.issuers.is_empty()
    }

    /// Returns the names of the keys and issuers that other settings have more, less or changed. A changed one is in
    /// both lists.
    pub fn changes_to(&self, next: &Self) -> CredentialChanges {
        let missing = |from: &Self, of: &Self| -> Vec<String> {
            let keys: HashMap<_, _> = of.keys.iter().map(|key| (&key.name, key)).collect();
            let is_key_missing = |key: &&ApiKey| keys.get(&key.name) != Some(key);
            let is_issuer_missing = |issuer: &&Issuer| !of.issuers.contains(issuer);
            let names = from.keys.iter().filter(is_key_missing);
            let names = names.map(|key| key.name.clone());
            let issuers = from.issuers.iter().filter(is_issuer_missing);
            names
                .chain(issuers.map(|issuer| issuer.issuer.clone()))
                .collect()
        };
        CredentialChanges {
            added: missing(next, self),
            removed: missing(self, next),
        }
    }

    /// Returns a problem for each group of the file of keys that `exists` does not know. The groups of the config
    /// itself are checked with the config.
    pub fn unknown_groups(&self, exists: &dyn Fn(&str) -> bool) -> Vec<Diagnostic> {
        let Some(file) = &self.file else {
            return Vec::new();
        };
        let mut by_group: HashMap<&str, Diagnostic> = HashMap::new();
        let mut order = Vec::new();
        for place in groups_of_keys(&self.keys[file.first..], "") {
            if exists(place.group) || by_group.contains_key(place.group) {
                continue;
            }
            let message = format!("the group `{}` does not exist", shown_line(place.group, 80));
            let problem = Diagnostic::error(DiagnosticCode::ConfigRange, message)
                .help("add it to `access.groups`, or correct the name")
                .at(place.pointer)
                .in_file(file.path.to_string_lossy());
            by_group.insert(place.group, problem);
            order.push(place.group);
        }
        order
            .iter()
            .filter_map(|group| by_group.remove(group))
            .collect()
    }
}

impl SettingsError {
    /// Returns the same as diagnostics, each with file and place.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        use DiagnosticCode as Code;
        let message = self.to_string();
        let (code, file, pointer) = match self {
            Self::Invalid { problems, .. } => return problems,
            Self::Variables(_) => {
                let found = Diagnostic::error(Code::EnvMissing, message);
                return vec![found.at("/identities/keys_file")];
            }
            Self::Unreadable { file, .. } => {
                let found = Diagnostic::error(Code::ConfigUnreadable, message);
                let help = "correct `identities.keys_file`, or make the file with `{\"keys\": []}`";
                return vec![found.help(help).in_file(file.to_string_lossy())];
            }
            Self::Twice { file, index, .. } => (Code::ConfigRange, file, format!("/keys/{index}")),
            Self::Count { file, .. } => (Code::ConfigRange, file, "/keys".to_owned()),
        };
        let found =
            Diagnostic::error(code, message).help("remove keys from the file or the config");
        vec![found.at(pointer).in_file(file.to_string_lossy())]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use broker_config::Config;

    use super::*;

    const KEY: &str = r#"{"name":"a","sha256":"0000000000000000000000000000000000000000000000000000000000000001","groups":["x","y"]}"#;
    const OTHER: &str = r#"{"name":"b","sha256":"0000000000000000000000000000000000000000000000000000000000000002","groups":["x"]}"#;

    fn identities(keys: &str) -> Identities {
        let text = format!(
            r#"{{"tree":[],"access":{{"groups":["x","y"],"rules":[]}},"identities":{{"keys":[{keys}],"keys_file":"${{KEYS:-}}"}}}}"#
        );
        let parsed = Config::parse("c.json", text.as_bytes());
        parsed.unwrap().config.identities
    }

    fn load(keys: &str, file: Option<&str>) -> Result<Settings, SettingsError> {
        let folder = tempfile::TempDir::new().unwrap();
        if let Some(text) = file {
            fs::write(folder.path().join("keys.json"), text).unwrap();
        }
        let lookup = |name: &str| (name == "KEYS").then(|| "keys.json".to_owned());
        Settings::load(&identities(keys), folder.path(), &lookup)
    }

    #[test]
    fn settings_join_the_keys_of_config_and_file() {
        let settings = load(KEY, Some(&format!(r#"{{"keys":[{OTHER}]}}"#))).unwrap();
        let names: Vec<_> = settings.keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let unknown = settings.unknown_groups(&|_| false);
        assert_eq!(unknown.len(), 1);
        assert_eq!(unknown[0].pointer.as_deref(), Some("/keys/0/groups/0"));
        assert!(settings.unknown_groups(&|group| group == "x").is_empty());
        let none = Settings::load(&identities(""), Path::new("/none"), &|_| None).unwrap();
        assert!(none.is_empty() && none.unknown_groups(&|_| false).is_empty());
    }

    #[test]
    fn settings_with_a_file_that_cannot_be_used_are_refused_with_its_place() {
        for (file, place) in [
            (None, None),
            (Some("{"), None),
            (Some(r#"{"keys":[{"name":"b"}]}"#), Some("/keys/0")),
            (
                Some(&format!(r#"{{"keys":[{OTHER},{KEY}]}}"#)),
                Some("/keys/1"),
            ),
        ] {
            let found = load(KEY, file).unwrap_err().into_diagnostics();
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].pointer.as_deref(), place, "{found:?}");
            assert!(found[0].file.as_deref().unwrap().ends_with("keys.json"));
        }
        let large = " ".repeat(MAX_KEYS_FILE_BYTES + 1);
        assert!(matches!(
            load(KEY, Some(&large)),
            Err(SettingsError::Unreadable { .. })
        ));
        let many: Vec<_> = (3..MAX_KEYS + 3)
            .map(|n| format!(r#"{{"name":"k{n}","sha256":"{n:064x}"}}"#))
            .collect();
        let many = format!(r#"{{"keys":[{}]}}"#, many.join(","));
        assert!(
            matches!(load(KEY, Some(&many)), Err(SettingsError::Count { count, .. }) if count == MAX_KEYS + 1)
        );
    }
}
