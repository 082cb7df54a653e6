//! The broker of this package with the smoke config: a first run, as the README shows it.

use std::fs;
use std::path::Path;

use harness::{Broker, DirectServer, Output, Run, binary};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn program() -> Run {
    Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker"))).folder(root())
}

fn start() -> Broker {
    binary("toolbox-mcp");
    Broker::start_ready(program().args(["127.0.0.1:0", "smoke_config.json"]))
}

fn desc(broker: &Broker, path: &str) -> Value {
    let response = broker.post("/meta_desc", &json!({"path": path}));
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn config() -> Value {
    let text = fs::read_to_string(root().join("smoke_config.json")).expect("the config");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn smoke_tree_has_the_nodes_and_tools_of_the_config() {
    let broker = start();
    let top = broker.post("/meta_tree", &json!({})).json();
    assert_eq!(
        top,
        json!({
            "path": "/", "type": "node", "summary": "All tools of this broker",
            "children": [
                {"path": "/text", "type": "node", "summary": "Work on text and JSON"},
                {"path": "/util", "type": "node", "summary": "Times, encodings and hashes"},
            ],
        })
    );
    let text = broker.post("/meta_tree", &json!({"path": "/text"})).json();
    let paths: Vec<_> = text["children"]
        .as_array()
        .expect("children")
        .iter()
        .map(|child| child["path"].as_str().expect("a path"))
        .collect();
    assert_eq!(
        paths,
        ["/text/format", "/text/text_case", "/text/text_lorem",],
        "the filter, and the alias in its place"
    );
    let util = broker.post("/meta_tree", &json!({"path": "/util"})).text();
    assert!(
        util.contains("/util/hash_text") && !util.contains("json_format"),
        "a deny wins: {util}"
    );
    let whole = broker.post("/meta_tree", &json!({"depth": 2})).json();
    assert_eq!(whole["children"][0], text);
}

#[test]
fn smoke_description_has_overrides_and_the_alias() {
    let broker = start();
    let text = desc(&broker, "/text");
    assert!(
        text["description"]
            .as_str()
            .expect("text")
            .starts_with("Tools that change text"),
        "{text}"
    );
    let lorem = desc(&broker, "/text/text_lorem");
    assert_eq!(lorem["summary"], "Filler text, as long as you like");
    assert_eq!(
        lorem["description"],
        "Writes paragraphs of filler text. The result can be long: 200 paragraphs are about 100 kB."
    );
    let format = desc(&broker, "/text/format");
    assert_eq!(format["summary"], "Sort and format JSON");
    let hash = desc(&broker, "/util/hash_text");
    assert!(hash["output_schema"].is_object(), "{hash}");
    let direct = DirectServer::start(Run::new(&binary("toolbox-mcp"))).tools();
    let upstream = |name: &str| {
        let found = direct.iter().find(|tool| tool["name"] == name);
        found.expect("the tool")
    };
    assert_eq!(hash["output_schema"], upstream("hash_text")["outputSchema"]);
    let upstream = upstream("json_format");
    assert_eq!(format["args_schema"], upstream["inputSchema"]);
    assert_eq!(
        format["description"], upstream["description"],
        "only the summary is overridden"
    );
    assert_eq!(
        broker.call("/text/json_format", json!({})).code(),
        "path_not_found",
        "the alias is the only name"
    );
}

#[test]
fn smoke_examples_can_be_called() {
    let broker = start();
    let mut called = 0;
    for node in config()["tree"].as_array().expect("nodes") {
        let source = &node["source"];
        for (name, said) in source["tool_overrides"].as_object().expect("overrides") {
            let Some(example) = said.get("example_args") else {
                continue;
            };
            let leaf = source["path_aliases"][name].as_str().unwrap_or(name);
            let path = format!("{}/{leaf}", node["path"].as_str().expect("a path"));
            assert_eq!(&desc(&broker, &path)["example_args"], example, "{path}");
            assert_ne!(
                broker.result(&path, example.clone())["isError"],
                true,
                "{path}"
            );
            called += 1;
        }
    }
    assert!(called >= 3, "{called} examples");
}

#[test]
fn smoke_call_results_equal_those_of_the_server() {
    let broker = start();
    let mut server = DirectServer::start(Run::new(&binary("toolbox-mcp")));
    for (path, tool, args, content) in [
        (
            "/text/text_case",
            "text_case",
            json!({"text": "hello world", "to": "title"}),
            "Hello World",
        ),
        (
            "/util/hash_text",
            "hash_text",
            json!({"text": "hello", "algorithm": "sha256"}),
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        ),
        (
            "/text/format",
            "json_format",
            json!({"text": "{\"b\": 1, \"a\": {}}", "style": "compact"}),
            r#"{\"a\":{},\"b\":1}"#,
        ),
        ("/text/text_case", "text_case", json!({}), ""),
        (
            "/util/hex",
            "hex",
            json!({"text": "hi", "direction": "encode"}),
            "6869",
        ),
    ] {
        let response = broker.call(path, args.clone());
        if content.is_empty() {
            assert_eq!(
                (response.status, response.code().as_str()),
                (422, "args_invalid")
            );
            continue;
        }
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        let reply = response.json();
        assert_eq!(reply["path"], path);
        assert_eq!(
            Some(&reply["result"]),
            server.call(tool, &args).get("result"),
            "{path}"
        );
        assert!(reply["result"].to_string().contains(content), "{reply}");
    }
}

#[test]
fn smoke_tool_error_and_rpc_error_are_distinguished() {
    let broker = start();
    let tool = broker.call("/util/fail", json!({"message": "no paper"}));
    assert_eq!(tool.status, 200, "a tool's own failure is a result");
    let result = tool.json()["result"].clone();
    assert_eq!(
        (&result["isError"], &result["content"][0]["text"]),
        (&json!(true), &json!("no paper"))
    );
    let rpc = broker.call("/util/fail", json!({"message": "no paper", "kind": "rpc"}));
    assert_eq!((rpc.status, rpc.code().as_str()), (502, "source_error"));
    assert_eq!(
        rpc.json()["error"]["details"]["rpc"],
        json!({"code": 1000, "message": "no paper"})
    );
    let wrong = broker.call("/util/fail", json!({"message": "m", "kind": "other"}));
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "args_invalid"));
    assert_eq!(
        wrong.json()["error"]["details"]["errors"][0]["pointer"],
        "/kind"
    );
}

