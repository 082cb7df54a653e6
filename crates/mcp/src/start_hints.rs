//! Facts about a source that explain how it starts and ends: whether its command starts the server elsewhere, and which
//! variables are set here and do not reach the server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use broker_config::launcher::{AskedVariables, Launcher};
use broker_config::{CommandLine, ProcessEndpoint};
use broker_model::redact::is_secret_name;
use broker_process::{ContainerSpec, ProcessSpec};

use crate::environment::{Environment, is_installer};

/// The maximum length of a file of variables.
const MAX_FILE_BYTES: usize = 64 << 10;
/// The maximum number of files of variables that are read.
const MAX_FILES: usize = 8;

/// The maximum number of names that a failed start lists.
const MAX_WITHHELD: usize = 8;
/// Words of commands that do not indicate what a server needs.
const COMMON_WORDS: [&str; 15] = [
    "bin", "docker", "exec", "install", "latest", "mcp", "node", "npm", "npx", "python", "run",
    "server", "stdio", "usr", "uvx",
];

/// Facts about the start of a source. They hold names of variables and no value.
#[derive(Clone, Debug, Default)]
pub struct StartHints {
    /// The program of its command that starts the server elsewhere.
    pub launcher: Option<Launcher>,
    /// Variables that its command asks for, that are set here, and that its process does not get.
    pub asked: Vec<String>,
    /// Variables of installers that its process gets.
    pub installer_given: Vec<String>,
    /// Variables of installers that are set here and that its process does not get, since they have a secret.
    pub installer_withheld: Vec<String>,
}

impl StartHints {
    /// Collects the facts about a process; `given` are the variables that it gets.
    pub(crate) fn collect(
        process: &ProcessEndpoint,
        spec: &ProcessSpec,
        environment: &Environment,
    ) -> Self {
        let given = &spec.env;
        let mut asked = AskedVariables::find(&process.command);
        for file in asked.files.clone().iter().take(MAX_FILES) {
            let file = spec.cwd.as_deref().unwrap_or(Path::new("")).join(file);
            // The program reports a file that cannot be read.
            if let Ok(text) = broker_files::read_text(&file, MAX_FILE_BYTES) {
                asked.add_lines(&text);
            }
        }
        let is_withheld = |name: &String| {
            let is_set = environment.get(name).is_some();
            is_set && !given.contains_key(name) && !broker_config::is_own_variable(name)
        };
        let (installer_given, installer_withheld) = installer_variables(environment, given);
        Self {
            launcher: Launcher::find(&process.command),
            asked: asked.names.into_iter().filter(is_withheld).collect(),
            installer_given,
            installer_withheld,
        }
    }
}

/// Returns the names of variables of installers: those that a process gets, and the others that are set here.
fn installer_variables(
    environment: &Environment,
    given: &BTreeMap<String, String>,
) -> (Vec<String>, Vec<String>) {
    let names = given.keys().filter(|name| is_installer(name));
    let is_withheld = |name: &&str| is_installer(name) && !given.contains_key(*name);
    let withheld = environment.iter().map(|(name, _)| name).filter(is_withheld);
    (
        names.cloned().collect(),
        withheld.map(str::to_owned).collect(),
    )
}

/// Returns the names of variables that the child does not inherit and that may explain a failed start: first those that
/// its command asks for, then those of installers with a secret if it runs an installer, then those that share a word
/// with the source or its command, then those that look like secrets.
pub(crate) fn withheld(
    source: &broker_config::Source,
    process: &ProcessEndpoint,
    environment: &Environment,
    given: &BTreeMap<String, String>,
    hints: &StartHints,
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
    let installers = hints.installer_withheld.iter();
    let installers = installers.filter(|name| reads_variable(name, &text));
    let mut names: Vec<String> = Vec::new();
    for name in (hints.asked.iter().chain(installers).map(String::as_str))
        .chain(related)
        .chain(secret)
    {
        if names.len() == MAX_WITHHELD {
            break;
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Whether a command runs the installer that reads a variable. `text` has its words in lower case.
fn reads_variable(name: &str, text: &str) -> bool {
    let programs: &[&str] = match name.to_ascii_lowercase().split_once('_') {
        Some(("npm", _)) => &["npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun"],
        Some(("uv", _)) => &["uvx", "uv"],
        Some(("pip", _)) => &["pip", "pip3", "pipx", "uvx", "uv"],
        _ => &["deno", "bun", "bunx"],
    };
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| programs.contains(&word))
}

/// Returns the container that a process starts, by its expanded words.
pub(crate) fn container(program: &str, args: &[String]) -> Option<Box<ContainerSpec>> {
    let words = std::iter::once(program).chain(args.iter().map(String::as_str));
    let launcher = Launcher::parse(&words.collect::<Vec<_>>())?;
    let is_run = launcher.kind == broker_config::launcher::LaunchKind::Run;
    let container = || ContainerSpec {
        // The program is word 0.
        verb: launcher.verb - 1,
        is_named: launcher.is_named,
        id_file: launcher.id_file,
    };
    is_run.then(|| Box::new(container()))
}
