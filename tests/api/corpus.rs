//! The recorded tools of 55 public servers: locked, compiled in, and served as they were recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use broker_schema::compile;
use harness::{Broker, Run, binary};
use serde_json::{Value, json};

const SERVERS: usize = 55;
const TOOLS: usize = 1455;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus-broker"))
}

fn read(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The tools as they were recorded, by the path on which they must be served.
fn recorded() -> BTreeMap<String, Value> {
    let mut tools = BTreeMap::new();
    let files = fs::read_dir(folder().join("servers")).expect("recordings");
    let files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    assert_eq!(files.len(), SERVERS);
    for file in files {
        let node = file
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        for tool in list(&read(&file)["tools"]) {
            tools.insert(format!("/{node}/{}", text(&tool["name"])), tool.clone());
        }
    }
    assert_eq!(tools.len(), TOOLS);
    tools
}

fn gen_run(args: &[&str]) -> harness::Output {
    Run::new(&binary("broker-gen")).args(args).output()
}

#[test]
fn recorded_tools_are_served_as_recorded() {
    let tools = recorded();
    let run = Run::new(&binary("corpus-broker")).folder(folder());
    let broker = Broker::start_ready(run.args(["127.0.0.1:0", "config.json"]));
    the_tree_has_every_tool(&broker, &tools);
    descriptions_are_what_was_recorded(&broker, &tools);
    calls_are_checked_against_the_recorded_schema(&broker, &tools);
    let ready = broker.get("/readyz").json();
    for source in list(&ready["sources"]) {
        assert_eq!(
            (&source["state"], &source["withdrawn"]),
            (&json!("ready"), &json!(0)),
            "{source}"
        );
    }
    assert_eq!(list(&ready["sources"]).len(), SERVERS);
    let (status, log) = broker.terminate();
    assert!(
        status.success() && !log.contains("ERROR"),
        "{status}: {log}"
    );
}

fn the_tree_has_every_tool(broker: &Broker, tools: &BTreeMap<String, Value>) {
    let whole = broker.post("/meta_tree", &json!({"depth": 16})).json();
    let mut found = BTreeSet::new();
    for node in list(&whole["children"]) {
        let path = text(&node["path"]);
        let alone = broker.post("/meta_tree", &json!({"path": path}));
        assert_eq!(alone.status, 200, "{path}");
        assert_eq!(
            alone.json()["children"],
            node["children"],
            "{path}: alone and within the whole"
        );
        let leaves: Vec<_> = list(&node["children"])
            .iter()
            .map(|child| text(&child["path"]).to_owned())
            .collect();
        assert!(leaves.is_sorted(), "{leaves:?}");
        for child in list(&node["children"]) {
            assert_eq!(child["type"], "tool");
            let summary = text(&child["summary"]);
            assert!(
                !summary.trim().is_empty() && !summary.contains('\n'),
                "{child}"
            );
        }
        found.extend(leaves);
    }
    assert!(
        found.iter().eq(tools.keys()),
        "the tree and the recordings differ"
    );
}

fn descriptions_are_what_was_recorded(broker: &Broker, tools: &BTreeMap<String, Value>) {
    let paths: Vec<&String> = tools.keys().collect();
    for batch in paths.chunks(50) {
        let reply = broker.post("/meta_desc", &json!({"paths": batch})).json();
        assert_eq!(list(&reply["entries"]).len(), batch.len());
        for (path, entry) in batch.iter().zip(list(&reply["entries"])) {
            let tool = &tools[*path];
            assert_eq!(entry["path"], **path);
            assert_eq!(entry.get("args_schema"), tool.get("inputSchema"), "{path}");
            assert_eq!(
                entry.get("output_schema"),
                tool.get("outputSchema"),
                "{path}"
            );
            assert_eq!(entry.get("annotations"), tool.get("annotations"), "{path}");
            let description = tool
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default();
            assert_eq!(entry["description"], description, "{path}");
        }
        let alone = broker.post("/meta_desc", &json!({"path": batch[0]}));
        assert_eq!(alone.json(), reply["entries"][0], "alone and in a batch");
    }
}

/// Calls each tool without arguments and with the minimum that its schema requires: the broker's
/// verdict is that of the schema, and valid arguments reach the server unchanged.
fn calls_are_checked_against_the_recorded_schema(broker: &Broker, tools: &BTreeMap<String, Value>) {
    let (mut passed, mut refused) = (BTreeSet::new(), 0);
    for (path, tool) in tools {
        let schema = &tool["inputSchema"];
        let validator = compile(schema).unwrap_or_else(|error| panic!("{path}: {error}"));
        let least = least(schema, schema);
        for args in [json!({}), least] {
            let response = broker.call(path, args.clone());
            if validator.is_valid(&args) {
                assert_eq!(response.status, 200, "{path} {args}: {}", response.text());
                let result = &response.json()["result"];
                let echoed: Value =
                    serde_json::from_str(text(&result["content"][0]["text"])).expect("an echo");
                assert_eq!(echoed, args, "{path}");
                passed.insert(path.split('/').nth(1).expect("a node").to_owned());
            } else {
                assert_eq!(
                    (response.status, response.code().as_str()),
                    (422, "args_invalid"),
                    "{path} {args}: {}",
                    response.text()
                );
                refused += 1;
            }
        }
    }
    assert_eq!(
        passed.len(),
        SERVERS,
        "a call reached every server: {passed:?}"
    );
    assert!(refused > 500, "{refused} calls were refused");
}

/// A value with the members that the schema requires; not always a valid one.
fn least(root: &Value, schema: &Value) -> Value {
    if let Some(target) = schema["$ref"]
        .as_str()
        .and_then(|to| root.pointer(to.strip_prefix('#')?))
    {
        return least(root, target);
    }
    for key in ["const", "default"] {
        if let Some(value) = schema.get(key) {
            return value.clone();
        }
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(first) = schema["anyOf"].get(0).or_else(|| schema["oneOf"].get(0)) {
        return least(root, first);
    }
    let kind = if schema["type"].is_array() {
        &schema["type"][0]
    } else {
        &schema["type"]
    };
    match kind.as_str() {
        Some("object") => {
            let required = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let member = |name: &str| (name.to_owned(), least(root, &schema["properties"][name]));
            Value::Object(required.map(member).collect())
        }
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(0);
            (0..count).map(|_| least(root, &schema["items"])).collect()
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => json!("x".repeat(schema["minLength"].as_u64().unwrap_or(1).max(1) as usize)),
    }
}

#[test]
fn recorded_schemas_compile() {
    let lock = read(&folder().join("config.lock.json"));
    let (mut inputs, mut outputs) = (0, 0);
    for source in list(&lock["sources"]) {
        for tool in list(&source["exposed"]) {
            for (key, count) in [("inputSchema", &mut inputs), ("outputSchema", &mut outputs)] {
                if let Some(schema) = tool["raw"].get(key) {
                    let place = format!("{} {} {key}", source["path"], tool["upstream_name"]);
                    if let Err(error) = compile(schema) {
                        panic!("{place}: {error}");
                    }
                    *count += 1;
                }
            }
        }
    }
    assert_eq!(inputs, TOOLS);
    assert!(outputs > 100, "{outputs} output schemas");
}

#[test]
fn recorded_servers_match_the_lock() {
    let config = folder().join("config.json");
    let output = gen_run(&["check", "--config", &config.to_string_lossy()]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "summary: 1455 same\n"),
        "{}",
        output.stderr
    );
}

/// A lock made from nothing in a folder of this name.
fn new_lock(name: &str) -> Vec<u8> {
    let copy =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&copy).expect("a folder");
    let config = copy.join("config.json");
    fs::copy(folder().join("config.json"), &config).expect("the config is copied");
    std::os::unix::fs::symlink(folder().join("servers"), copy.join("servers")).expect("a link");
    let output = gen_run(&["lock", "--config", &config.to_string_lossy()]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let lock = fs::read(copy.join("config.lock.json")).expect("a lock");
    fs::remove_dir_all(&copy).expect("the folder is removed");
    lock
}

#[test]
fn lock_made_in_another_folder_has_the_same_bytes() {
    let (one, other) = (new_lock("relock"), new_lock("a-longer-name-of-a-relock"));
    assert!(one == other, "two locks of one config differ");
    assert!(one.len() > 1 << 20, "{} bytes", one.len());
}
