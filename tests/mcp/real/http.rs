//! Five public MCP servers behind one broker: results equal those of direct calls.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Broker, DirectServer, Run, binary};
use serde_json::{Value, json};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real-broker"))
}

/// The folder of the servers; fails if `install` has not installed the pinned versions.
fn servers() -> PathBuf {
    let servers = folder().join("servers");
    let pins = "cat package-lock.json requirements.txt ../install | cksum";
    let pins = Run::new(Path::new("/bin/sh"))
        .folder(&servers)
        .args(["-c", pins])
        .output();
    let installed = fs::read_to_string(servers.join("installed")).unwrap_or_default();
    let programs = [
        "node_modules/.bin/mcp-server-everything",
        "node_modules/.bin/mcp-server-filesystem",
        "node_modules/.bin/mcp-server-memory",
        "venv/bin/mcp-server-git",
        "venv/bin/mcp-server-time",
    ];
    let all = programs
        .iter()
        .all(|program| servers.join(program).exists());
    assert!(
        all && !installed.is_empty() && installed == pins.stdout,
        "the real servers are not installed, or not as they are pinned; run tests/real-broker/install"
    );
    servers
}

/// A folder for one test, with the files of the servers.
struct ServerFiles {
    folder: PathBuf,
}

impl ServerFiles {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("real-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let files = Self {
            folder: folder.canonicalize().expect("it exists"),
        };
        files.lay_out();
        files
    }

    /// The files of the file server before every call.
    fn lay_out(&self) {
        let data = self.data();
        if data.exists() {
            fs::remove_dir_all(&data).expect("removed");
        }
        fs::create_dir_all(data.join("sub/deep")).expect("a folder");
        for (name, text) in [
            ("a.txt", "one\ntwo\nthree\n"),
            ("b.json", "{\"k\": 1}\n"),
            ("sub/c.txt", "ünï\u{2028}\n"),
            ("sub/deep/d.md", "# d\n"),
        ] {
            fs::write(data.join(name), text).expect("written");
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn memory(&self, whose: &str) -> PathBuf {
        self.folder.join(format!("memory-{whose}.jsonl"))
    }

    /// A repository with two commits, a change, and a staged file, at fixed times.
    fn repository(&self) -> String {
        let path = self
            .folder
            .join("repository")
            .to_string_lossy()
            .into_owned();
        let script = "git init -q -b main \"$0\" && cd \"$0\" && \
            printf 'one\\n' > a.txt && git add . && git commit -q -m 'First' && \
            printf 'one\\ntwo\\n' > a.txt && git commit -q -a -m 'Second: add two' && git branch other HEAD~1 && \
            printf 'three\\n' >> a.txt && printf 'new\\n' > b.txt && git add b.txt";
        let mut run = Run::new(Path::new("/bin/sh")).args(["-c", script, &path]);
        for (name, value) in [
            ("GIT_AUTHOR_NAME", "Ada"),
            ("GIT_AUTHOR_EMAIL", "ada@example.org"),
            ("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z"),
            ("GIT_COMMITTER_NAME", "Ada"),
            ("GIT_COMMITTER_EMAIL", "ada@example.org"),
            ("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ] {
            run = run.env(name, value);
        }
        let output = run.output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        path
    }

    /// With the variables that the config needs.
    fn run(&self, program: &Path) -> Run {
        Run::new(program)
            .folder(folder())
            .env("REAL_DATA", self.data())
            .env("REAL_MEMORY", self.memory("broker"))
    }

    fn broker(&self) -> Broker {
        servers();
        let run = self.run(&binary("broker-gen"));
        Broker::start_ready(run.args(["serve", "127.0.0.1:0", "--config", "config.json"]))
    }
}

impl Drop for ServerFiles {
    fn drop(&mut self) {
        // The rest is below the target folder and does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn direct(program: &str) -> Run {
    Run::new(&servers().join(program)).folder(folder())
}

/// Makes a call through the broker and directly; returns the common result.
#[track_caller]
fn same(
    broker: &Broker,
    server: &mut DirectServer,
    (path, tool): (&str, &str),
    args: Value,
) -> Value {
    let through = broker.result(path, args.clone());
    let answer = server.call(tool, &args);
    assert_eq!(
        Some(&through),
        answer.get("result"),
        "{path} {args}: {answer}"
    );
    through
}

/// One broker for all, since the servers take seconds to start.
#[test]
fn real_server_results_through_the_broker_equal_direct_ones() {
    let files = ServerFiles::new("calls");
    let broker = files.broker();
    both_eras_are_served_as_locked(&broker);
    files_are_files(&broker, &files);
    a_graph_is_remembered(&broker, &files);
    the_reference_server_comes_through(&broker);
    git_is_read_under_its_aliases(&broker, &files);
    times_are_converted(&broker);
    let children = harness::children_of(broker.pid());
    assert!(children.len() >= 5, "{children:?}");
    let (status, log) = broker.terminate();
    assert!(
        status.success() && !log.contains("drift"),
        "{status}: {log}"
    );
    harness::wait_until("no server is left", || {
        !children.iter().any(|pid| harness::is_alive(*pid))
    });
}

fn both_eras_are_served_as_locked(broker: &Broker) {
    let lock: Value = serde_json::from_str(
        &fs::read_to_string(folder().join("config.lock.json")).expect("a lock"),
    )
    .expect("JSON");
    let mut eras = Vec::new();
    for source in lock["sources"].as_array().expect("sources") {
        let path = source["path"].as_str().expect("a path");
        eras.push((
            path,
            source["protocol_version"].as_str().expect("a revision"),
        ));
        let seen = broker.source(path);
        assert_eq!(
            (&seen["state"], &seen["withdrawn"]),
            (&json!("ready"), &json!(0)),
            "{seen}"
        );
        let exposed = source["exposed"].as_array().expect("tools");
        assert_eq!(seen["tools"], exposed.len());
        for tool in exposed {
            let desc = broker.post("/meta_desc", &json!({"path": format!("{path}/{}", tool["exposed_name"].as_str().expect("a name"))})).json();
            assert_eq!(desc["args_schema"], tool["raw"]["inputSchema"], "{desc}");
            assert_eq!(desc["digest"], tool["digests"]["whole"], "{desc}");
        }
    }
    let wanted = [
        ("/dev/git", "2026-07-28"),
        ("/dev/time", "2026-07-28"),
        ("/everything", "2025-11-25"),
        ("/fs", "2025-11-25"),
        ("/memory", "2025-11-25"),
    ];
    assert_eq!(eras, wanted);
}

#[test]
fn real_servers_match_the_lock() {
    let files = ServerFiles::new("check");
    servers();
    let config = folder().join("config.json");
    let run =
        files
            .run(&binary("broker-gen"))
            .args(["check", "--config", &config.to_string_lossy()]);
    let output = run.output();
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(output.stdout, "summary: 42 same\n");
}

fn files_are_files(broker: &Broker, files: &ServerFiles) {
    let mut server =
        DirectServer::start(direct("node_modules/.bin/mcp-server-filesystem").args([files.data()]));
    assert!(!server.is_modern());
    let at = |name: &str| files.data().join(name).to_string_lossy().into_owned();
    for (tool, args) in [
        ("read_text_file", json!({"path": at("a.txt")})),
        ("read_text_file", json!({"path": at("a.txt"), "head": 2})),
        ("read_text_file", json!({"path": at("sub/c.txt")})),
        (
            "read_multiple_files",
            json!({"paths": [at("a.txt"), at("b.json"), at("none")]}),
        ),
        ("read_media_file", json!({"path": at("b.json")})),
        ("list_directory", json!({"path": at("")})),
        (
            "list_directory_with_sizes",
            json!({"path": at(""), "sortBy": "size"}),
        ),
        ("directory_tree", json!({"path": at("")})),
        (
            "search_files",
            json!({"path": at(""), "pattern": "**/*.txt"}),
        ),
        ("list_allowed_directories", json!({})),
        (
            "edit_file",
            json!({"path": at("a.txt"), "edits": [{"oldText": "two", "newText": "2"}], "dryRun": true}),
        ),
        ("create_directory", json!({"path": at("made")})),
        // A tool's own failure is a result.
        ("read_text_file", json!({"path": at("none")})),
        ("read_text_file", json!({"path": "/etc/passwd"})),
    ] {
        same(broker, &mut server, (&format!("/fs/{tool}"), tool), args);
    }
    // A call that changes files starts with the same files both times.
    for (tool, args, changed, text) in [
        (
            "write_file",
            json!({"path": at("w.txt"), "content": "w\u{2028}\n"}),
            "w.txt",
            "w\u{2028}\n",
        ),
        (
            "edit_file",
            json!({"path": at("a.txt"), "edits": [{"oldText": "two", "newText": "2"}]}),
            "a.txt",
            "one\n2\nthree\n",
        ),
        (
            "move_file",
            json!({"source": at("a.txt"), "destination": at("moved.txt")}),
            "moved.txt",
            "one\ntwo\nthree\n",
        ),
    ] {
        files.lay_out();
        let through = broker.result(&format!("/fs/{tool}"), args.clone());
        assert_eq!(
            fs::read_to_string(at(changed)).expect("it is there"),
            text,
            "{tool}"
        );
        files.lay_out();
        assert_eq!(
            Some(&through),
            server.call(tool, &args).get("result"),
            "{tool}"
        );
    }
    let escape = broker.result("/fs/read_text_file", json!({"path": "/etc/passwd"}));
    assert_eq!(escape["isError"], true, "{escape}");
}

fn a_graph_is_remembered(broker: &Broker, files: &ServerFiles) {
    let run = direct("node_modules/.bin/mcp-server-memory")
        .env("MEMORY_FILE_PATH", files.memory("direct"));
    let mut server = DirectServer::start(run);
    let oslo = json!({"name": "Oslo", "entityType": "city", "observations": ["by a fjord"]});
    let norway = json!({"name": "Norge 🇳🇴", "entityType": "country", "observations": []});
    for (tool, args) in [
        ("read_graph", json!({})),
        ("create_entities", json!({"entities": [oslo, norway]})),
        ("create_entities", json!({"entities": [oslo]})),
        (
            "create_relations",
            json!({"relations": [{"from": "Oslo", "to": "Norge 🇳🇴", "relationType": "lies in"}]}),
        ),
        (
            "add_observations",
            json!({"observations": [{"entityName": "Oslo", "contents": ["has trams"]}]}),
        ),
        (
            "add_observations",
            json!({"observations": [{"entityName": "missing", "contents": ["x"]}]}),
        ),
        ("search_nodes", json!({"query": "fjord"})),
        ("open_nodes", json!({"names": ["Oslo"]})),
        (
            "delete_observations",
            json!({"deletions": [{"entityName": "Oslo", "observations": ["by a fjord"]}]}),
        ),
        (
            "delete_relations",
            json!({"relations": [{"from": "Oslo", "to": "Norge 🇳🇴", "relationType": "lies in"}]}),
        ),
        ("read_graph", json!({})),
        ("delete_entities", json!({"entityNames": ["Oslo"]})),
        ("read_graph", json!({})),
    ] {
        same(
            broker,
            &mut server,
            (&format!("/memory/{tool}"), tool),
            args,
        );
    }
    let kept = |whose: &str| fs::read(files.memory(whose)).expect("a file");
    assert_eq!(kept("broker"), kept("direct"));
    // A refused call does not reach the server.
    let refused = broker.call("/memory/create_entities", json!({"entities": "Oslo"}));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (422, "args_invalid")
    );
}

fn the_reference_server_comes_through(broker: &Broker) {
    let mut server = DirectServer::start(direct("node_modules/.bin/mcp-server-everything"));
    for (tool, args) in [
        ("echo", json!({"message": "héllo \u{2028} \"quoted\" 😀"})),
        ("get-sum", json!({"a": 2, "b": 40})),
        ("get-sum", json!({"a": 0.1, "b": 0.2})),
        ("get-structured-content", json!({"location": "New York"})),
        (
            "get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
        ),
        ("get-tiny-image", json!({})),
        ("get-resource-links", json!({"count": 3})),
    ] {
        let result = same(
            broker,
            &mut server,
            (&format!("/everything/{tool}"), tool),
            args,
        );
        assert_ne!(result["isError"], true, "{tool}: {result}");
    }
    let structured = broker.result(
        "/everything/get-structured-content",
        json!({"location": "Chicago"}),
    );
    assert!(
        structured["structuredContent"]["temperature"].is_number(),
        "{structured}"
    );
    let hidden = broker.call("/everything/toggle-simulated-logging", json!({}));
    assert_eq!(
        (hidden.status, hidden.code().as_str()),
        (404, "path_not_found")
    );
    let wrong = broker.call(
        "/everything/get-structured-content",
        json!({"location": "Paris"}),
    );
    assert_eq!(
        (wrong.status, wrong.code().as_str()),
        (422, "args_invalid"),
        "{}",
        wrong.text()
    );
}

fn git_is_read_under_its_aliases(broker: &Broker, files: &ServerFiles) {
    let repository = files.repository();
    let mut server = DirectServer::start(direct("venv/bin/mcp-server-git"));
    assert!(server.is_modern());
    let with = |more: Value| {
        let mut args = json!({"repo_path": repository});
        for (key, value) in more.as_object().expect("members") {
            args[key] = value.clone();
        }
        args
    };
    let mut said = String::new();
    for (path, tool, args) in [
        ("/dev/git/status", "git_status", json!({})),
        ("/dev/git/log", "git_log", json!({"max_count": 2})),
        ("/dev/git/git_diff", "git_diff", json!({"target": "HEAD~1"})),
        ("/dev/git/git_diff_unstaged", "git_diff_unstaged", json!({})),
        (
            "/dev/git/git_diff_staged",
            "git_diff_staged",
            json!({"context_lines": 1}),
        ),
        ("/dev/git/git_show", "git_show", json!({"revision": "HEAD"})),
        (
            "/dev/git/git_branch",
            "git_branch",
            json!({"branch_type": "local"}),
        ),
        (
            "/dev/git/git_show",
            "git_show",
            json!({"revision": "no-such-revision"}),
        ),
    ] {
        said.push_str(&same(broker, &mut server, (path, tool), with(args)).to_string());
    }
    for part in ["Second: add two", "+two", "+three", "b.txt", "other"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let hidden = broker.call("/dev/git/git_commit", with(json!({"message": "x"})));
    assert_eq!(
        (hidden.status, hidden.code().as_str()),
        (404, "path_not_found")
    );
}

fn times_are_converted(broker: &Broker) {
    let mut server =
        DirectServer::start(direct("venv/bin/mcp-server-time").args(["--local-timezone=UTC"]));
    for (zone, time) in [
        ("Asia/Tokyo", "16:30"),
        ("Asia/Kolkata", "00:00"),
        ("No/Where", "12:00"),
        ("UTC", "25:00"),
    ] {
        let args = json!({"source_timezone": "UTC", "time": time, "target_timezone": zone});
        same(
            broker,
            &mut server,
            ("/dev/time/convert_time", "convert_time"),
            args,
        );
    }
    let now = broker.result("/dev/time/get_current_time", json!({"timezone": "UTC"}));
    assert!(now.to_string().contains("UTC"), "{now}");
}
