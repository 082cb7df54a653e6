//! A broker by `broker-gen serve` over scripted servers, for a page.

use harness::{Bench, Broker, Run, binary, node};
use serde_json::{Value, json};

use crate::browser::Page;

/// A folder, the broker that serves it, and the address of its page.
pub(crate) struct Stage {
    pub(crate) bench: Bench,
    pub(crate) broker: Broker,
}

/// A tool with a description and a schema.
pub(crate) fn tool(name: &str, description: &str, properties: Value, hints: Value) -> Value {
    json!({
        "name": name, "description": description, "annotations": hints,
        "inputSchema": {"type": "object", "properties": properties, "required": []},
    })
}

/// The tools of the source `repo`.
pub(crate) fn repo_tools() -> Vec<Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    vec![
        tool(
            "get_file",
            "Reads a file of a repository.\n\nReturns its text and its digest.",
            json!({
                "repo": text("The repository, as owner/name"), "path": text("The path of the file"),
                "ref": text("A branch or a commit"), "lines": {"type": "integer", "minimum": 1},
                "format": {"enum": ["text", "base64"]}, "follow": {"type": "boolean"},
                "filter": {"type": "object", "properties": {"binary": {"type": "boolean"}}},
            }),
            json!({"readOnlyHint": true}),
        ),
        tool(
            "list_issues",
            "Lists the issues of a repository.",
            json!({"repo": text("The repository")}),
            json!({"readOnlyHint": true}),
        ),
        tool(
            "delete_branch",
            "Deletes a branch.",
            json!({"name": text("The branch")}),
            json!({"destructiveHint": true}),
        ),
        tool(
            "create_issue",
            "Creates an issue.",
            json!({"title": text("The title")}),
            json!({"destructiveHint": false}),
        ),
    ]
}

/// Returns a config over the sources of these names.
pub(crate) fn config(sources: &[&str], more: Value) -> Value {
    let tree: Vec<_> = sources.iter().map(|name| node(name, json!({}))).collect();
    let mut config = json!({"tree": tree, "types": false});
    for (name, value) in more.as_object().into_iter().flatten() {
        config[name] = value.clone();
    }
    config
}

/// Returns a folder with a config, scripts of its sources, and its lock.
pub(crate) fn locked(config: &Value, scripts: &[(&str, Value)]) -> Bench {
    let bench = Bench::new();
    for (name, script) in scripts {
        bench.script(name, script);
    }
    bench.write("c.json", &config.to_string());
    bench.lock();
    bench
}

impl Stage {
    /// Serves a locked folder.
    pub(crate) fn serve(bench: Bench) -> Self {
        Self::serve_with(bench, &[])
    }

    /// Serves a locked folder, with more arguments.
    pub(crate) fn serve_with(bench: Bench, args: &[&str]) -> Self {
        let program = binary("broker-gen");
        let beside = program.parent().expect("it is in a folder").display();
        let path = std::env::var("PATH").unwrap_or_default();
        let run = Run::new(&program)
            .folder(&bench.path(""))
            .env("PATH", format!("{beside}:{path}"))
            .args(["serve", "--config", "c.json", "127.0.0.1:0"])
            .args(args);
        Self {
            broker: Broker::start_ready(run),
            bench,
        }
    }

    /// A broker with the source `repo` and these members of its config.
    pub(crate) fn repo(more: Value) -> Self {
        let scripts = [("repo", json!({"tools": repo_tools(), "built_in": false}))];
        Self::serve(locked(&config(&["repo"], more), &scripts))
    }

    /// Returns the address before every path.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}/", self.broker.address())
    }

    /// Opens the page in a browser.
    pub(crate) fn page(&self) -> Page {
        Page::open(&format!("{}ui/", self.origin()))
    }
}
