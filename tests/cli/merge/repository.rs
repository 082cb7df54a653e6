//! Clones of a repository with a config, scripts of its servers, a lock, and the merge driver of `docs/lock.md`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use harness::{Bench, Output, Run, binary};
use serde_json::{Value, json};

/// The name of the config; it is in a folder of the repository.
pub(crate) const CONFIG: &str = "below/c.json";
pub(crate) const LOCK: &str = "below/c.lock.json";
pub(crate) const AUDITS: &str = "below/c.audits.toml";

/// A clone.
pub(crate) struct Clone {
    pub(crate) bench: Bench,
    /// The git that runs, and that `broker-gen` finds first.
    pub(crate) git: PathBuf,
}

/// Every version of git on this machine, the first in `PATH` of each.
pub(crate) fn all_gits() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").expect("programs are found by it");
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    let programs = std::env::split_paths(&path).map(|folder| folder.join("git"));
    for program in programs.filter(|program| program.is_file()) {
        let version = Run::new(&program).args(["--version"]).output().stdout;
        if !found.iter().any(|(known, _)| *known == version) {
            found.push((version, program));
        }
    }
    assert!(!found.is_empty(), "git is installed");
    found.into_iter().map(|(_, program)| program).collect()
}

impl Clone {
    /// A repository with a folder for the config and the merge driver, as the page says.
    pub(crate) fn new() -> Self {
        let clone = Self {
            bench: Bench::new(),
            git: all_gits().remove(0),
        };
        std::fs::create_dir(clone.bench.path("below")).expect("a new folder");
        clone.git_fine(&["init", "-q", "-b", "main"]);
        clone.shell(&setup_lines().join("\n"));
        clone
    }

    /// A clone of it, with the driver.
    pub(crate) fn of(other: &Self) -> Self {
        let clone = Self {
            bench: Bench::new(),
            git: other.git.clone(),
        };
        let from = other.bench.path("");
        let from = from.to_str().expect("a name");
        clone.git_fine(&["clone", "-q", "-o", "other", from, "."]);
        let config = setup_lines()
            .into_iter()
            .filter(|line| line.starts_with("git config"));
        clone.shell(&config.collect::<Vec<_>>().join("\n"));
        other.git_fine(&[
            "remote",
            "add",
            "other",
            clone.bench.path("").to_str().expect("a name"),
        ]);
        clone
    }

    fn shell(&self, text: &str) {
        let mut command = self.command("sh");
        let status = command.args(["-ec", text]).status();
        assert!(status.expect("a shell").success(), "{text}");
    }

    /// A program in the folder that finds `broker-gen`, without settings of the user.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let generator = binary("broker-gen");
        let beside = generator.parent().expect("it is in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let git = self.git.parent().expect("it is in a folder").display();
        #[expect(
            clippy::disallowed_methods,
            reason = "tests start the programs that they test with"
        )]
        let mut command = Command::new(program);
        for name in ["CI", "MCP_BROKER_LOCKED", "MCP_BROKER_CONFIG"] {
            command.env_remove(name);
        }
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "T");
            command.env(format!("GIT_{role}_EMAIL"), "t@example.org");
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
            .env("GIT_EDITOR", "true")
            .env("LC_ALL", "C")
            .env("PATH", format!("{}:{git}:{path}", beside.display()))
            .current_dir(self.bench.path(""));
        command
    }

    /// Runs git with these variables.
    pub(crate) fn git_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(&self.git);
        command.args(args).envs(variables.iter().copied());
        let output = command.output().expect("git is installed");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Output {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Runs git.
    pub(crate) fn git(&self, args: &[&str]) -> Output {
        self.git_with(args, &[])
    }

    /// Runs git, which must succeed; its output.
    #[track_caller]
    pub(crate) fn git_fine(&self, args: &[&str]) -> String {
        let output = self.git(args);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(output.code, Some(0), "git {args:?}: {said}");
        output.stdout
    }

    /// Commits everything.
    pub(crate) fn commit(&self, message: &str) {
        self.git_fine(&["add", "-A"]);
        self.git_fine(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// Runs a verb of `broker-gen` for the config.
    pub(crate) fn verb(&self, args: &[&str]) -> Output {
        let mut all = vec![args[0], "--config", CONFIG];
        all.extend(&args[1..]);
        self.bench.run(&all)
    }

    /// Runs a verb, which must succeed.
    #[track_caller]
    pub(crate) fn verb_fine(&self, args: &[&str]) -> Output {
        let output = self.verb(args);
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
        output
    }

    /// Sets the tools that the server of a source lists.
    pub(crate) fn tools(&self, source: &str, names: &[String]) {
        let tool = |name: &String| json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}});
        let tools: Vec<Value> = names.iter().map(tool).collect();
        let script = json!({"tools": tools}).to_string();
        self.bench.write(&format!("below/{source}.json"), &script);
    }

    /// Writes a config of these sources in this order; each has a filter. Lines between them keep text merges apart.
    pub(crate) fn configure<'a>(&self, sources: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let nodes: Vec<_> = sources
            .into_iter()
            .map(|(name, filter)| {
                format!(
                    "  {{\n    \"path\": \"/{name}\",\n    \"type\": \"node\",\n    \"source\": {{\n      \
                     \"command\": [\"chaos-mcp\", \"--script\", \"{name}.json\", \"--journal\", \"{name}.log\"],\n      \
                     \"cwd\": \".\",\n      \"tool_filter\": [\"{filter}\"]\n    }}\n  }}"
                )
            })
            .collect();
        let text = format!("{{\"tree\": [\n{}\n]}}\n", nodes.join(",\n\n\n\n"));
        self.bench.write(CONFIG, &text);
    }

    /// Asserts that the lock verifies, that no source ran since the journals were removed, and that a fresh lock of the
    /// same servers has the same bytes.
    #[track_caller]
    pub(crate) fn is_fresh(&self, what: &str) {
        let output = self.verb(&["verify", "--offline"]);
        assert_eq!(output.code, Some(0), "{what}: {}", output.stderr);
        let merged = self.bench.read(LOCK);
        let output = self.verb(&["lock", "--once"]);
        assert_eq!(output.code, Some(0), "{what}: {}", output.stderr);
        let fresh = self.bench.read(LOCK);
        assert_eq!(merged, fresh, "{what}: {}", output.stderr);
    }
}

/// The two lines of setup in the page.
fn setup_lines() -> Vec<String> {
    let root = env!("CARGO_MANIFEST_DIR");
    let page = std::fs::read_to_string(format!("{root}/docs/lock.md")).expect("the page");
    let (_, section) = page.split_once("## Two branches").expect("the section");
    let (_, block) = section.split_once("```sh\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    let lines: Vec<_> = block.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    lines
}
