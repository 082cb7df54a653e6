//! A temporary folder, locks made without a server, and runs of the program over them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use broker_model::Snapshot;
use broker_model::config::Config;
use broker_model::lock::{Lock, LockedSource};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder; removed when dropped.
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

/// The root of the workspace.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the workspace")
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    /// Writes a config and the lock that a server with these tools gives.
    pub(crate) fn lock(&self, stem: &str, config: &Value, tools: &[Value]) {
        let text = config.to_string();
        let parsed = Config::parse("c.json", text.as_bytes()).expect("the config is valid");
        let snapshot = Snapshot {
            server_info: json!({"name": "server", "version": "1"}),
            protocol_version: "2025-11-25".to_owned(),
            capabilities: json!({"tools": {}}),
            instructions: None,
            tools: tools
                .iter()
                .map(|tool| {
                    tool.as_object()
                        .expect("a tool is an object")
                        .clone()
                        .into()
                })
                .collect(),
        };
        let sources = parsed.config.sources();
        let lock = Lock {
            version: broker_model::lock::LOCK_VERSION,
            config_digest: parsed.config.digest(),
            generator: "broker-gen test".to_owned(),
            sources: sources
                .map(|source| LockedSource::from_snapshot(source, &snapshot))
                .collect(),
        };
        self.write(&format!("{stem}.json"), &text);
        self.write(&format!("{stem}.lock.json"), &lock.to_text());
    }

    /// Runs `broker-gen` in the folder.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_with_input(args, "")
    }

    /// Runs the program with these variables.
    pub(crate) fn run_with_env(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        self.run_whole(args, "", env)
    }

    /// Runs the program with this text on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Output {
        self.run_whole(args, input, &[])
    }

    /// The program, in the folder, with an environment that is the same everywhere.
    pub(crate) fn command(&self) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the program that they test"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_broker-gen"));
        let ours = ["CONFIG", "LOCKED", "WHO"].map(|name| format!("MCP_BROKER_{name}"));
        for name in ours.iter().map(String::as_str).chain(["CI", "NO_COLOR"]) {
            command.env_remove(name);
        }
        // No user settings, and no repository around the folder.
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
            .current_dir(self.folder.path());
        command
    }

    fn run_whole(&self, args: &[&str], input: &str, env: &[(&str, &str)]) -> Output {
        let mut child = self
            .command()
            .args(args)
            .envs(env.iter().copied())
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

    /// The same, which must succeed; its standard output.
    pub(crate) fn fine(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
        output.stdout
    }
}

/// A config with one source on `/a`.
pub(crate) fn config(source: Value) -> Value {
    let mut whole = json!({"command": "server"});
    for (key, value) in source.as_object().expect("members are an object") {
        whole[key] = value.clone();
    }
    json!({"tree": [{"path": "/a", "type": "node", "source": whole}]})
}

/// A tool that takes an object.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}. Then more."), "inputSchema": {"type": "object"}})
}

/// Asserts that the text contains each of these.
#[track_caller]
pub(crate) fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}
