//! Tasks of servers: a server may answer a call with a task, and has the result of the call later. The id of a task is a text
//! of the server, so it is bounded and stays within the broker.

mod answer;
mod slot;
mod support;

use std::time::Duration;

use broker_wire::Era;

pub(crate) use answer::{TaskState, TaskStatus, made_legacy, made_modern, without_related_task};
pub(crate) use slot::TaskSlot;
pub(crate) use support::TaskSupport;

/// The maximum bytes of the id of a task. With the era before it, it fits into the kilobyte that the store of jobs has for it.
const MAX_ID_BYTES: usize = 1_000;

/// A task that a server made of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    id: Box<str>,
    era: Era,
    /// The time until its state is asked for.
    wait: Duration,
}

impl RemoteTask {
    /// Makes a task; an error says why a server's id cannot be used.
    fn new(id: &str, era: Era, wait: Duration) -> Result<Self, &'static str> {
        match id.len() {
            0 => Err("the id of the task is empty"),
            1..=MAX_ID_BYTES => Ok(Self {
                id: id.into(),
                era,
                wait,
            }),
            _ => Err("the id of the task is longer than 1000 bytes"),
        }
    }

    /// Returns the task of a text that [`Self::to_text`] returned. Its state is asked for at once.
    pub fn from_text(text: &str) -> Option<Self> {
        let (era, id) = text.split_once(':')?;
        let era = match era {
            "legacy" => Era::Legacy,
            "modern" => Era::Modern,
            _ => return None,
        };
        Self::new(id, era, Duration::ZERO).ok()
    }

    /// Returns it as text for a store.
    pub fn to_text(&self) -> String {
        let era = match self.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        format!("{era}:{}", self.id)
    }

    /// Returns the server's id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the era of the session in which it was made.
    pub(crate) const fn era(&self) -> Era {
        self.era
    }

    /// Returns the time until its state is asked for.
    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_is_the_same_after_it_was_stored_as_text() {
        for era in [Era::Legacy, Era::Modern] {
            let task = RemoteTask::new("a:b\n\"é", era, Duration::ZERO).unwrap();
            assert_eq!(RemoteTask::from_text(&task.to_text()), Some(task));
        }
        for text in ["", "legacy", "legacy:", "other:a"] {
            assert_eq!(RemoteTask::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn id_of_a_task_is_bounded() {
        let new = |id: &str| RemoteTask::new(id, Era::Modern, Duration::ZERO);
        assert!(new(&"x".repeat(MAX_ID_BYTES)).is_ok());
        assert!(new(&"x".repeat(MAX_ID_BYTES + 1)).is_err());
        assert!(new("").is_err());
        let longest = new(&"x".repeat(MAX_ID_BYTES)).unwrap();
        assert!(longest.to_text().len() <= 1 << 10, "the store keeps it");
    }
}
