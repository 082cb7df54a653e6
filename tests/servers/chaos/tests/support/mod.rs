//! Common parts of the tests of both transports: a folder with the script and the journal.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

/// Generous, as a machine that builds something else meanwhile is slow.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A folder of one test, removed with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("chaos-mcp-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.file("script.json")
    }

    /// Replaces the script in one step.
    pub(crate) fn write(&self, script: &Value) {
        let draft = self.file("draft.json");
        std::fs::write(&draft, script.to_string()).unwrap();
        std::fs::rename(&draft, self.script()).unwrap();
    }

    /// The complete lines of the journal.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file("journal")).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The journal's entries of one kind.
    pub(crate) fn events(&self, event: &str) -> Vec<Value> {
        let entries = self.journal().into_iter();
        entries.filter(|entry| entry["event"] == event).collect()
    }

    /// Waits until the journal has this many entries of one kind, and returns them.
    pub(crate) fn await_events(&self, event: &str, count: usize) -> Vec<Value> {
        self.await_entries(event, |entries| entries.len() >= count)
    }

    /// Waits until the journal's entries of one kind are as expected, and returns them.
    pub(crate) fn await_entries(
        &self,
        event: &str,
        expected: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let pause = Duration::from_millis(10);
        let mut looks = 0;
        loop {
            let entries = self.events(event);
            if expected(&entries) {
                return entries;
            }
            looks += 1;
            assert!(
                pause * looks < DEADLINE,
                "`{event}` is not as expected: {:#?}",
                self.journal()
            );
            std::thread::sleep(pause);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test runs the binary without the broker's spawner"
)]
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(name)
}
