//! A folder with a config, scripts for `chaos-mcp` and a lock, and the program run over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A temporary folder with `c.json`; removed when dropped.
pub(crate) struct Bench {
    folder: TempDir,
}

/// The exit code and the output of a run.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    /// With these sources, each on a node of its name, and the built-in script for each.
    pub(crate) fn new(sources: &[&str]) -> Self {
        let bench = Self::empty();
        bench.configure(sources.iter().map(|name| (*name, json!({}))));
        bench
    }

    /// Without a config.
    pub(crate) fn empty() -> Self {
        Self {
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    /// A config of these sources in this order; the members are added to each source.
    pub(crate) fn configure<'a>(&self, sources: impl IntoIterator<Item = (&'a str, Value)>) {
        let nodes = sources
            .into_iter()
            .map(|(name, members)| node(name, members));
        self.write(
            "c.json",
            &json!({"tree": nodes.collect::<Vec<_>>()}).to_string(),
        );
    }

    /// Sets the script of the source of this name.
    pub(crate) fn script(&self, name: &str, script: &Value) {
        self.write(&format!("{name}.json"), &script.to_string());
    }

    /// The source lists only this tool.
    pub(crate) fn one_tool(&self, name: &str, tool: Value) {
        self.script(name, &json!({"tools": [tool]}));
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[])
    }

    /// Runs `broker-gen VERB --config c.json …` in the folder, with these variables.
    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let output = self
            .command(args, variables)
            .output()
            .expect("broker-gen starts");
        Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Runs a verb that takes no config.
    pub(crate) fn run_bare(&self, args: &[&str]) -> Output {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the program that they test"
        )]
        let output = Command::new(env!("CARGO_BIN_EXE_broker-gen"))
            .args(args)
            .current_dir(self.folder.path())
            .output()
            .expect("broker-gen starts");
        Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    pub(crate) fn command(&self, args: &[&str], variables: &[(&str, &str)]) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_broker-gen"));
        let beside = program.parent().expect("it is in a folder");
        assert!(
            beside.join("chaos-mcp").exists(),
            "chaos-mcp is not built; run `cargo test --workspace --locked`"
        );
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the program that they test"
        )]
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(&args[..1])
            .args(["--config", "c.json"])
            .args(&args[1..])
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", beside.display()))
            .stdin(Stdio::null());
        for name in ["CI", "MCP_BROKER_CONFIG", "MCP_BROKER_LOCKED", "TZ"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        command
    }

    /// `lock`, which must succeed.
    pub(crate) fn lock(&self) -> Output {
        let output = self.run(&["lock"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output
    }

    /// `lock`, which must fail with this code and leave the lock as it is.
    pub(crate) fn lock_fails(&self, code: i32) -> String {
        let before = self.lock_state();
        let output = self.run(&["lock"]);
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        assert_eq!(self.lock_state(), before, "the lock was touched");
        assert!(
            output.stderr.ends_with("the lock was not written\n"),
            "{}",
            output.stderr
        );
        output.stderr
    }

    /// `check --format json`, its exit code and report.
    pub(crate) fn check(&self) -> (Option<i32>, Value) {
        let output = self.run(&["check", "--format", "json"]);
        let report = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr));
        (output.code, report)
    }

    pub(crate) fn lock_text(&self) -> String {
        fs::read_to_string(self.path("c.lock.json")).expect("there is a lock")
    }

    pub(crate) fn lock_json(&self) -> Value {
        serde_json::from_str(&self.lock_text()).expect("the lock is JSON")
    }

    /// The lock's text, inode and time; `None` where there is none.
    pub(crate) fn lock_state(&self) -> Option<(String, u64, SystemTime)> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = fs::metadata(self.path("c.lock.json")).ok()?;
        let time = metadata.modified().expect("files have times");
        Some((self.lock_text(), metadata.ino(), time))
    }

    /// The lines of a source's journal with this event.
    pub(crate) fn journal(&self, name: &str, event: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a journal is JSON lines"));
        lines.filter(|line| line["event"] == event).collect()
    }
}

/// A node with its `chaos-mcp`. Its paths are relative, so that every folder gives one config.
pub(crate) fn node(name: &str, members: Value) -> Value {
    let mut source = json!({
        "command": ["chaos-mcp", "--script", format!("{name}.json"), "--journal", format!("{name}.log")],
        "cwd": ".",
    });
    for (key, value) in members.as_object().expect("members are an object") {
        source[key] = value.clone();
    }
    json!({"path": format!("/{name}"), "type": "node", "source": source})
}

/// A tool that takes an object.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// The names in a list of the lock.
pub(crate) fn names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().expect("a list").iter();
    items
        .map(|item| item[key].as_str().expect("a name"))
        .collect()
}

/// Asserts that the text contains each of these.
#[track_caller]
pub(crate) fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}
