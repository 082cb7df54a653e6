//! Everything needed to start a process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use broker_model::redact::Redactor;

use crate::lookup::find;

/// Everything needed to start a process: variables expanded, places to look for the program known.
/// `Debug` shows no value.
#[derive(Clone)]
pub struct ProcessSpec {
    /// What the log calls it.
    pub name: String,
    /// The program: an absolute path, or a bare name that is looked up at every start.
    pub program: String,
    /// Folders in which a bare name is looked for, in this order.
    pub search: Vec<PathBuf>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The child's whole environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs; the broker's own folder where absent.
    pub cwd: Option<PathBuf>,
    /// Whether `program` is a shell that runs the configured command.
    pub shell: bool,
    /// Knows the secrets that the child is given.
    pub redactor: Redactor,
}

/// How long a process has to end by itself when it is stopped.
#[derive(Clone, Copy, Debug)]
pub struct StopGrace {
    /// After its stdin was closed, before TERM.
    pub close: Duration,
    /// After TERM, before KILL.
    pub term: Duration,
}

impl ProcessSpec {
    /// The file that a start would execute now, if there is one.
    pub fn program_file(&self) -> Option<PathBuf> {
        find(self).ok()
    }

    /// Whether a process that was started by `other` is what this one would start.
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
