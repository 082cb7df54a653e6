//! The journal: one JSON line for each event, appended and flushed at once, so that a test sees calls, cancels
//! and executions that the protocol does not show.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

/// Characters of a call's arguments that a brief journal keeps.
const BRIEF: usize = 80;

pub(crate) struct Journal {
    file: Option<Mutex<File>>,
    brief: bool,
}

impl Journal {
    pub(crate) fn open(path: Option<&Path>, brief: bool) -> Result<Self, String> {
        let open = |path: &Path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .map(Mutex::new)
                .map_err(|error| format!("cannot open journal `{}`: {error}", path.display()))
        };
        Ok(Self {
            file: path.map(open).transpose()?,
            brief,
        })
    }

    /// The arguments of a call in the journal: in a long run, only their beginning, as text.
    pub(crate) fn arguments(&self, arguments: &Value) -> Value {
        if self.file.is_none() {
            return Value::Null;
        }
        match self.brief {
            true => json!(
                arguments
                    .to_string()
                    .chars()
                    .take(BRIEF)
                    .collect::<String>()
            ),
            false => arguments.clone(),
        }
    }

    /// Appends `{"event", "pid", …details}` in one write, as several processes may share the file.
    pub(crate) fn write(&self, event: &str, details: Value) {
        let Some(file) = &self.file else { return };
        let mut entry = json!({"event": event, "pid": std::process::id()});
        if let (Some(entry), Value::Object(details)) = (entry.as_object_mut(), details) {
            entry.extend(details);
        }
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(format!("{entry}\n").as_bytes()) {
            crate::output::complain(&format!("cannot write the journal: {error}"));
        }
    }
}
