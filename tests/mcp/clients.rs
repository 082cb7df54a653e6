//! The official clients of both generations, TypeScript and Python, against the broker over standard input
//! and output and over HTTP: the actions of `tests/clients` with each, and their results in the client.

mod jobs;
mod long_answers;
mod odd_tools;
mod outcomes;
mod search_mode;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use harness::{
    Bench, Broker, DirectServer, Run, binary, json_text, official_clients, official_python,
    private_node, tree_paths,
};
use serde_json::{Value, json};

use crate::conformance;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Every client: its program, its script, its mode, the revision that it shows.
const CLIENTS: [(&str, &str, &str, Option<&str>); 6] = [
    ("node", "typescript_v1.mjs", "legacy", None),
    ("node", "typescript_v2.mjs", "legacy", Some(LEGACY)),
    ("node", "typescript_v2.mjs", "auto", Some(MODERN)),
    ("v1", "python_v1.py", "legacy", Some(LEGACY)),
    ("v2", "python_v2.py", "legacy", Some(LEGACY)),
    ("v2", "python_v2.py", "auto", Some(MODERN)),
];

/// The results in the client; `rest` has the call, if it makes only one, and the server.
fn client(program: &str, script: &str, mode: &str, rest: &[&OsStr]) -> Value {
    let program = match program {
        "node" => PathBuf::from("node"),
        generation => official_python(generation),
    };
    let output = Run::new(&program)
        .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args([&official_clients().join(script), Path::new(mode)])
        .args(rest)
        .output();
    assert_eq!(output.code, Some(0), "{script} {mode}: {}", output.stderr);
    serde_json::from_str(&output.stdout).expect("one JSON object")
}

/// The results in the client on the smoke config over standard input and output.
fn seen(program: &str, script: &str, mode: &str) -> Value {
    let broker = binary("mcp-broker");
    let args = ["stdio", "smoke_config.json"].map(OsStr::new);
    let words = [&[broker.as_os_str()][..], &args].concat();
    client(program, script, mode, &words)
}

fn hash(text: &str) -> Value {
    let mut direct = DirectServer::start(Run::new(&binary("toolbox-mcp")));
    direct.call("hash_text", &json!({ "text": text }))["result"]["structuredContent"].clone()
}

fn check(seen: &Value, protocol: Option<&str>) {
    assert_eq!(seen["protocol"].as_str(), protocol);
    assert_eq!(seen["server"]["name"], "mcp-broker");
    let instructions = seen["instructions"].as_str().expect("a text");
    assert!(instructions.contains("meta_tree"), "{instructions}");
    let tools = seen["tools"].as_array().expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["meta_tree", "meta_desc", "meta_call"]);

    let areas = tree_paths(&seen["tree"]);
    assert!(areas.starts_with(&["/text".to_owned()]) && areas.contains(&"/util".to_owned()));
    let described = json_text(&seen["description"]);
    for step in ["tree", "description", "mistake"] {
        // Clients that show structured content in place of the text show the text too.
        assert!(seen[step]["structuredContent"].is_null(), "{step}");
    }
    assert_eq!(described["args_schema"]["required"], json!(["text"]));

    for (step, text) in [("call", "hello"), ("beside", "beside"), ("after", "after")] {
        assert_eq!(
            seen[step]["structuredContent"],
            hash(text),
            "{step}: {seen}"
        );
    }
    assert_eq!(seen["mistake"]["isError"], true);
    let error = seen["mistake"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    let error: Value = serde_json::from_str(error).expect("an error object");
    assert_eq!(error["code"], "args_invalid");
    assert_eq!(seen["failure"]["isError"], true);
    assert_eq!(seen["failure"]["content"][0]["text"], "planned");
    assert_eq!(seen["unknown"]["code"], -32602);
    assert_eq!(seen["cancelled"], "cancelled");
}

