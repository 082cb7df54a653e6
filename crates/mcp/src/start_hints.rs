//! Facts about a source that explain how it starts and ends: whether its command starts the server elsewhere, and which
//! variables are set here and do not reach the server.

use std::collections::BTreeMap;
use std::path::Path;

use broker_config::ProcessEndpoint;
use broker_config::launcher::{AskedVariables, Launcher};
use broker_process::{ContainerSpec, ProcessSpec};

use crate::environment::{Environment, is_installer};

/// The maximum length of a file of variables.
const MAX_FILE_BYTES: usize = 64 << 10;
/// The maximum number of files of variables that are read.
const MAX_FILES: usize = 8;

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
    (names.cloned().collect(), withheld.map(str::to_owned).collect())
}

/// Returns the container that a process starts, by its expanded words.
pub(crate) fn container(program: &str, args: &[String]) -> Option<ContainerSpec> {
    let words = std::iter::once(program).chain(args.iter().map(String::as_str));
    let launcher = Launcher::parse(&words.collect::<Vec<_>>())?;
    let is_run = launcher.kind == broker_config::launcher::LaunchKind::Run;
    is_run.then(|| ContainerSpec {
        // The program is word 0.
        verb: launcher.verb - 1,
        is_named: launcher.is_named,
        id_file: launcher.id_file,
    })
}
