//! The folder with the scripts and journals of the scripted test server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binaries::{binary, fixture_config};
use crate::mcp::DirectServer;
use crate::program::{Run, wait_until};

/// A folder of scripts and journals, `NAME.json` and `NAME.log` for the source NAME; removed when
/// dropped. A source without a script has no faults.
#[derive(Debug)]
pub struct Chaos {
    folder: TempDir,
    counts: Mutex<BTreeMap<String, Counts>>,
}

/// The counts of a journal: a long one is not read again from its beginning.
#[derive(Debug, Default)]
struct Counts {
    /// Bytes that were read, in complete lines.
    read: u64,
    events: BTreeMap<String, usize>,
    last_pid: Option<u32>,
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
            counts: Mutex::default(),
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

    /// Writes the config at `compiled` into the folder, with a change; returns the new file's name.
    pub fn config(&self, compiled: &str, change: impl FnOnce(&mut Value)) -> String {
        let text = fs::read_to_string(compiled).expect("the config is there");
        let mut config = serde_json::from_str(&text).expect("it is JSON");
        change(&mut config);
        crate::access::add(&mut config);
        let file = self.file("given.json", &config.to_string());
        file.to_str().expect("the path is text").to_owned()
    }

    /// Replaces the script of a source atomically.
    pub fn script(&self, source: &str, script: &Value) {
        self.raw_script(source, &script.to_string());
    }

    /// Replaces the script of a source with this text.
    pub fn raw_script(&self, source: &str, script: &str) {
        let draft = self.file(&format!("{source}.draft"), script);
        fs::rename(draft, self.path().join(format!("{source}.json")))
            .expect("a rename within one folder");
    }

    /// The journal of a source so far; complete lines only.
    pub fn journal(&self, source: &str) -> Vec<Value> {
        let text = self.raw_journal(source);
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("each line is JSON")
    }

    /// The journal of a source as text.
    pub fn raw_journal(&self, source: &str) -> String {
        fs::read_to_string(self.path().join(format!("{source}.log"))).unwrap_or_default()
    }

    /// The journal's entries of one kind.
    pub fn events(&self, source: &str, event: &str) -> Vec<Value> {
        let journal = self.journal(source).into_iter();
        journal.filter(|entry| entry["event"] == event).collect()
    }

    /// Waits until the journal has this many entries of one kind, and returns them.
    pub fn await_events(&self, source: &str, event: &str, count: usize) -> Vec<Value> {
        wait_until(
            &format!("`{source}` writes `{event}` {count} times"),
            || self.events(source, event).len() >= count,
        );
        self.events(source, event)
    }

    /// Waits until the journal has this many entries of one kind. Each entry is read once, however often
    /// this is called.
    pub fn await_count(&self, source: &str, event: &str, count: usize) {
        wait_until(
            &format!("`{source}` writes `{event}` {count} times"),
            || self.count(source, event) >= count,
        );
    }

    /// The number of the journal's entries of one kind. Each entry is read once.
    pub fn count(&self, source: &str, event: &str) -> usize {
        self.counted(source, |counts| {
            counts.events.get(event).copied().unwrap_or_default()
        })
    }

    /// The process of a source that was started last, if one was. Each entry of the journal is read once.
    pub fn last_pid(&self, source: &str) -> Option<u32> {
        self.counted(source, |counts| counts.last_pid)
    }

    fn counted<T>(&self, source: &str, look: impl FnOnce(&Counts) -> T) -> T {
        let mut all = self.counts.lock().expect("no test panics with it");
        let counts = all.entry(source.to_owned()).or_default();
        if let Ok(mut journal) = File::open(self.path().join(format!("{source}.log"))) {
            let mut text = Vec::new();
            journal
                .seek(SeekFrom::Start(counts.read))
                .and_then(|_| journal.read_to_end(&mut text))
                .expect("the journal is readable");
            let whole = text
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            counts.read += whole as u64;
            for line in text[..whole].split(|byte| *byte == b'\n') {
                if !line.is_empty() {
                    counts.add(&serde_json::from_slice(line).expect("each line is JSON"));
                }
            }
        }
        look(counts)
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

    /// `broker-gen serve` with the config and the lock of a fixture, `tests/FIXTURE`. Under rules of access a copy of the
    /// config is locked with them, so the scripts must be there.
    pub fn serve(&self, fixture: &str, args: &[&str]) -> Run {
        let config = fixture_config(fixture);
        let mut config = config.to_str().expect("the path is text").to_owned();
        if crate::access::is_on() {
            config = self.config(&config, |_| ());
            let locked = self.run("broker-gen", &["lock", "--config", &config]);
            let output = locked.output();
            assert_eq!(output.code, Some(0), "{}", output.stderr);
        }
        self.run("broker-gen", &["serve", "--config", &config])
            .args(args)
    }

    /// The tools that a source offers without a script.
    pub fn tools() -> Vec<Value> {
        DirectServer::start(Run::new(&binary("chaos-mcp"))).tools()
    }

    /// Those tools, with `change` made to one of them.
    pub fn tools_with(name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut tools = Self::tools();
        let tool = tools.iter_mut().find(|tool| tool["name"] == name);
        change(tool.expect("the tool is one of the built-in ones"));
        json!(tools)
    }

    /// Those tools, with one more required argument of one of them.
    pub fn tools_asking_more(name: &str) -> Value {
        Self::tools_with(name, |tool| {
            tool["inputSchema"]["properties"]["to"] = json!({"type": "string"});
            let required = tool["inputSchema"]["required"].as_array_mut();
            required.expect("it has such arguments").push(json!("to"));
        })
    }

    /// Those tools without one of them.
    pub fn tools_without(name: &str) -> Value {
        let mut tools = Self::tools();
        tools.retain(|tool| tool["name"] != name);
        json!(tools)
    }
}

impl Counts {
    fn add(&mut self, entry: &Value) {
        let event = entry["event"].as_str().unwrap_or_default();
        *self.events.entry(event.to_owned()).or_default() += 1;
        if event == "start" {
            let pid = entry["pid"].as_u64();
            self.last_pid = pid.and_then(|pid| pid.try_into().ok());
        }
    }
}

impl Default for Chaos {
    fn default() -> Self {
        Self::new()
    }
}