/// Seven sources, the last of which needs almost 4 s to start; each has the tool `t`.
fn slow_sources() -> Bench {
    let bench = Bench::new();
    let delays = ["0", "1", "1.5", "2", "2.5", "3", "3.5"];
    let names: Vec<_> = (0..delays.len()).map(|at| format!("s{at}")).collect();
    bench.configure(names.iter().map(|name| (name.as_str(), json!({}))));
    let tools = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    for name in &names {
        bench.script(name, &json!({ "tools": tools }));
    }
    bench.lock();
    for (name, delay) in names.iter().zip(delays) {
        let script = json!({"tools": tools, "start_shell": format!("sleep {delay}")});
        bench.script(name, &script);
    }
    bench
}

/// Runs a script of the frameworks for agents, which calls the slowest of [`slow_sources`].
fn framework(script: &str, count: &str) -> String {
    let bench = slow_sources();
    let program = official_python("agents");
    let config = bench.path("c.json");
    let generator = binary("broker-gen");
    // The sources name their program without a folder.
    let beside = generator.parent().expect("it is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Run::new(&program)
        .env("PATH", format!("{beside}:{path}"))
        .args([&official_clients().join(script), Path::new(count)])
        .args([Path::new("/s6/t"), &generator])
        .args(["serve", "stdio", "--config"])
        .args([&config])
        .output();
    assert_eq!(output.code, Some(0), "{script}: {}", output.stderr);
    output.stdout
}

#[test]
fn first_call_of_the_agents_sdk_succeeds_while_seven_servers_start() {
    let starts = std::env::var("MCP_BROKER_AGENT_STARTS");
    let starts = starts.as_deref().unwrap_or("3");
    let said = framework("openai_agents.py", starts);
    assert_eq!(said, format!("{starts} starts\n"));
}

#[test]
fn agents_sdk_with_strict_schemas_calls_every_meta_tool() {
    let output = Run::new(&official_python("agents"))
        .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args([&official_clients().join("openai_strict.py")])
        .args([binary("mcp-broker")])
        .args(["stdio", "smoke_config.json"])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let mut lines = output.stdout.lines();
    // The conversion would close `args`, so that no argument could be sent.
    let kinds: Vec<_> = lines.by_ref().take(3).collect();
    assert_eq!(
        kinds,
        [
            "meta_tree strict",
            "meta_desc strict",
            "meta_call not converted"
        ]
    );
    let answers: Vec<[String; 2]> = lines
        .map(|line| serde_json::from_str(line).expect("a name and a text"))
        .collect();
    let text = |at: usize| answers[at][1].as_str();
    let first_line = |at: usize| text(at).lines().next().unwrap_or_default();
    assert!(
        first_line(0).starts_with("/util/hash_text  "),
        "{}",
        text(0)
    );
    assert!(
        text(0).contains("\nwarning: `depth` was not used"),
        "{}",
        text(0)
    );
    assert!(first_line(1).starts_with("/text/  "), "{}", text(1));
    assert!(first_line(2).starts_with("/util/fail  "), "{}", text(2));
    assert!(
        text(2).contains("\nwarning: `limit` was not used"),
        "{}",
        text(2)
    );
    let described: Value = serde_json::from_str(text(3)).expect("JSON");
    assert_eq!(described["path"], "/util/hash_text");
    let both: Value = serde_json::from_str(text(4)).expect("JSON");
    assert_eq!(both["entries"][1]["path"], "/util/hex");
    assert_eq!(both["warnings"].as_array().map(Vec::len), Some(1), "{both}");
    for at in [5, 6] {
        let result: Value = serde_json::from_str(text(at)).expect("JSON");
        assert_eq!(result, hash("a"));
    }
    assert_eq!(answers.len(), 7);
}

#[test]
fn every_call_of_the_langchain_adapters_succeeds_while_seven_servers_start() {
    assert_eq!(framework("langchain_adapters.py", "2"), "2 calls\n");
}

#[test]
fn typescript_client_of_the_first_generation_works() {
    check(&seen("node", "typescript_v1.mjs", "legacy"), None);
}

#[test]
fn typescript_client_of_the_second_generation_works() {
    check(&seen("node", "typescript_v2.mjs", "legacy"), Some(LEGACY));
    check(&seen("node", "typescript_v2.mjs", "auto"), Some(MODERN));
}

#[test]
fn python_client_of_the_first_generation_works() {
    check(&seen("v1", "python_v1.py", "legacy"), Some(LEGACY));
}

#[test]
fn python_client_of_the_second_generation_works() {
    check(&seen("v2", "python_v2.py", "legacy"), Some(LEGACY));
    check(&seen("v2", "python_v2.py", "auto"), Some(MODERN));
}

#[test]
fn every_client_works_over_http() {
    let program = Path::new(env!("CARGO_BIN_EXE_mcp-broker"));
    let run = Run::new(program).folder(Path::new(env!("CARGO_MANIFEST_DIR")));
    let broker = Broker::start_ready(run.args(["127.0.0.1:0", "smoke_config.json"]));
    let url = format!("http://{}/mcp", broker.address());
    for (program, script, mode, protocol) in CLIENTS {
        check(
            &client(program, script, mode, &[OsStr::new(&url)]),
            protocol,
        );
    }
}

#[test]
fn every_client_works_over_the_older_transport() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(folder.join("smoke_config.json")).expect("it is there");
    let mut config: Value = serde_json::from_str(&text).expect("it is JSON");
    config["surfaces"] = json!({"sse": true});
    let given = tempfile::NamedTempFile::new().expect("a file can be made");
    fs::write(given.path(), config.to_string()).expect("it can be written");
    let run = Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker"))).folder(folder);
    let args = [OsStr::new("127.0.0.1:0"), given.path().as_os_str()];
    let broker = Broker::start_ready(run.args(args));
    let url = format!("http://{}/sse", broker.address());
    let legacy = CLIENTS.iter().filter(|(_, _, mode, _)| *mode == "legacy");
    for (program, script, mode, protocol) in legacy {
        check(
            &client(program, script, mode, &[OsStr::new(&url)]),
            *protocol,
        );
    }
}

