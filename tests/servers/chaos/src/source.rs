//! The source of the script, and its newest readable version. If a script cannot be read, the last version stays
//! in force, since the file may be half written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::flags::From;
use crate::output::complain;
use crate::replay;
use crate::script::Script;

pub(crate) struct Source {
    file: Option<PathBuf>,
    latest: Mutex<Latest>,
}

struct Latest {
    /// The last text that was read; `None` if the file was missing.
    text: Option<String>,
    script: Arc<Script>,
}

impl Source {
    pub(crate) fn open(from: &From) -> Result<Self, String> {
        let (file, text, script) = match from {
            From::BuiltIn => (None, None, Script::default()),
            From::Replay { file, page_size } => (None, None, replay::script(file, *page_size)?),
            From::Script(file) => {
                let text = read(file)?;
                let script = parse(text.as_deref())
                    .map_err(|error| format!("script `{}`: {error}", file.display()))?;
                (Some(file.clone()), text, script)
            }
        };
        let script = Arc::new(script);
        Ok(Self {
            file,
            latest: Mutex::new(Latest { text, script }),
        })
    }

    /// Whether the script can change.
    pub(crate) fn changes(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file again and returns the script in force.
    pub(crate) fn current(&self) -> Arc<Script> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &self.file else {
            return Arc::clone(&latest.script);
        };
        match read(file) {
            Ok(text) if text == latest.text => {}
            Ok(text) => {
                match parse(text.as_deref()) {
                    Ok(script) => latest.script = Arc::new(script),
                    Err(error) => complain(&format!("keeping the script before: {error}")),
                }
                latest.text = text;
            }
            Err(error) => complain(&error),
        }
        Arc::clone(&latest.script)
    }
}

fn read(file: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read script `{}`: {error}", file.display())),
    }
}

fn parse(text: Option<&str>) -> Result<Script, String> {
    text.map_or_else(|| Ok(Script::default()), Script::parse)
}
