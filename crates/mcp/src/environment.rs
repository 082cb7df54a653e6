//! The process environment, read once, and the part of it that a child inherits.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use broker_model::redact::{Secret, is_secret_name};
use broker_model::secret_text;
use broker_process::guard::{ALLOCATOR, VARIABLE};

/// The environment that variables are expanded from and children inherit from. `Debug` shows no value.
#[derive(Clone)]
pub struct Environment {
    vars: BTreeMap<String, String>,
    exe_dir: Option<PathBuf>,
}

/// Variables that every child inherits, in addition to those with one of [`BASE_PREFIXES`].
const BASE: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TMPDIR",
    "TERM",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
];
const BASE_PREFIXES: [&str; 2] = ["LC_", "XDG_"];
/// Variables that say where installers keep files and find packages, in addition to those with one of
/// [`INSTALLER_PREFIXES`]. npm reads its variables in upper and lower case.
const INSTALLER: [&str; 2] = ["DENO_DIR", "BUN_INSTALL_CACHE_DIR"];
const INSTALLER_PREFIXES: [&str; 4] = ["NPM_CONFIG_", "npm_config_", "UV_", "PIP_"];
/// Ends of names of npm's secrets that other secrets do not have.
const NPM_SECRETS: [&str; 2] = ["_otp", "_keyfile_password"];
impl Environment {
    /// Reads this process's environment and the folder of its executable. Variables that are not UTF-8 are left out,
    /// and so is the variable of the guard.
    pub fn capture() -> Self {
        let guarded = std::env::var_os(VARIABLE).is_some();
        let ours = |name: &OsString, value: &OsString| {
            name == VARIABLE
                || (guarded
                    && ALLOCATOR
                        .iter()
                        .any(|ours| name == ours.0 && value == ours.1))
        };
        let vars = std::env::vars_os()
            .filter(|(name, value)| !ours(name, value))
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let exe_dir = std::env::current_exe()
            .ok()
            .and_then(|exe| Some(exe.parent()?.to_owned()));
        Self { vars, exe_dir }
    }

    /// Makes an environment with these variables.
    pub fn new(vars: BTreeMap<String, String>, exe_dir: Option<PathBuf>) -> Self {
        Self { vars, exe_dir }
    }

    /// Adds variables in place of those with the same names.
    pub fn with(mut self, variables: impl IntoIterator<Item = (String, Secret)>) -> Self {
        let variables = variables.into_iter();
        self.vars
            .extend(variables.map(|(name, value)| (name, value.expose().to_owned())));
        self
    }

    /// Returns a variable's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str)
    }

    /// Returns the folder of the running executable.
    pub fn exe_dir(&self) -> Option<&std::path::Path> {
        self.exe_dir.as_deref()
    }

    /// Returns every name and value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.vars
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Whether every child inherits this variable with this value.
pub(crate) fn is_base(name: &str, value: &str) -> bool {
    BASE.contains(&name)
        || BASE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || (is_installer(name) && !has_installer_secret(name, value))
}

/// Whether a variable says where an installer keeps files and finds packages.
pub(crate) fn is_installer(name: &str) -> bool {
    let has_prefix = || {
        let mut prefixes = INSTALLER_PREFIXES.iter();
        prefixes.any(|prefix| name.starts_with(prefix))
    };
    !BASE.contains(&name) && (INSTALLER.contains(&name) || has_prefix())
}

/// Whether a variable of an installer has a secret: a token, or a URL with a user.
fn has_installer_secret(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_secret_name(name)
        || NPM_SECRETS.iter().any(|end| lower.ends_with(end))
        || has_url_user(value)
        || !secret_text::find(value).is_empty()
}

/// Whether a text has a URL with a user: `https://user:password@host`.
fn has_url_user(text: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#');
    text.split("://").skip(1).any(|rest| {
        rest.split(is_end)
            .next()
            .is_some_and(|host| host.contains('@'))
    })
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("names", &self.vars.keys().collect::<Vec<_>>())
            .field("exe_dir", &self.exe_dir)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installer_variables_are_inherited_unless_they_have_a_secret() {
        for (name, value) in [
            ("NPM_CONFIG_CACHE", "/var/cache/npm"),
            ("npm_config_registry", "https://registry.example/npm/"),
            ("NPM_CONFIG_USERCONFIG", "/etc/npmrc"),
            ("UV_CACHE_DIR", "/var/cache/uv"),
            ("UV_INDEX_URL", "https://a.example/simple"),
            ("UV_KEYRING_PROVIDER", "subprocess"),
            ("PIP_INDEX_URL", "https://a.example/simple"),
            ("DENO_DIR", "/d"),
            ("BUN_INSTALL_CACHE_DIR", "/b"),
            ("XDG_CACHE_HOME", "/c"),
        ] {
            assert!(is_base(name, value), "{name}");
        }
        for (name, value) in [
            ("NPM_CONFIG_//registry.example/:_authToken", "x"),
            ("npm_config__auth", "x"),
            ("NPM_CONFIG__PASSWORD", "x"),
            ("NPM_CONFIG_OTP", "123456"),
            ("NPM_CONFIG_REGISTRY", "https://me:secret@registry.example/"),
            ("UV_INDEX_URL", "https://me@a.example/simple"),
            (
                "UV_EXTRA_INDEX_URL",
                "https://a.example https://u:p@b.example",
            ),
            ("UV_INDEX", "one=https://u:p@b.example/simple"),
            ("UV_PUBLISH_TOKEN", "x"),
            ("UV_INDEX_ONE_PASSWORD", "x"),
            ("PIP_INDEX_URL", "https://u:p@b.example/simple"),
            ("PIPX_HOME", "/p"),
            ("GITHUB_TOKEN", "x"),
            ("CANARY", "x"),
        ] {
            assert!(!is_base(name, value), "{name}");
        }
    }
}