#[test]
fn python_client_of_the_first_generation_works_over_websocket() {
    let program = Path::new(env!("CARGO_BIN_EXE_mcp-broker"));
    let run = Run::new(program).folder(Path::new(env!("CARGO_MANIFEST_DIR")));
    let broker = Broker::start_ready(run.args(["127.0.0.1:0", "smoke_config.json"]));
    let url = format!("ws://{}/ws/mcp", broker.address());
    let seen = client("v1", "python_v1.py", "legacy", &[OsStr::new(&url)]);
    check(&seen, Some(LEGACY));
}

/// A broker whose clients see the tools of one server by flat names.
fn direct_broker() -> (Bench, Broker) {
    let bench = Bench::new();
    let source = json!({"command": [binary("toolbox-mcp")]});
    let broker = start_direct(&bench, "/util", &source);
    (bench, broker)
}

/// Locks and starts a broker whose clients see the tools of `source` by flat names.
fn start_direct(bench: &Bench, path: &str, source: &Value) -> Broker {
    let config = json!({
        "tree": [{"path": path, "type": "node", "source": source}],
        "mcp": {"mode": "direct"},
    });
    bench.write("c.json", &config.to_string());
    let broker_gen = || Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let locked = broker_gen().args(["lock", "--config", "c.json"]).output();
    assert_eq!(locked.code, Some(0), "{}{}", locked.stdout, locked.stderr);
    Broker::start_ready(broker_gen().args(["serve", "0", "--config", "c.json"]))
}

/// The result without what each server says of itself.
fn without_server_info(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove("io.modelcontextprotocol/serverInfo");
        if meta.is_empty() {
            result["_meta"].take();
        }
    }
    let object = result.as_object_mut().expect("an object");
    object.retain(|_, value| !value.is_null());
    result
}

fn tool<'a>(seen: &'a Value, name: &str) -> &'a Value {
    let tools = seen["tools"].as_array().expect("a list");
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {seen}"))
}