#[test]
fn smoke_long_and_slow_answers_arrive_whole() {
    let broker = start();
    let long = broker.result("/text/text_lorem", json!({"paragraphs": 200}));
    let text = long["content"][0]["text"].as_str().expect("text");
    assert!(
        text.len() > 80_000 && text.split("\n\n").count() == 200,
        "{} bytes",
        text.len()
    );
    let slow = broker.result(
        "/util/slow_echo",
        json!({"text": "later", "milliseconds": 50}),
    );
    assert_eq!(slow["content"][0]["text"], "later");
}

#[test]
fn smoke_version_and_tree_output_starts_nothing() {
    let run = |arg: &str| -> Output {
        // Without a path no server could be found.
        let output = program().env("PATH", "").args([arg]).output();
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{arg}"
        );
        output
    };
    let version = run("--version").stdout;
    let digest = version
        .lines()
        .nth(1)
        .and_then(|line| line.strip_prefix("catalog "))
        .unwrap_or_else(|| panic!("{version}"));
    let lines: Vec<&str> = version.lines().collect();
    assert_eq!(lines.len(), 3, "{version}");
    assert_eq!(lines[0], concat!("mcp-broker ", env!("CARGO_PKG_VERSION")));
    assert!(
        lines[2].starts_with("built from smoke_config.json, config sha256/1:"),
        "{version}"
    );
    assert!(digest.starts_with("sha256/1:"), "{digest}");
    let tree = run("--dump-tree").stdout;
    for part in [
        "\n  text/ ",
        "\n    format ",
        "Sort and format JSON",
        "\n    slow_echo ",
        "8 tools of 2 sources",
        digest,
    ] {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    let broker = start();
    assert_eq!(broker.get("/healthz").json()["catalog_digest"], digest);
}

#[test]
fn smoke_servers_match_the_lock() {
    let output = Run::new(&binary("broker-gen"))
        .folder(root())
        .args(["check"])
        .output();
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "summary: 8 same\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn readme_commands_print_the_shown_output() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let shown = curl_lines(&readme);
    for tool in ["meta_tree", "meta_desc", "meta_call"] {
        let is_shown = shown.iter().any(|(commands, _)| commands.contains(tool));
        assert!(is_shown, "README.md shows a call of {tool} with its output");
    }
    let broker = start();
    for (commands, expected) in shown {
        let script = commands
            .replace("localhost:8100", "127.0.0.1:8100")
            .replace("127.0.0.1:8100", broker.address());
        let output = Run::new(Path::new("/bin/sh"))
            .args(["-ec", &script])
            .output();
        assert_eq!(output.code, Some(0), "{commands}\n{}", output.stderr);
        assert_eq!(output.stdout.trim_end(), expected.trim_end(), "{commands}");
    }
}

/// Each `sh` block that calls `curl`, with the text of the block right after it.
fn curl_lines(readme: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in readme.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.trim().to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of README.md does not end");
    let pairs = blocks.windows(2).filter_map(|pair| {
        let ((kind, commands), (next, output)) = (&pair[0], &pair[1]);
        let commands: Vec<_> = commands
            .lines()
            .map(|line| line.strip_prefix("$ ").unwrap_or(line))
            .collect();
        let calls = kind == "sh" && commands.iter().any(|line| line.contains("curl "));
        (calls && matches!(next.as_str(), "json" | "text"))
            .then(|| (commands.join("\n"), output.clone()))
    });
    pairs.collect()
}

#[test]
fn readme_blocks_are_found_with_their_output() {
    let readme = "```sh\ncargo build\n```\n```sh\n$ curl a \\\n  -d b\n```\ngives\n```json\n{}\n```\n```sh\ncurl c\n```\n```text\nd\n```\n```sh\ncurl e\n```\n";
    let found = curl_lines(readme);
    let found: Vec<_> = found
        .iter()
        .map(|(commands, output)| (commands.as_str(), output.as_str()))
        .collect();
    assert_eq!(found, [("curl a \\\n  -d b", "{}\n"), ("curl c", "d\n")]);
}
