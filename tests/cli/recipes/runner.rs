//! A small runner of workflows by the rules of GitHub Actions: jobs in the order of their needs, a clone for each job,
//! conditions, variables, artifacts, and commands in the output of steps.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::binary;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::expression::Context;
use super::yaml;

/// Programs that a runner has and a test replaces: they note how they were called.
const NOTED: [&str; 3] = ["cargo", "rustup", "gh"];

/// One event of a repository, and what the runner keeps while its workflows run.
pub(super) struct Runner {
    folder: TempDir,
    repository: PathBuf,
    github: Value,
    secrets: Value,
}

/// What came of a job.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// `success`, `failure` or `skipped`.
    pub(super) result: &'static str,
    /// The output of its steps.
    pub(super) log: String,
    /// The commands that the runner executed: their name and their text.
    pub(super) commands: Vec<(String, String)>,
    /// The text that its steps added to the summary.
    pub(super) summary: String,
    /// The files that it uploaded for code scanning: the category, and the document.
    pub(super) sarif: Vec<(String, Value)>,
}

impl Runner {
    /// Makes a runner for an event; `github` is the context of that name.
    pub(super) fn new(repository: &Path, github: Value, secrets: Value) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        for name in ["artifacts", "programs", "homes"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let noted = folder.path().join("noted");
        for name in NOTED {
            let path = folder.path().join("programs").join(name);
            // `gh pr view` has no answer, so that a pull request is made; a comment keeps its body.
            let script = format!(
                "#!/bin/sh\necho \"{name} $*\" >> '{noted}'\nfor last; do [ \"$before\" != --body-file ] || cat \"$last\" > '{noted}.body'; before=$last; done\n",
                noted = noted.display()
            );
            fs::write(&path, script).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        Self {
            folder,
            repository: repository.to_owned(),
            github,
            secrets,
        }
    }

    /// The calls of `cargo`, `rustup` and `gh`, a line each.
    pub(super) fn noted(&self) -> String {
        fs::read_to_string(self.folder.path().join("noted")).unwrap_or_default()
    }

    /// The comment that was written.
    pub(super) fn comment(&self) -> Option<String> {
        fs::read_to_string(self.folder.path().join("noted.body")).ok()
    }

    /// Runs a workflow; the jobs by name, those of a matrix with its values.
    pub(super) fn run(&self, workflow: &str) -> BTreeMap<String, Job> {
        let workflow = yaml::read(workflow);
        let jobs = workflow["jobs"].as_object().expect("jobs");
        let mut results: BTreeMap<String, &'static str> = BTreeMap::new();
        let mut out = BTreeMap::new();
        while results.len() < jobs.len() {
            let ready = jobs.iter().find(|(name, job)| {
                let all = needs(job).iter().all(|need| results.contains_key(*need));
                !results.contains_key(*name) && all
            });
            let (name, job) = ready.expect("needs without a circle");
            let mut worst = "skipped";
            for matrix in matrices(job) {
                let done = self.job(&workflow, job, &results, &matrix);
                worst = match (worst, done.result) {
                    ("failure", _) | (_, "failure") => "failure",
                    (_, result) => result,
                };
                let values: Vec<_> = matrix.values().filter_map(Value::as_str).collect();
                let name = [&[name.as_str()], values.as_slice()].concat().join(" ");
                out.insert(name, done);
            }
            results.insert(name.clone(), worst);
        }
        out
    }

    fn job(
        &self,
        workflow: &Value,
        job: &Value,
        results: &BTreeMap<String, &'static str>,
        matrix: &Map<String, Value>,
    ) -> Job {
        let needed: Map<_, _> = needs(job)
            .into_iter()
            .map(|need| (need.to_owned(), json!({"result": results[need]})))
            .collect();
        let is_bad = |need: &Value| need["result"] != "success";
        let mut context = Context {
            has_failed: needed.values().any(is_bad),
            values: json!({
                "github": self.github, "secrets": self.secrets, "matrix": matrix, "needs": needed,
            }),
        };
        let mut done = Job {
            result: "skipped",
            ..Job::default()
        };
        if !context.allows(job.get("if")) {
            return done;
        }
        context.has_failed = false;
        let home = TempDir::new_in(self.folder.path().join("homes")).expect("a folder");
        let place = home.path().join("work");
        fs::create_dir(&place).expect("a folder");
        for step in job["steps"].as_array().expect("steps") {
            if !context.allows(step.get("if")) {
                continue;
            }
            let environment = [workflow.get("env"), job.get("env"), step.get("env")];
            let environment: BTreeMap<String, String> = environment
                .into_iter()
                .flatten()
                .flat_map(|env| env.as_object().expect("variables"))
                .map(|(name, value)| (name.clone(), context.fill(value.as_str().unwrap_or(""))))
                .collect();
            let fine = match (step["run"].as_str(), step["uses"].as_str()) {
                (Some(script), _) => {
                    self.script(&context.fill(script), &place, &environment, &mut done)
                }
                (None, Some(action)) => self.action(action, step, &context, &place, &mut done),
                (None, None) => panic!("a step without `run` and `uses`: {step}"),
            };
            context.has_failed |= !fine;
        }
        done.result = if context.has_failed {
            "failure"
        } else {
            "success"
        };
        done.summary = fs::read_to_string(home.path().join("summary")).unwrap_or_default();
        done
    }

    /// Runs a script as a step does; returns whether it succeeded.
    fn script(
        &self,
        script: &str,
        place: &Path,
        environment: &BTreeMap<String, String>,
        job: &mut Job,
    ) -> bool {
        let home = place.parent().expect("it is in a folder");
        let file = home.join("script.sh");
        fs::write(&file, script).expect("written");
        let beside = binary("broker-gen");
        binary("chaos-mcp");
        let beside = beside.parent().expect("it is in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let programs = self.folder.path().join("programs");
        let output = shell(place)
            .args(["-c", "exec bash -e \"$1\" 2>&1", "sh"])
            .arg(&file)
            .env(
                "PATH",
                format!("{}:{}:{path}", programs.display(), beside.display()),
            )
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_WORKSPACE", place)
            .env("GITHUB_STEP_SUMMARY", home.join("summary"))
            .env("GITHUB_PATH", home.join("path"))
            .env("HOME", home)
            .envs(environment)
            .output()
            .expect("bash runs");
        let text = String::from_utf8(output.stdout).expect("text");
        job.commands.extend(text.lines().filter_map(command));
        job.log.push_str(&text);
        output.status.success()
    }

    fn action(
        &self,
        action: &str,
        step: &Value,
        context: &Context,
        place: &Path,
        job: &mut Job,
    ) -> bool {
        let with = |name: &str| {
            let value = step["with"].get(name).and_then(Value::as_str);
            value.map(|value| context.fill(value))
        };
        let artifacts = self.folder.path().join("artifacts");
        match action.split('@').next().expect("a name") {
            "actions/checkout" => {
                let depth = with("fetch-depth").unwrap_or_else(|| "1".to_owned());
                let sha = self.github["sha"].as_str().expect("a commit");
                let depth = match depth.as_str() {
                    "0" => Vec::new(),
                    depth => vec![format!("--depth={depth}")],
                };
                let repository = format!("file://{}", self.repository.display());
                git(place, &["init", "-q", "."]);
                git(place, &["remote", "add", "origin", &repository]);
                let mut fetch = vec!["fetch", "-q"];
                fetch.extend(depth.iter().map(String::as_str));
                fetch.extend(["origin", sha]);
                git(place, &fetch);
                git(place, &["checkout", "-q", "--detach", sha]);
                true
            }
            // Nothing was kept before.
            "actions/cache" => ["path", "key"]
                .iter()
                .all(|name| step["with"][name].is_string()),
            "actions/upload-artifact" => {
                let paths = with("path").expect("a path");
                for path in paths.lines().map(str::trim).filter(|path| !path.is_empty()) {
                    // A file that is absent is a warning of the action.
                    let _ = fs::copy(place.join(path), artifacts.join(path));
                }
                true
            }
            "actions/download-artifact" => {
                for entry in fs::read_dir(&artifacts).expect("a folder") {
                    let path = entry.expect("readable").path();
                    let name = path.file_name().expect("a name");
                    fs::copy(&path, place.join(name)).expect("copied");
                }
                true
            }
            "github/codeql-action/upload-sarif" => {
                let file = place.join(with("sarif_file").expect("a file"));
                let Ok(text) = fs::read(file) else {
                    return false;
                };
                let document = serde_json::from_slice(&text).expect("JSON");
                let category = with("category").unwrap_or_default();
                job.sarif.push((category, document));
                true
            }
            other => panic!("the action `{other}` is not known here"),
        }
    }
}

fn needs(job: &Value) -> Vec<&str> {
    match job.get("needs") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The values of the matrix of a job; one without values if it has none.
fn matrices(job: &Value) -> Vec<Map<String, Value>> {
    let mut out = vec![Map::new()];
    let matrix = job.pointer("/strategy/matrix").and_then(Value::as_object);
    for (name, values) in matrix.into_iter().flatten() {
        let values = values.as_array().expect("a list of values");
        let with = |known: &Map<String, Value>, value: &Value| {
            let mut known = known.clone();
            known.insert(name.clone(), value.clone());
            known
        };
        out = out
            .iter()
            .flat_map(|known| values.iter().map(move |value| with(known, value)))
            .collect();
    }
    out
}

/// The command in a line of output, in both forms that the runner reads: `::NAME …::TEXT` after white space, and
/// `##[NAME …]TEXT` anywhere.
fn command(line: &str) -> Option<(String, String)> {
    let (head, text) = match line.trim_start().strip_prefix("::") {
        Some(rest) => rest.split_once("::")?,
        None => line.split_once("##[")?.1.split_once(']')?,
    };
    let name = head.split(' ').next().unwrap_or_default();
    let fine = |c: char| c.is_ascii_lowercase() || c == '-';
    (!name.is_empty() && name.chars().all(fine)).then(|| (name.to_owned(), text.to_owned()))
}

/// A shell in a folder, without the user's settings of git.
pub(super) fn shell(folder: &Path) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "the scripts of the page are for a shell"
    )]
    let mut command = Command::new("/bin/sh");
    for name in ["MCP_BROKER_CONFIG", "MCP_BROKER_LOCKED", "MCP_BROKER_WHO"] {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// Runs git in a folder; returns its output.
#[track_caller]
pub(super) fn git(folder: &Path, args: &[&str]) -> String {
    let output = shell(folder)
        .args([
            "-c",
            "exec git -c user.name=N -c user.email=n@example.org \"$@\"",
            "sh",
        ])
        .args(args)
        .output()
        .expect("git runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {error}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim_end().to_owned()
}
