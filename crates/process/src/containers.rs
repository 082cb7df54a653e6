//! The containers that servers run in. A container is not a descendant of the program that started it, so it is removed by
//! its name, or by its id in a file, once that program was killed.
//!
//! The broker writes its list of containers into memory that it shares with its guard. If the broker is killed, the guard
//! removes the containers of the list, and a broker without its guard does so itself. If both are killed, the next start
//! of a source with the same program removes them, by a file with the list.

#[cfg(target_os = "linux")]
mod left;
mod list;
mod record;
mod removal;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cookie::broker_cookie;
use crate::{ContainerSpec, ProcessSpec};

/// Maximum time of one removal. The program of a container gets no time to end.
pub(crate) const REMOVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Digits of the cookie in a name. The names of control groups have as many.
const NAME_DIGITS: usize = 16;
/// The maximum length of a file with an id.
const MAX_ID_BYTES: u64 = 256;

#[cfg(target_os = "linux")]
pub(crate) use left::{remove_left, remove_own};
#[cfg(target_os = "linux")]
pub(crate) use list::share_with_guard;
pub(crate) use removal::{remove_abandoned, run_removal};

/// A container, and the command that removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    program: PathBuf,
    /// The arguments before the name.
    args: Vec<OsString>,
    folder: PathBuf,
    env: Vec<(OsString, OsString)>,
    target: Target,
}

/// How a container is named in the command that removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Name(String),
    /// The program writes the id of the container into this file.
    IdFile {
        file: PathBuf,
        is_ours: bool,
    },
}

impl Container {
    /// Makes the container of a process, and adds the options for its name or the file of its id to the arguments.
    /// `number` differs for each process of this broker.
    pub(crate) fn name(
        spec: &ContainerSpec,
        process: &ProcessSpec,
        program: &Path,
        number: u64,
        args: &mut Vec<String>,
    ) -> Option<Self> {
        let name = format!("mcp-broker-{}-{number}", name_digits());
        let folder = process.cwd.clone().unwrap_or_default();
        let target = match (&spec.id_file, spec.is_named) {
            (Some(file), _) => Target::IdFile {
                file: folder.join(file),
                is_ours: false,
            },
            // A name of the config may belong to a container that runs already.
            (None, true) => Target::IdFile {
                file: record::usable_folder()
                    .unwrap_or_else(|_| std::env::temp_dir())
                    .join(format!("{name}.cid")),
                is_ours: true,
            },
            (None, false) => Target::Name(name),
        };
        let option = match &target {
            Target::Name(name) => Some(["--name".to_owned(), name.clone()]),
            Target::IdFile {
                file,
                is_ours: true,
            } => Some(["--cidfile".to_owned(), file.to_str()?.to_owned()]),
            Target::IdFile { is_ours: false, .. } => None,
        };
        let words = removal_words(spec, args)?;
        let at = spec.verb + 1;
        if at > args.len() {
            return None;
        }
        args.splice(at..at, option.into_iter().flatten());
        let env = process.env.iter();
        Some(Self {
            program: program.to_owned(),
            args: words,
            folder,
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            target,
        })
    }

    /// Returns the process that removes it; `None` if its id was not written, so that it was not made.
    pub(crate) fn removal(&self, process: &ProcessSpec) -> Option<ProcessSpec> {
        let mut args = Vec::new();
        for word in &self.args {
            args.push(word.to_str()?.to_owned());
        }
        args.push(self.id()?);
        Some(ProcessSpec {
            program: self.program.to_str()?.to_owned(),
            args,
            shell: false,
            container: None,
            ..process.clone()
        })
    }

    /// Returns the name for people.
    pub(crate) fn shown(&self) -> String {
        self.id().unwrap_or_else(|| "without an id".to_owned())
    }

    fn id(&self) -> Option<String> {
        match &self.target {
            Target::Name(name) => Some(name.clone()),
            Target::IdFile { file, .. } => {
                let mut id = String::new();
                let file = File::open(file).ok()?;
                file.take(MAX_ID_BYTES).read_to_string(&mut id).ok()?;
                let id = id.trim();
                let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
                is_id.then(|| id.to_owned())
            }
        }
    }

    /// Adds it to the list of containers that may exist.
    pub(crate) fn enter(&self) {
        list::enter(self.clone());
    }

    /// Removes it from the list, and its file.
    pub(crate) fn leave(&self) {
        self.remove_file();
        list::leave(self);
    }

    /// Removes the file for its id, if the broker named it.
    fn remove_file(&self) {
        if let Target::IdFile {
            file,
            is_ours: true,
        } = &self.target
        {
            // Without a container there is no file.
            let _: io::Result<()> = std::fs::remove_file(file);
        }
    }
}

/// Returns the arguments of the command that removes a container: those before the word `run`, such as the context of a
/// daemon, and the verb.
fn removal_words(spec: &ContainerSpec, args: &[String]) -> Option<Vec<OsString>> {
    let before = args.get(..spec.verb)?.iter().map(OsString::from);
    Some(before.chain(["rm", "-f"].map(OsString::from)).collect())
}

/// Returns the part of names that differs between brokers.
fn name_digits() -> &'static str {
    let cookie = broker_cookie();
    cookie.get(..NAME_DIGITS).unwrap_or(cookie)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use broker_model::redact::Redactor;

    use super::*;

    fn named(container: ContainerSpec, args: &[&str]) -> (Vec<String>, Option<Container>) {
        let process = ProcessSpec {
            name: "/a".to_owned(),
            program: "docker".to_owned(),
            search: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::from([("A".to_owned(), "b\nc".to_owned())]),
            cwd: Some("/x".into()),
            shell: false,
            redactor: Redactor::default(),
            container: None,
        };
        let mut args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let path = Path::new("/bin/docker");
        let made = Container::name(&container, &process, path, 7, &mut args);
        (args, made)
    }

    #[test]
    fn container_gets_a_name_or_a_file_for_its_id() {
        let spec = ContainerSpec {
            verb: 2,
            is_named: false,
            id_file: None,
        };
        let line = ["--context", "c", "run", "-i", "image"];
        let (args, made) = named(spec.clone(), &line);
        let name = args[4].clone();
        assert!(
            name.starts_with("mcp-broker-") && name.ends_with("-7"),
            "{name}"
        );
        assert_eq!(
            args,
            ["--context", "c", "run", "--name", &name, "-i", "image"]
        );
        let made = made.expect("named");
        assert_eq!(made.args, ["--context", "c", "rm", "-f"]);
        assert_eq!(made.id(), Some(name));

        let own = ContainerSpec {
            is_named: true,
            ..spec.clone()
        };
        let (args, made) = named(own, &line);
        assert_eq!(args[3], "--cidfile");
        assert_eq!(
            made.expect("with a file").id(),
            None,
            "no container was made"
        );

        let theirs = ContainerSpec {
            id_file: Some("id".to_owned()),
            ..spec
        };
        let (args, made) = named(theirs, &line);
        assert_eq!(args, line);
        let file = Target::IdFile {
            file: "/x/id".into(),
            is_ours: false,
        };
        assert_eq!(made.expect("with a file").target, file);
    }
}
