//! A client's file with eight public servers, of which two cannot start: `lock` and `serve` give the client the other six.

use std::fs;

use harness::{Run, binary};
use serde_json::{Value, json};

use super::stdio::{ServerFiles, folder};

const ERA: &str = "legacy";

#[test]
fn six_of_eight_real_servers_work_in_two_commands() {
    let files = ServerFiles::new("partly");
    let program = |name: &str| {
        let path = folder().join("servers").join(name);
        path.to_string_lossy().into_owned()
    };
    let data = files.at("data");
    let filesystem = program("node_modules/.bin/mcp-server-filesystem");
    let time = program("venv/bin/mcp-server-time");
    let servers = json!({"mcpServers": {
        "files": {"command": filesystem, "args": [data]},
        "subfolder": {"command": filesystem, "args": [files.at("data/sub")]},
        "memory": {"command": program("node_modules/.bin/mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": files.at("memory.jsonl")}},
        "everything": {"command": program("node_modules/.bin/mcp-server-everything")},
        "git": {"command": program("venv/bin/mcp-server-git")},
        "time": {"command": time, "args": ["--local-timezone=UTC"]},
        // Two that end at their start.
        "no-folder": {"command": filesystem, "args": [files.at("none")]},
        "no-zone": {"command": time, "args": ["--local-timezone=Nowhere/None"]},
    }});
    let config = files.at("mcp.json");
    fs::write(&config, servers.to_string()).expect("written");

    let generator = binary("broker-gen");
    let locked = Run::new(&generator)
        .args(["lock", "--config", &config])
        .output();
    assert_eq!(locked.code, Some(8), "{}{}", locked.stdout, locked.stderr);
    for name in ["/no-folder", "/no-zone"] {
        assert!(locked.stderr.contains(name), "{name}: {}", locked.stderr);
    }

    let calls = [
        ("/files/list_directory", json!({"path": data})),
        (
            "/subfolder/list_directory",
            json!({"path": files.at("data/sub")}),
        ),
        ("/memory/read_graph", json!({})),
        ("/everything/echo", json!({"message": "six of eight"})),
        ("/git/git_log", json!({"repo_path": files.at("repository")})),
        (
            "/time/convert_time",
            json!({"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
        ),
    ];
    let wanted = [
        "a.txt",
        "c.txt",
        "entities",
        "six of eight",
        "First",
        "21:30",
    ];
    let calls: Vec<Value> = calls
        .iter()
        .map(|(path, args)| json!({"tool": "meta_call", "args": {"path": path, "args": args}}))
        .collect();
    let generator = generator.to_string_lossy().into_owned();
    let serve = [&generator, "serve", "stdio", "--config", &config];
    let outcomes = files.outcomes(ERA, &serve, &calls);
    assert_eq!(outcomes.len(), wanted.len());
    for (outcome, wanted) in outcomes.iter().zip(wanted) {
        let shown = outcome.to_string();
        assert!(shown.contains(wanted), "{wanted}: {shown}");
        assert_ne!(outcome["result"]["isError"], true, "{shown}");
    }
}
