//! Compares the commands of CONTRIBUTING.md, of `justfile` and of `.vscode` with each other and with the workspace: each
//! names packages, targets, features, tests and files that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use harness::Run;
use serde_json::Value;

use crate::tidy::sources;
use crate::workspace;

fn text(file: &str) -> String {
    fs::read_to_string(workspace().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn json(file: &str) -> Value {
    serde_json::from_str(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The packages of the workspace with their targets, and the names of its tests.
struct Workspace {
    packages: Vec<Value>,
    default_members: Vec<Value>,
    sources: String,
}

impl Workspace {
    fn read() -> Self {
        let output = Run::new(Path::new(env!("CARGO")))
            .folder(workspace())
            .args(["metadata", "--no-deps", "--offline", "--locked"])
            .args(["--format-version", "1"])
            .output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let metadata: Value = serde_json::from_str(&output.stdout).expect("cargo prints JSON");
        Self {
            packages: items(&metadata["packages"]).to_vec(),
            default_members: items(&metadata["workspace_default_members"]).to_vec(),
            sources: sources().into_iter().map(|(_, text)| text).collect(),
        }
    }

    fn has_target(&self, packages: &[&Value], kind: &str, name: &str) -> bool {
        packages.iter().any(|package| {
            items(&package["targets"]).iter().any(|target| {
                let is_kind = items(&target["kind"]).iter().any(|known| known == kind);
                is_kind && target["name"] == name
            })
        })
    }

    /// Whether a test or a module of tests has a name with this text, of which the last segment is looked up.
    fn has_test(&self, filter: &str) -> bool {
        let name = filter.rsplit("::").next().unwrap_or_default();
        ["mod ", "fn "].iter().any(|keyword| {
            self.sources.split(keyword).skip(1).any(|rest| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                rest[..end.unwrap_or(rest.len())].contains(name)
            })
        })
    }

    /// The names in a command line that do not exist.
    fn absent(&self, line: &str) -> Vec<String> {
        let commands = line.split("&&").map(|command| {
            let words = command.split_whitespace();
            // Variables come before the program.
            words.skip_while(|word| word.contains('=')).collect()
        });
        commands
            .flat_map(|words: Vec<&str>| self.absent_of(&words))
            .collect()
    }

    fn absent_of(&self, words: &[&str]) -> Vec<String> {
        match words {
            ["cargo", "fmt" | "deny", ..] => Vec::new(),
            ["cargo", verb, options @ ..] => self.absent_of_cargo(verb, options),
            [program, ..] => self.absent_program(program).into_iter().collect(),
            [] => vec!["a command is empty".to_owned()],
        }
    }

    /// A program is a file of the repository, or what a build makes of it.
    fn absent_program(&self, program: &str) -> Option<String> {
        let built = program.strip_prefix("target/");
        let built = built.and_then(|path| path.split_once('/'));
        let exists = match built {
            Some((_, name)) => {
                let all: Vec<_> = self.packages.iter().collect();
                self.has_target(&all, "bin", name)
            }
            None => workspace().join(program).is_file(),
        };
        (!exists).then(|| format!("the program {program}"))
    }

    fn absent_of_cargo(&self, verb: &str, options: &[&str]) -> Vec<String> {
        let mut absent = Vec::new();
        let (mut targets, mut features, mut filters) = (Vec::new(), Vec::new(), Vec::new());
        let mut named = Vec::new();
        let mut all = false;
        let mut words = options.iter().take_while(|word| **word != "--");
        while let Some(&word) = words.next() {
            let mut value = || words.next().copied().unwrap_or_default();
            match word {
                "-p" | "--package" => named.push(value()),
                "--workspace" => all = true,
                "--test" | "--bin" | "--example" | "--bench" => {
                    targets.push((word.trim_start_matches('-'), value()));
                }
                "--features" => features.extend(value().split(',')),
                "--profile" | "--target-dir" => drop(value()),
                option if option.starts_with('-') => {}
                filter => filters.push(filter),
            }
        }
        for name in &named {
            if !self.packages.iter().any(|package| package["name"] == *name) {
                absent.push(format!("the package {name}"));
            }
        }
        let is_selected = |package: &&Value| match (all, named.is_empty()) {
            (true, _) => true,
            (false, true) => self.default_members.contains(&package["id"]),
            (false, false) => named.iter().any(|name| package["name"] == *name),
        };
        let selected: Vec<_> = self.packages.iter().filter(is_selected).collect();
        for (kind, name) in targets {
            if !self.has_target(&selected, kind, name) {
                absent.push(format!("the {kind} {name}"));
            }
        }
        for name in features {
            if !selected
                .iter()
                .any(|package| package["features"].get(name).is_some())
            {
                absent.push(format!("the feature {name}"));
            }
        }
        for filter in filters {
            if verb == "test" && !self.has_test(filter) {
                absent.push(format!("the tests {filter}"));
            }
        }
        absent
    }
}

/// The commands of the table in CONTRIBUTING.md: spans of code whose first word after variables is `cargo` or a file.
fn commands_of_the_page() -> BTreeSet<String> {
    let page = text("CONTRIBUTING.md");
    let (_, rest) = page
        .split_once("\n## Commands\n")
        .expect("the section exists");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let cells = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|row| row.split(" | ").nth(1));
    let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let is_command = |span: &&str| {
        let program = span.split(' ').find(|word| !word.contains('='));
        program.is_some_and(|word| word == "cargo" || workspace().join(word).is_file())
    };
    spans.filter(is_command).map(str::to_owned).collect()
}

/// The commands of the recipes, with the defaults of their parameters.
fn commands_of_the_recipes() -> BTreeSet<String> {
    let mut commands = BTreeSet::new();
    let mut defaults: Vec<(String, String)> = Vec::new();
    for line in text("justfile").lines() {
        if let Some(command) = line.strip_prefix("    ") {
            let fill = |command: String, (name, value): &(String, String)| {
                command.replace(&format!("{{{{{name}}}}}"), value)
            };
            commands.insert(defaults.iter().fold(command.to_owned(), fill));
        } else if let Some(head) = line.strip_suffix(':').filter(|_| !line.starts_with('#')) {
            let parameters = head.split(' ').skip(1);
            let parts = parameters.map(|parameter| {
                let (name, value) = parameter.split_once('=').expect("it has a default");
                (name.to_owned(), value.trim_matches('\'').to_owned())
            });
            defaults = parts.collect();
        }
    }
    commands
}

#[test]
fn recipes_are_the_commands_of_the_page() {
    let (page, recipes) = (commands_of_the_page(), commands_of_the_recipes());
    assert!(page.len() > 20, "the table was read: {page:#?}");
    let missing: Vec<_> = page.difference(&recipes).collect();
    let unknown: Vec<_> = recipes.difference(&page).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "not in justfile: {missing:#?}; not in CONTRIBUTING.md: {unknown:#?}"
    );
}

#[test]
fn commands_of_the_page_name_what_exists() {
    let workspace = Workspace::read();
    let absent: Vec<_> = commands_of_the_page()
        .into_iter()
        .map(|command| (workspace.absent(&command), command))
        .filter(|(absent, _)| !absent.is_empty())
        .collect();
    assert!(absent.is_empty(), "{absent:#?}");
}

#[test]
fn tasks_and_launch_settings_name_what_exists() {
    let known = Workspace::read();
    let mut problems = Vec::new();
    let tasks = json(".vscode/tasks.json");
    for task in items(&tasks["tasks"]) {
        let command = task["command"].as_str().expect("a task has a command");
        for absent in known.absent(command) {
            problems.push(format!("the task {}: {absent}", task["label"]));
        }
    }
    let launch = json(".vscode/launch.json");
    let entries = items(&launch["configurations"]);
    assert!(entries.len() > 2, "the entries were read");
    for entry in entries {
        let mut absent = Vec::new();
        let inside = |path: &Value| -> String {
            let path = path.as_str().unwrap_or_default();
            let relative = path.strip_prefix("${workspaceFolder}").unwrap_or(path);
            relative.trim_start_matches('/').to_owned()
        };
        if entry.get("program").is_some() {
            absent.extend(known.absent_program(&inside(&entry["program"])));
        } else {
            let words = items(&entry["cargo"]["args"])
                .iter()
                .filter_map(Value::as_str);
            let words: Vec<_> = std::iter::once("cargo").chain(words).collect();
            absent.extend(known.absent_of(&words));
        }
        let files = items(&entry["args"]).iter().filter_map(Value::as_str);
        for file in files.filter(|argument| argument.ends_with(".json")) {
            if !workspace().join(file).is_file() {
                absent.push(format!("the file {file}"));
            }
        }
        if !workspace().join(inside(&entry["cwd"])).is_dir() {
            absent.push(format!("the folder {}", entry["cwd"]));
        }
        let before = &entry["preLaunchTask"];
        if !items(&tasks["tasks"])
            .iter()
            .any(|task| task["label"] == *before)
        {
            absent.push(format!("the task {before}"));
        }
        for absent in absent {
            problems.push(format!("the entry {}: {absent}", entry["name"]));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn task_of_all_tests_is_the_command_of_the_readme() {
    let readme = text("README.md");
    let command = readme
        .lines()
        .find(|line| line.contains("cargo test --workspace --locked"));
    let tasks = json(".vscode/tasks.json");
    let task = items(&tasks["tasks"])
        .iter()
        .find(|task| task["label"] == "all tests");
    assert_eq!(task.and_then(|task| task["command"].as_str()), command);
    // Otherwise every save makes a build in a terminal wait.
    let settings = json(".vscode/settings.json");
    assert_eq!(settings["rust-analyzer.cargo.targetDir"], true);
}

#[test]
fn absent_names_of_a_command_are_found() {
    let known = Workspace::read();
    let none: [String; 0] = [];
    for (command, absent) in [
        ("cargo test --locked --test cli offline::schemas", &none[..]),
        ("A=1 cargo test -p broker-model --locked", &none[..]),
        (
            "cargo bench -p hot-path --bench instructions --profile dev",
            &none[..],
        ),
        (
            "cargo build --features hf && target/debug/mcp-broker stdio",
            &none[..],
        ),
        (
            "cargo test -p broker-gen --test verbs",
            &["the test verbs".to_owned()],
        ),
        ("cargo test -p absent", &["the package absent".to_owned()]),
        // Only the packages of the selection count.
        ("cargo test --test checks", &["the test checks".to_owned()]),
        (
            "cargo build --bin broker-gen",
            &["the bin broker-gen".to_owned()],
        ),
        (
            "cargo run --example nothing",
            &["the example nothing".to_owned()],
        ),
        (
            "cargo build --features nothing",
            &["the feature nothing".to_owned()],
        ),
        (
            "cargo test --test cli no_such_test",
            &["the tests no_such_test".to_owned()],
        ),
        (
            "tests/nothing && cargo fmt",
            &["the program tests/nothing".to_owned()],
        ),
        (
            "target/debug/nothing",
            &["the program target/debug/nothing".to_owned()],
        ),
    ] {
        // The name of an absent test must not be in this file as one.
        assert_eq!(known.absent(command), absent, "{command}");
    }
}

#[test]
fn version_of_the_workspace_and_its_compiler_are_the_same_everywhere() {
    let read = |file: &str| -> toml::Table { text(file).parse().expect("the file is TOML") };
    let manifest = read("Cargo.toml");
    let package = &manifest["workspace"]["package"];
    let version = package["version"].as_str().expect("a version");
    let changelog = text("CHANGELOG.md");
    let newest = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .find(|heading| *heading != "Unreleased");
    let newest = newest.and_then(|heading| heading.split(' ').next());
    assert_eq!(newest, Some(version), "the newest version of the changelog");
    let supported = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    assert!(
        text("SECURITY.md").contains(&format!("at present {supported};")),
        "SECURITY.md names {supported}"
    );

    let compiler = package["rust-version"].as_str().expect("a version");
    let toolchain = read("rust-toolchain.toml");
    let table = toolchain["toolchain"].as_table().expect("a table");
    let channel = table["channel"].as_str().expect("a channel");
    assert_eq!(channel, "stable", "a release would be downloaded");
    assert_eq!(
        table.len(),
        1,
        "rustup installs nothing but the compiler: {table:?}"
    );
    for page in ["README.md", "CONTRIBUTING.md"] {
        assert!(text(page).contains(&format!("Rust {compiler}")), "{page}");
    }
}

#[test]
fn form_for_bugs_asks_for_what_finds_their_cause() {
    let form = text(".github/ISSUE_TEMPLATE/bug.yml");
    for part in [
        "`broker-gen doctor`",
        "catalog digest",
        "log line",
        "SECURITY.md",
    ] {
        assert!(form.contains(part), "{part}");
    }
    assert!(workspace().join("broker-gen/src/cli/doctor.rs").is_file());
    let ids = form.matches("\n    id: ").count();
    assert_eq!(ids, form.matches("\n      label: ").count());
}
