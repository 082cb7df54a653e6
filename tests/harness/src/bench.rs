//! A temporary folder with a config, scripts for `chaos-mcp` and a lock, and `broker-gen` run in it.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binaries::binary;
use crate::program::Output;

/// A temporary folder, removed when dropped; the config in it is `c.json`.
#[derive(Debug)]
pub struct Bench {
    folder: TempDir,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// An empty folder.
    pub fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    /// A folder with a config of these sources, each on a node of its name; `chaos-mcp` runs the
    /// built-in script for each.
    pub fn with_sources(sources: &[&str]) -> Self {
        let bench = Self::new();
        bench.configure(sources.iter().map(|name| (*name, json!({}))));
        bench
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The text of a file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    /// Writes a config of these sources in this order; the members are added to each source.
    pub fn configure<'a>(&self, sources: impl IntoIterator<Item = (&'a str, Value)>) {
        let nodes = sources
            .into_iter()
            .map(|(name, members)| node(name, members));
        self.write(
            "c.json",
            &json!({"tree": nodes.collect::<Vec<_>>()}).to_string(),
        );
    }

    /// Sets the script of the source of this name.
    pub fn script(&self, name: &str, script: &Value) {
        self.write(&format!("{name}.json"), &script.to_string());
    }

    /// The source lists only this tool.
    pub fn one_tool(&self, name: &str, tool: Value) {
        self.script(name, &json!({"tools": [tool]}));
    }

    /// `broker-gen` in the folder, with the same environment on every machine.
    pub fn command(&self) -> Command {
        binary("chaos-mcp");
        let program = binary("broker-gen");
        let beside = program.parent().expect("it lies in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the programs that they test"
        )]
        let mut command = Command::new(&program);
        let ours = ["CONFIG", "LOCKED", "WHO"].map(|name| format!("MCP_BROKER_{name}"));
        let others = ["CI", "NO_COLOR", "TZ"];
        for name in ours.iter().map(String::as_str).chain(others) {
            command.env_remove(name);
        }
        // No user settings, and no repository around the folder.
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
            .env("PATH", format!("{}:{path}", beside.display()))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// `broker-gen VERB --config c.json` and more arguments, with these variables.
    pub fn verb_command(&self, args: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = self.command();
        command
            .args(&args[..1])
            .args(["--config", "c.json"])
            .args(&args[1..])
            .envs(variables.iter().copied());
        command
    }

    /// Runs `broker-gen`.
    pub fn run(&self, args: &[&str]) -> Output {
        self.run_with_input(args, "")
    }

    /// Runs it with these variables.
    pub fn run_with_env(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = self.command();
        command.args(args).envs(env.iter().copied());
        output(command, "")
    }

    /// Runs it with this on standard input.
    pub fn run_with_input(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command();
        command.args(args);
        output(command, input)
    }

    /// Runs a verb with `--config c.json`.
    pub fn verb(&self, args: &[&str]) -> Output {
        self.verb_with(args, &[])
    }

    /// Runs a verb with `--config c.json` and these variables.
    pub fn verb_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        output(self.verb_command(args, variables), "")
    }

    /// Runs it, which must succeed; its standard output.
    pub fn fine(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
        output.stdout
    }

    /// `lock`, which must succeed.
    pub fn lock(&self) -> Output {
        let output = self.verb(&["lock"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output
    }

    /// `lock`, which must fail with this code and leave the lock as it is.
    pub fn lock_fails(&self, code: i32) -> String {
        let before = self.lock_state();
        let output = self.verb(&["lock", "--all-or-nothing"]);
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
    pub fn check(&self) -> (Option<i32>, Value) {
        let output = self.verb(&["check", "--format", "json"]);
        let report = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr));
        (output.code, report)
    }

    /// The text of the lock.
    pub fn lock_text(&self) -> String {
        self.read("c.lock.json")
    }

    /// The lock as JSON.
    pub fn lock_json(&self) -> Value {
        serde_json::from_str(&self.lock_text()).expect("the lock is JSON")
    }

    /// The text, inode and time of the lock; `None` if it does not exist.
    pub fn lock_state(&self) -> Option<(String, u64, SystemTime)> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = fs::metadata(self.path("c.lock.json")).ok()?;
        let time = metadata.modified().expect("files have times");
        Some((self.lock_text(), metadata.ino(), time))
    }

    /// The lines of a source's journal with this event.
    pub fn journal(&self, name: &str, event: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
        // The server may be writing the last line.
        let (complete, _) = text.rsplit_once('\n').unwrap_or_default();
        let lines = complete
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a journal is JSON lines"));
        lines.filter(|line| line["event"] == event).collect()
    }
}

fn output(mut command: Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("broker-gen starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // A program that reads no input may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("broker-gen ends");
    Output {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A node with a `chaos-mcp`. Its paths are relative, so that every folder gives one config.
pub fn node(name: &str, members: Value) -> Value {
    let mut source = json!({
        "command": ["chaos-mcp", "--script", format!("{name}.json"), "--journal", format!("{name}.log")],
        "cwd": ".",
    });
    for (key, value) in members.as_object().expect("members are an object") {
        source[key] = value.clone();
    }
    json!({"path": format!("/{name}"), "type": "node", "source": source})
}

/// Asserts that the text contains each of these.
#[track_caller]
pub fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}
