//! The process environment, read once, and the part of it that a child inherits.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use broker_config::{CommandLine, ProcessEndpoint};
use broker_model::redact::is_secret_name;
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
/// The maximum number of names that a failed start lists.
const MAX_WITHHELD: usize = 8;
/// Words of commands that do not indicate what a server needs.
const COMMON_WORDS: [&str; 15] = [
    "bin", "docker", "exec", "install", "latest", "mcp", "node", "npm", "npx", "python", "run",
    "server", "stdio", "usr", "uvx",
];

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

/// Whether every child inherits this variable.
pub(crate) fn is_base(name: &str) -> bool {
    BASE.contains(&name) || BASE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the names of variables that the child does not inherit and that may explain a failed start: first those that
/// share a word with the source or its command, then those that look like secrets.
pub(crate) fn withheld(
    source: &broker_config::Source,
    process: &ProcessEndpoint,
    environment: &Environment,
    given: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut text = source.path.as_str().to_owned();
    match &process.command {
        CommandLine::Direct { program, args, .. } => {
            for part in std::iter::once(program).chain(args) {
                text = text + " " + part.raw();
            }
        }
        CommandLine::Shell { script, .. } => text = text + " " + script,
    }
    let text = text.to_ascii_lowercase();
    let words: BTreeSet<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() >= 3 && !COMMON_WORDS.contains(word))
        .collect();
    let withheld = || {
        environment
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !given.contains_key(*name) && !broker_config::is_own_variable(name))
    };
    let is_related = |name: &&str| {
        let name = name.to_ascii_lowercase();
        name.split('_').any(|word| words.contains(word))
    };
    let related = withheld().filter(is_related);
    let secret = withheld().filter(|name| is_secret_name(name) && !is_related(name));
    related
        .chain(secret)
        .take(MAX_WITHHELD)
        .map(str::to_owned)
        .collect()
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("names", &self.vars.keys().collect::<Vec<_>>())
            .field("exe_dir", &self.exe_dir)
            .finish()
    }
}