#[test]
fn every_client_gets_the_result_of_a_direct_call_by_a_flat_name() {
    let (_bench, broker) = direct_broker();
    let url = format!("http://{}/mcp", broker.address());
    let server = binary("toolbox-mcp");
    for (program, script, mode, protocol) in CLIENTS {
        for (name, args) in [
            ("hash_text", json!({"text": "ünï\u{2028}\n"})),
            ("fail", json!({"kind": "tool", "message": "planned"})),
        ] {
            let args = args.to_string();
            let through = |name: &str, server: &OsStr| {
                let rest = [OsStr::new("--call"), OsStr::new(name), OsStr::new(&args)];
                client(program, script, mode, &[&rest[..], &[server]].concat())
            };
            let flat = format!("util-{name}");
            let seen = through(&flat, OsStr::new(&url));
            let direct = through(name, server.as_os_str());
            assert_eq!(seen["protocol"].as_str(), protocol, "{script}");
            assert_eq!(
                without_server_info(&seen["call"]),
                without_server_info(&direct["call"]),
                "{script} {mode}"
            );
            assert_eq!(
                tool(&seen, &flat)["inputSchema"],
                tool(&direct, name)["inputSchema"],
                "{script} {mode}"
            );
        }
    }
}

/// The output of the Inspector for a server over HTTP. It keeps settings of its user in `home`.
fn inspect(url: &str, home: &Path, args: &[&str]) -> Value {
    let program = conformance::folder()
        .join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let output = Run::new(&private_node())
        .env("HOME", home)
        .args([&program])
        .args(["--cli", url, "--transport", "http"])
        .args(args)
        .output();
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    serde_json::from_str(&output.stdout).expect("JSON")
}

#[test]
fn inspector_lists_and_calls_tools_over_http() {
    let (bench, broker) = direct_broker();
    let url = format!("http://{}/mcp", broker.address());
    let inspect = |args: &[&str]| inspect(&url, &bench.path(""), args);
    let listed = inspect(&["--method", "tools/list"]);
    assert_eq!(tool(&listed, "util-hash_text")["name"], "util-hash_text");
    let call = ["--method", "tools/call", "--tool-name", "util-hash_text"];
    let result = inspect(&[&call[..], &["--tool-arg", "text=hello"]].concat());
    assert_eq!(result["structuredContent"], hash("hello"));
}

#[test]
fn inspector_searches_and_calls_over_http_with_both_routings() {
    for routing in ["CALL_TOOL", "DYNAMIC"] {
        let bench = Bench::new();
        let program = Path::new(env!("CARGO_BIN_EXE_mcp-broker"));
        let run = Run::new(program).args(["127.0.0.1:0", "--routing", routing]);
        let broker = Broker::start_ready(run);
        let url = format!("http://{}/mcp/search", broker.address());
        let call = |name: &str, arguments: &[&str]| {
            let call = ["--method", "tools/call", "--tool-name", name];
            let arguments = arguments.iter().flat_map(|one| ["--tool-arg", one]);
            let args: Vec<_> = call.into_iter().chain(arguments).collect();
            inspect(&url, &bench.path(""), &args)
        };
        let found = call("retrieve_tools", &["query=hash text"]);
        let is_dynamic = routing == "DYNAMIC";
        let hit = json_text(&found)["tools"][0].clone();
        assert_eq!(hit["name"], "util-hash_text");
        assert_eq!(hit["registered"], is_dynamic);
        // Each run of the Inspector is a session, which has found nothing yet.
        let listed = inspect(&url, &bench.path(""), &["--method", "tools/list"]);
        let count = listed["tools"].as_array().map(Vec::len);
        assert_eq!(count, Some(if is_dynamic { 1 } else { 2 }));
        if !is_dynamic {
            let arguments = r#"arguments={"text":"hello"}"#;
            let result = call("call_tool", &["name=util-hash_text", arguments]);
            assert_eq!(result["structuredContent"], hash("hello"));
        }
    }
}
