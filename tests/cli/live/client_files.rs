//! Files from reports of people, with the program itself: `import` and `lock` read each as its client does.

use std::fs;
use std::path::Path;

use harness::Bench;
use serde_json::{Value, json};

/// A server with one tool.
const SERVER: &str = r#"import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    if "id" not in message:
        continue
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "none"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;

/// A folder with the server and a copy of a file.
fn folder(file: &str) -> Bench {
    let bench = Bench::new();
    bench.write("server.py", SERVER);
    let from = "broker-gen/src/cli/import/tests/field";
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(from).join(file);
    bench.write(file, &fs::read_to_string(from).expect("the file is there"));
    bench
}

/// The paths of the sources in the config that `import` makes.
fn imported(bench: &Bench, file: &str) -> Vec<String> {
    bench.fine(&["import", file, "-o", "imported.json"]);
    let config: Value = serde_json::from_str(&bench.read("imported.json")).expect("a config");
    assert_eq!(config["coerce"], json!(true));
    let nodes = config["tree"].as_array().expect("a list").iter();
    nodes
        .map(|node| node["path"].as_str().expect("a path").to_owned())
        .collect()
}

#[test]
fn file_of_a_client_with_a_local_server_is_locked_and_imported() {
    for (file, paths) in [
        ("gemini_settings.json", &["/a"][..]),
        ("copilot.json", &["/a"]),
        ("line.json", &["/a"]),
        ("amazonq.json", &["/a"]),
        ("opencode.json", &["/a"]),
        ("zed.json", &["/a", "/b"]),
    ] {
        let bench = folder(file);
        assert_eq!(imported(&bench, file), paths, "{file}");
        for config in [file, "imported.json"] {
            bench.fine(&["lock", "--config", config]);
            let lock = config.replace(".json", ".lock.json");
            let lock: Value = serde_json::from_str(&bench.read(&lock)).expect("a lock");
            let exposed = &lock["sources"][0]["exposed"];
            assert_eq!(exposed[0]["upstream_name"], "t", "{config}: {lock}");
        }
    }
}

#[test]
fn file_of_a_client_in_another_format_is_imported() {
    for (file, paths) in [
        ("gemini_dollar.json", &["/gh"][..]),
        ("goose.yaml", &["/gh"]),
        ("librechat.yaml", &["/everything", "/local"]),
    ] {
        let bench = folder(file);
        assert_eq!(imported(&bench, file), paths, "{file}");
    }
}
