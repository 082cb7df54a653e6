//! `up`: from the file of a client to a connected client. Servers are scripted; the client is a program that starts the
//! entry that it gets.

use std::fs;
use std::path::Path;

use harness::{Bench, DirectServer, Run, assert_inert, contains, on_terminal};
use serde_json::{Map, Value, json};

const TOKEN: &str = "sk-live-0123456789abcdefABCDEF";

/// A file of this number of servers; the first one has a secret.
fn file(count: usize) -> String {
    let server = |index: usize| {
        let name = format!("s{index}");
        let mut server = json!({"command": "chaos-mcp", "args": ["--script", format!("{name}.json"), "--journal", format!("{name}.log")]});
        if index == 0 {
            server["env"] = json!({"API_TOKEN": TOKEN});
        }
        (name, server)
    };
    let servers: Map<String, Value> = (0..count).map(server).collect();
    json!({"mcpServers": servers}).to_string()
}

/// A folder with a file of servers; it is the home as well.
fn folder(count: usize) -> Bench {
    let bench = Bench::new();
    bench.write("mcp.json", &file(count));
    for index in 0..count {
        bench.script(&format!("s{index}"), &json!({}));
    }
    bench
}

fn up(bench: &Bench, args: &[&str]) -> harness::Output {
    let home = bench.path("");
    let home = home.to_str().expect("UTF-8");
    let output = bench.run_with_env(
        &[&["up"][..], args].concat(),
        &[("HOME", home), ("XDG_CONFIG_HOME", "")],
    );
    assert_inert("stdout", &output.stdout);
    assert_inert("stderr", &output.stderr);
    output
}

/// `up` at a terminal, with these answers.
fn up_on_terminal(bench: &Bench, args: &[&str], answers: &str) -> (Option<i32>, String) {
    let mut command = bench.command();
    command
        .arg("up")
        .args(args)
        .env("HOME", bench.path(""))
        .env("XDG_CONFIG_HOME", "")
        .env("TERM", "dumb");
    on_terminal(command, answers)
}

/// The files of the folder that are not scripts or journals.
fn files(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.path("")).expect("readable");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<_> = names
        .filter(|name| name.starts_with("config.") || name.starts_with("mcp.json"))
        .collect();
    names.sort();
    names
}

