//! The specification of a process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use broker_model::redact::Redactor;

/// The specification of a process, with expanded variables and search folders. `Debug` shows no value.
#[derive(Clone)]
pub struct ProcessSpec {
    /// Its name in the log.
    pub name: String,
    /// The program: an absolute path, or a bare name that is looked up at every start.
    pub program: String,
    /// Search folders of a bare name, in this order.
    pub search: Vec<PathBuf>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The environment of the child, complete except for its cookie.
    pub env: BTreeMap<String, String>,
    /// Its working folder; the broker's working folder if absent.
    pub cwd: Option<PathBuf>,
    /// Whether `program` is a shell that runs the configured command.
    pub shell: bool,
    /// A redactor that knows the secrets that the child gets.
    pub redactor: Redactor,
    /// The container that the program starts, if it starts one.
    pub container: Option<Box<ContainerSpec>>,
}

/// The container that a program such as `docker run` starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSpec {
    /// The index of the word `run` among the arguments.
    pub verb: usize,
    /// Whether the arguments name the container.
    pub is_named: bool,
    /// The file for its id, by the arguments.
    pub id_file: Option<String>,
}

/// Maximum time for a process to end by itself when it is stopped.
#[derive(Clone, Copy, Debug)]
pub struct StopGrace {
    /// After its stdin was closed, before SIGTERM.
    pub close: Duration,
    /// After SIGTERM, before SIGKILL.
    pub term: Duration,
}

impl ProcessSpec {
    /// Whether a process that was started by `other` equals one that this would start.
    pub fn starts_the_same(&self, other: &Self) -> bool {
        self.program == other.program
            && self.shell == other.shell
            && self.search == other.search
            && self.args == other.args
            && self.env == other.env
            && self.cwd == other.cwd
    }
}

impl fmt::Debug for ProcessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSpec")
            .field("name", &self.name)
            .field("shell", &self.shell)
            .finish_non_exhaustive()
    }
}
