//! Whether a source is one that had another path before: both are reached in the same way. The former source comes from
//! the config, else from the lock, else from a baseline. The baseline is only read if it is needed.

use std::cell::OnceCell;
use std::path::Path;

use broker_config::Config;
use broker_model::NodePath;
use broker_model::lock::{EndpointSettings, Lock, LockedSource};

use crate::baseline::read_baseline;

/// The default baseline.
pub const LAST_COMMIT: &str = "git:HEAD";

/// The places to search for a former source.
#[derive(Debug)]
pub struct Former<'a> {
    config: &'a Config,
    lock: Option<&'a Lock>,
    file: &'a Path,
    /// The baseline of the command line. It takes precedence over the lock.
    said: Option<&'a str>,
    baseline: OnceCell<Result<Option<Lock>, String>>,
}

/// The comparison of the source at a former path with the source at a path of the config.
#[derive(Debug)]
pub enum Comparison {
    /// Both are reached in the same way.
    Same,
    /// They are not.
    Other {
        old: Box<EndpointSettings>,
        new: Box<EndpointSettings>,
    },
    /// The former one is unknown, with the reason.
    Unknown(String),
}

impl<'a> Former<'a> {
    /// Looks in a config, its lock, and the baseline `said`, by default the last commit.
    pub fn new(
        config: &'a Config,
        lock: Option<&'a Lock>,
        file: &'a Path,
        said: Option<&'a str>,
    ) -> Self {
        Self {
            config,
            lock,
            file,
            said,
            baseline: OnceCell::new(),
        }
    }

    /// Compares the source that had the path `old` with the one that has the path `new` in the config. Returns `None` if
    /// the config does not have `new`.
    pub fn compare(&self, old: &NodePath, new: &NodePath) -> Option<Comparison> {
        let new = self.config.lock_settings(self.config.source(new)?).endpoint;
        Some(match self.endpoint(old) {
            Ok(old) if old.is_same(&new) => Comparison::Same,
            Ok(old) => Comparison::Other {
                old: Box::new(old),
                new: Box::new(new),
            },
            Err(reason) => Comparison::Unknown(reason),
        })
    }

    /// The locked state of a former source, of the first place that has it.
    pub fn locked(&self, path: &NodePath) -> Result<&LockedSource, String> {
        let lock = self.lock.filter(|_| self.said.is_none());
        let locked = lock.and_then(|lock| lock.source(path.as_str()));
        if let Some(locked) = locked {
            return Ok(locked);
        }
        let name = self.said.unwrap_or(LAST_COMMIT);
        let baseline = self.baseline()?;
        let missing = || match self.said {
            Some(_) => format!("`{name}` does not have the source `{path}`"),
            None => format!("neither the config nor the lock nor `{name}` has the source `{path}`"),
        };
        baseline
            .and_then(|lock| lock.source(path.as_str()))
            .ok_or_else(missing)
    }

    fn endpoint(&self, path: &NodePath) -> Result<EndpointSettings, String> {
        if let Some(source) = self.config.source(path) {
            return Ok(self.config.lock_settings(source).endpoint);
        }
        let locked = self.locked(path)?;
        let settings = locked.settings.as_ref();
        let endpoint = settings.map(|settings| settings.endpoint.clone());
        endpoint.ok_or_else(|| {
            format!("the lock that has the source `{path}` is of version 1 and has no commands")
        })
    }

    fn baseline(&self) -> Result<Option<&Lock>, String> {
        let read = self.baseline.get_or_init(|| {
            let name = self.said.unwrap_or(LAST_COMMIT);
            read_baseline(name, self.file).map_err(|problems| {
                let messages: Vec<_> = problems.into_iter().map(|one| one.message).collect();
                messages.join("; ")
            })
        });
        match read {
            Ok(lock) => Ok(lock.as_ref()),
            Err(problem) => Err(problem.clone()),
        }
    }
}