/// The tools that a client of this entry sees.
fn tree_of(entry: &Value) -> Vec<String> {
    let mut run = Run::new(Path::new(entry["command"].as_str().expect("a path")));
    let args = entry["args"].as_array().expect("a list").iter();
    run = run.args(args.map(|arg| arg.as_str().expect("a word")));
    for (name, value) in entry["env"].as_object().into_iter().flatten() {
        run = run.env(name, value.as_str().expect("a text"));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let program = harness::binary("broker-gen");
    let beside = program.parent().expect("a folder").display().to_string();
    let mut server = DirectServer::start(run.env("PATH", format!("{beside}:{path}")));
    let result = server.call("meta_tree", &json!({"path": "/", "depth": 3}));
    // The value of the variable reaches the server.
    let environment = server.call("meta_call", &json!({"path": "/s0/env_dump"}));
    contains(&environment.to_string(), &["API_TOKEN"]);
    harness::tree_paths(&result["result"])
}

#[test]
fn file_of_seven_servers_becomes_a_connected_client_in_one_command() {
    let bench = folder(7);
    let before = bench.read("mcp.json");
    let output = up(
        &bench,
        &[
            "mcp.json",
            "--from",
            "cursor",
            "--yes",
            "--write",
            "--replace",
        ],
    );
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.is_empty(), "{}", output.stdout);
    contains(
        &output.stderr,
        &[
            "with 7 servers:",
            "  /s0: chaos-mcp --script s0.json --journal s0.log",
            "API_TOKEN",
            "wrote config.json",
            "s6/",
            "added `broker`",
            "`s0`, `s1`",
            "connect cursor --file ",
        ],
    );
    // The secret is where it was, in the file of the client, and nowhere else.
    assert!(!output.stderr.contains(TOKEN), "{}", output.stderr);
    for name in ["config.json", "config.lock.json"] {
        let text = bench.read(name);
        assert!(!text.contains(TOKEN), "{name}");
    }
    contains(&bench.read("config.json"), &["${API_TOKEN}"]);
    let document: Value = serde_json::from_str(&bench.read("mcp.json")).expect("JSON");
    let servers = document["mcpServers"].as_object().expect("an object");
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["broker"]);
    assert_eq!(servers["broker"]["env"]["API_TOKEN"], TOKEN);
    let tree = tree_of(&servers["broker"]);
    for index in 0..7 {
        let path = format!("/s{index}");
        assert!(tree.iter().any(|one| one.starts_with(&path)), "{tree:?}");
    }
    let undone = bench.run(&["connect", "cursor", "--file", "mcp.json", "--undo"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(bench.read("mcp.json"), before);
}

#[test]
fn up_without_write_prints_the_entry_without_secrets() {
    let bench = folder(1);
    let before = bench.read("mcp.json");
    let output = up(&bench, &["mcp.json", "--yes", "-o", "b.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let document: Value = serde_json::from_str(&output.stdout).expect("only the entry");
    let config = fs::canonicalize(bench.path("b.json")).expect("it exists");
    let args = &document["mcpServers"]["broker"]["args"];
    assert_eq!(args, &json!(["serve", "stdio", "--config", config]));
    assert!(!(output.stdout.clone() + &output.stderr).contains(TOKEN));
    contains(
        &output.stderr,
        &["set these variables", "  API_TOKEN  secret: "],
    );
    assert_eq!(bench.read("mcp.json"), before);
}

#[test]
fn up_without_a_terminal_names_the_option_and_starts_no_server() {
    let bench = folder(1);
    for args in [&["mcp.json"][..], &[]] {
        let output = up(&bench, args);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        contains(&output.stderr, &["`broker-gen up FILE --yes`"]);
    }
    let output = up(&bench, &["--yes"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["<FILE>"]);
    // A machine where no verb writes files.
    let output = bench.run_with_env(&["up", "mcp.json", "--yes"], &[("CI", "true")]);
    assert_ne!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(files(&bench), ["mcp.json"]);
    assert!(bench.journal("s0", "start").is_empty());
    // A config or a lock that exists is not overwritten.
    for name in ["config.json", "config.lock.json"] {
        bench.write(name, "mine");
        let output = up(&bench, &["mcp.json", "--yes"]);
        assert_ne!(output.code, Some(0), "{}", output.stderr);
        contains(&output.stderr, &[&format!("`{name}` already exists")]);
        assert_eq!(bench.read(name), "mine");
        fs::remove_file(bench.path(name)).expect("it exists");
    }
}

#[test]
fn up_asks_at_a_terminal_before_it_starts_a_server() {
    let bench = folder(1);
    fs::create_dir(bench.path(".cursor")).expect("a folder can be made");
    let mut document: Value = serde_json::from_str(&file(1)).expect("JSON");
    document["mcpServers"]["s0"]["args"] = json!([
        "--script",
        "s0.json",
        "--journal",
        "s0.log",
        "--note=\u{202e}\u{1b}[2J"
    ]);
    bench.write(".cursor/mcp.json", &document.to_string());
    // The file of a project is not found by itself.
    bench.write(".mcp.json", &file(1));
    for answer in ["n\n", "\n", "yesterday\n"] {
        let (code, screen) = up_on_terminal(&bench, &[], answer);
        assert_eq!(code, Some(0), "{screen}");
        contains(
            &screen,
            &[
                ".cursor/mcp.json is a file of Cursor",
                "Start 1 server",
                "nothing was started",
            ],
        );
        assert!(!screen.contains(['\u{202e}', '\u{1b}']), "{screen:?}");
        assert!(
            !screen.contains(".mcp.json is a file of Claude"),
            "{screen}"
        );
    }
    assert!(bench.journal("s0", "start").is_empty());
    assert_eq!(files(&bench), ["mcp.json"]);
    bench.write(".cursor/mcp.json", &file(1));
    let (code, screen) = up_on_terminal(&bench, &[], "y\ny\n");
    assert_eq!(code, Some(0), "{screen}");
    contains(
        &screen,
        &["wrote config.json", "Write the entry", "added `broker`"],
    );
    assert!(!screen.contains(TOKEN), "{screen}");
    let written: Value = serde_json::from_str(&bench.read(".cursor/mcp.json")).expect("JSON");
    assert!(written["mcpServers"]["s0"].is_object());
    assert!(written["mcpServers"]["broker"].is_object());
}

#[test]
fn up_asks_which_of_several_files_is_meant() {
    let bench = folder(2);
    fs::create_dir(bench.path(".cursor")).expect("a folder can be made");
    bench.write(".cursor/mcp.json", &file(1));
    bench.write(".claude.json", &file(2));
    let (code, screen) = up_on_terminal(&bench, &[], "x\n");
    assert_ne!(code, Some(0), "{screen}");
    contains(
        &screen,
        &["1. ", "2. ", "Which file?", "broker-gen up FILE"],
    );
    let (code, screen) = up_on_terminal(&bench, &[], "2\nn\n");
    assert_eq!(code, Some(0), "{screen}");
    contains(&screen, &["is a file of Cursor", "Start 1 server"]);
}

#[test]
fn server_that_fails_is_left_out_and_the_others_are_connected() {
    let bench = folder(2);
    bench.script("s1", &json!({"start_exit": 3}));
    let output = up(
        &bench,
        &[
            "mcp.json",
            "--from",
            "cursor",
            "--yes",
            "--write",
            "--replace",
        ],
    );
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    contains(
        &output.stderr,
        &["/s1", "added `broker`", "took `s0` out of it"],
    );
    let document: Value = serde_json::from_str(&bench.read("mcp.json")).expect("JSON");
    let servers = document["mcpServers"].as_object().expect("an object");
    // The server that the broker does not serve stays.
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["broker", "s1"]);
}

#[test]
fn up_without_a_server_that_starts_leaves_no_config() {
    let bench = folder(1);
    bench.script("s0", &json!({"start_exit": 3}));
    let output = up(&bench, &["mcp.json", "--yes"]);
    assert_ne!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(files(&bench), ["mcp.json"], "{}", output.stderr);
}
