//! The scripted test server's side of a test: the folder with its scripts and journals.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::DirectServer;
use crate::program::{Run, binary, wait_until};

/// A folder of scripts and journals, `NAME.json` and `NAME.log` for the source NAME; gone when
/// dropped. A source without a script behaves.
#[derive(Debug)]
pub struct Chaos {
    folder: TempDir,
}

impl Chaos {
    /// An empty folder.
    pub fn new() -> Self {
        Self::named("chaos-")
    }

    /// An empty folder whose name begins with `prefix`.
    pub fn named(prefix: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir();
        Self {
            folder: folder.expect("a folder can be made"),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes another file into the folder.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).expect("the folder can be written to");
        path
    }

    /// Writes the config at `compiled` into the folder, with a change; gives the new file's name.
    pub fn config(&self, compiled: &str, change: impl FnOnce(&mut Value)) -> String {
        let text = fs::read_to_string(compiled).expect("the config is there");
        let mut config = serde_json::from_str(&text).expect("it is JSON");
        change(&mut config);
        let file = self.file("given.json", &config.to_string());
        file.to_str().expect("the path is text").to_owned()
    }

    /// Replaces the script of a source in one step.
    pub fn script(&self, source: &str, script: &Value) {
        self.raw_script(source, &script.to_string());
    }

    /// The same with the text as it is.
    pub fn raw_script(&self, source: &str, script: &str) {
        let draft = self.file(&format!("{source}.draft"), script);
        fs::rename(draft, self.path().join(format!("{source}.json")))
            .expect("a rename within one folder");
    }

    /// What a source wrote into its journal so far; whole lines only.
    pub fn journal(&self, source: &str) -> Vec<Value> {
        let text = self.raw_journal(source);
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("each line is JSON")
    }

    /// The same as text.
    pub fn raw_journal(&self, source: &str) -> String {
        fs::read_to_string(self.path().join(format!("{source}.log"))).unwrap_or_default()
    }

    /// The journal's entries of one kind.
    pub fn events(&self, source: &str, event: &str) -> Vec<Value> {
        let journal = self.journal(source).into_iter();
        journal.filter(|entry| entry["event"] == event).collect()
    }

    /// Waits until the journal has this many entries of one kind, and gives them.
    pub fn await_events(&self, source: &str, event: &str, count: usize) -> Vec<Value> {
        wait_until(
            &format!("`{source}` writes `{event}` {count} times"),
            || self.events(source, event).len() >= count,
        );
        self.events(source, event)
    }

    /// Every process of a source that was ever started.
    pub fn pids(&self, source: &str) -> Vec<u32> {
        let starts = self.events(source, "start");
        let pids = starts
            .iter()
            .filter_map(|start| start["pid"].as_u64()?.try_into().ok());
        pids.collect()
    }

    /// The program of this name, with the variables that say where the scripts are.
    pub fn run(&self, program: &str, args: &[&str]) -> Run {
        Run::new(&binary(program))
            .args(args)
            .env("CHAOS", self.path())
            .env("A_TOKEN", "a-token-for-tests")
    }

    /// The tools that a source offers without a script.
    pub fn tools() -> Vec<Value> {
        DirectServer::start(Run::new(&binary("chaos-mcp"))).tools()
    }

    /// The same with `change` made to one of them.
    pub fn tools_with(name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut tools = Self::tools();
        let tool = tools.iter_mut().find(|tool| tool["name"] == name);
        change(tool.expect("the tool is one of the built-in ones"));
        json!(tools)
    }

    /// The same with one more argument that calls of one of them must have.
    pub fn tools_asking_more(name: &str) -> Value {
        Self::tools_with(name, |tool| {
            tool["inputSchema"]["properties"]["to"] = json!({"type": "string"});
            let required = tool["inputSchema"]["required"].as_array_mut();
            required.expect("it has such arguments").push(json!("to"));
        })
    }

    /// The same without one of them.
    pub fn tools_without(name: &str) -> Value {
        let mut tools = Self::tools();
        tools.retain(|tool| tool["name"] != name);
        json!(tools)
    }
}

impl Default for Chaos {
    fn default() -> Self {
        Self::new()
    }
}
