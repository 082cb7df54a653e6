//! `broker-gen serve`: a lock that is served without a build, by the rules of the compiled broker.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use harness::{Broker, Chaos, Output, Run, binary, contains, is_alive, post, refusal, wait_until};
use serde_json::{Value, json};

mod embedder;
mod new_lock;
mod own_broker;
mod refused_stdio;
mod reload_while_starting;
mod second_start;
mod stale_access;
mod stale_sources;

const CONFIG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/chaos-broker/config.json"
);
const LOCK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/chaos-broker/config.lock.json"
);

/// A folder with the config of the chaos broker, as `given.json`, and its lock.
struct Bench {
    chaos: Chaos,
    config: String,
}

impl Bench {
    fn new() -> Self {
        let chaos = Chaos::new();
        let config = chaos.config(CONFIG, |_| {});
        chaos.file("given.lock.json", &read(LOCK));
        Self { chaos, config }
    }

    fn serve(&self, args: &[&str]) -> Run {
        let args = [&["serve", "--config", &self.config], args].concat();
        self.chaos.run("broker-gen", &args)
    }

    /// A start that ends by itself.
    fn refused(&self, args: &[&str], code: i32) -> Output {
        let output = self.serve(args).output();
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(code), ""),
            "{args:?}: {}",
            output.stderr
        );
        output
    }

    fn lock(&self) {
        let args = ["lock", "--config", &self.config];
        let locked = self.chaos.run("broker-gen", &args).output();
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    }

    /// The text of a file of the folder.
    fn chaos_text(&self, name: &str) -> String {
        fs::read_to_string(self.chaos.path().join(name)).expect("the file is there")
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        self.chaos.config(CONFIG, change);
    }
}

fn read(file: &str) -> String {
    fs::read_to_string(file).expect("the file is there")
}

#[test]
fn serve_serves_its_lock_until_a_sound_one_replaces_it() {
    let bench = Bench::new();
    let broker = Broker::start_ready(bench.serve(&["0"]));
    assert!(broker.address().starts_with("127.0.0.1:"), "a bare port");
    contains(
        &broker.stderr(),
        &[
            "reads the lock at start: a process that can write the file decides which tools are served",
            "catalog=sha256/1:",
            "given.json",
        ],
    );
    wait_until("the gate is open", || broker.stderr().contains("ready: "));
    assert_ne!(broker.guard(), broker.pid(), "it has a guard");
    broker.result("/a/echo", json!({"text": "x"}));
    let before = broker.post("/meta_tree", &json!({"depth": 3})).body;

    // A lock that is gone changes nothing.
    let lock = bench.chaos_text("given.lock.json");
    fs::remove_file(bench.chaos.path().join("given.lock.json")).expect("removed");
    broker.signal("HUP");
    wait_until("the reload is refused", || {
        broker.stderr().contains("not reloaded")
    });
    wait_until("the log has the cause", || {
        broker.stderr().contains("error[lock_missing]")
    });
    assert_eq!(broker.post("/meta_tree", &json!({"depth": 3})).body, before);

    // A setting that the lock does not cover restarts nothing.
    bench.chaos.file("given.lock.json", &lock);
    bench.change(|config| {
        config["tree"][0]["source"]["tool_overrides"]["echo"]["max_output_chars"] = json!(600);
    });
    wait_until("the reload has ended", || {
        broker
            .stderr()
            .contains("reloaded; every source keeps its process")
    });
    assert_eq!(broker.post("/meta_tree", &json!({"depth": 3})).body, before);
    let cut = broker.call("/a/echo", json!({"text": "x".repeat(1500)}));
    assert!(cut.json()["truncated"].is_object(), "{}", cut.text());

    // A change of the catalog that needs no new lock is taken as well.
    bench.change(|config| config["tree"][0]["summary"] = json!("Another text"));
    wait_until("the new catalog is served", || {
        let tree = broker.post("/meta_tree", &json!({})).text();
        tree.contains("Another text")
    });

    let pids = bench.chaos.pids("a");
    let (status, log) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!pids.into_iter().any(is_alive), "its servers have ended");
}

#[test]
fn serve_counts_what_it_serves() {
    let bench = Bench::new();
    // The third source is not required; it never comes.
    bench.chaos.script("optional", &json!({"start_exit": 9}));
    bench.chaos.script("b", &json!({"start_exit": 9}));
    let broker = Broker::start(bench.serve(&["127.0.0.1:0", "--ignore-broken-tool"]));
    wait_until("the start has an outcome", || {
        broker.stderr().contains("ready: ")
    });
    let tools = broker.source("/a")["tools"].as_u64().expect("a number");
    let all: u64 = ["/a", "/b", "/optional"]
        .iter()
        .filter_map(|path| broker.source(path)["tools"].as_u64())
        .sum();
    let counts = format!("ready: {tools} of {all} tools, 1 of 3 sources");
    assert!(broker.stderr().contains(&counts), "{}", broker.stderr());
}

#[test]
fn serve_compares_the_sources_with_the_lock() {
    let bench = Bench::new();
    bench.change(|config| {
        config["on_drift"] = json!("refuse");
        config["on_unreachable"] = json!("refuse");
    });
    let changed = json!({"tools": Chaos::tools_asking_more("echo")});
    bench.chaos.script("a", &changed);
    let drift = bench.refused(&["127.0.0.1:0"], 3);
    contains(&drift.stderr, &["input-required-added", "refused to start"]);
    let words = drift
        .stderr
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    // The path of the config is masked: a variable of the test has the folder.
    let remedy =
        "given.json --source /a --tool echo`, commit the lock and start `broker-gen serve` again";
    contains(&words, &[remedy]);
    assert!(!words.contains("build"), "{words}");
    bench.chaos.script("a", &json!({"start_exit": 9}));
    let failed = bench.refused(&["127.0.0.1:0"], 4);
    contains(
        &failed.stderr,
        &["exit_before_ready", "`broker-gen doctor`"],
    );
    assert!(
        !failed.stderr.contains("mcp-broker doctor"),
        "{}",
        failed.stderr
    );

    bench.chaos.script("a", &changed);
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0", "--ignore-broken-tool"]));
    let withdrawn = broker.call("/a/echo", json!({"text": "x"}));
    refusal(&withdrawn, 409, "tool_withdrawn");
    broker.result("/b/echo", json!({"text": "x"}));
}

#[test]
fn serve_withdraws_what_differs_from_the_lock_unless_audits_are_required() {
    let bench = Bench::new();
    let changed = json!({"tools": Chaos::tools_asking_more("echo")});
    bench.chaos.script("a", &changed);
    bench.chaos.script("b", &json!({"start_exit": 9}));
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
    let withdrawn = broker.call("/a/echo", json!({"text": "x"}));
    refusal(&withdrawn, 409, "tool_withdrawn");
    let added = broker.call("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(added.status, 200, "{}", added.text());
    let down = broker.call("/b/echo", json!({"text": "x"}));
    refusal(&down, 503, "source_unavailable");
    drop(broker);
    bench.change(|config| config["audits_required"] = json!(true));
    bench.chaos.script("b", &json!({}));
    bench.refused(&["127.0.0.1:0"], 3);
}

#[test]
fn serve_refuses_a_lock_that_a_build_refuses() {
    let bench = Bench::new();
    let lock = read(LOCK);
    let run = format!("Run `broker-gen lock --config {}`.", bench.config);
    let refused = |code: i32, named: &[&str]| {
        let output = bench.refused(&["127.0.0.1:0"], code);
        contains(&output.stderr, named);
    };
    let edited = |from: &str, to: &str| {
        assert!(lock.contains(from), "{from}");
        lock.replacen(from, to, 1)
    };
    for (text, code) in [
        (edited("\"exposed\"", "\"expose\""), "lock_corrupt"),
        (edited("\"text\"", "\"another\""), "lock_corrupt"),
        (lock[..lock.len() / 2].to_owned(), "lock_corrupt"),
        (
            edited("\"lock_version\": 1", "\"lock_version\": 99"),
            "lock_version",
        ),
    ] {
        bench.chaos.file("given.lock.json", &text);
        refused(5, &[&format!("error[{code}]")]);
    }
    bench.chaos.file("given.lock.json", &lock);
    bench.change(|config| config["tree"][1]["source"]["tool_filter"] = json!(["echo"]));
    refused(5, &["error[lock_stale]", &run]);
    bench.change(|_| {});
    fs::remove_file(bench.chaos.path().join("given.lock.json")).expect("removed");
    refused(5, &["error[lock_missing]", &run]);
    fs::remove_file(&bench.config).expect("removed");
    refused(2, &["error[config_unreadable]", "given.json"]);
    assert!(bench.chaos.journal("a").is_empty(), "nothing was started");

    let json = bench.refused(&["127.0.0.1:0", "--log-format", "json"], 2);
    let report: Value = serde_json::from_str(json.stderr.trim()).expect("one line of JSON");
    assert_eq!(report["diagnostics"][0]["code"], "config_unreadable");
}

#[test]
fn serve_listens_only_on_loopback_addresses() {
    let bench = Bench::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8100"] {
        for secret in [false, true] {
            let mut run = bench.serve(&[address]);
            if secret {
                run = run.env("MCP_BROKER_SECRET", "s3cret-for-tests");
            }
            let output = run.output();
            assert_eq!(output.code, Some(2), "{}", output.stderr);
            contains(&output.stderr, &["error[serve_open]", "build the broker"]);
        }
    }
    for wrong in ["--allow-unauthenticated", "given.json"] {
        bench.refused(&["127.0.0.1:0", wrong], 2);
    }
    contains(
        &bench.refused(&["localhost"], 2).stderr,
        &["`localhost` is not a port or `host:port`"],
    );
    let mistyped = bench.refused(&["doctr"], 2).stderr;
    assert!(!mistyped.contains("`doctor`"), "{mistyped}");
    assert!(bench.chaos.journal("a").is_empty(), "nothing was started");
}

#[test]
fn serve_takes_the_secret_of_callers_from_the_environment() {
    let bench = Bench::new();
    let run = bench.serve(&["127.0.0.1:0"]);
    let broker = Broker::start(run.env("MCP_BROKER_SECRET", "s3cret-for-tests"));
    refusal(
        &post(broker.address(), "/meta_tree", &json!({})),
        401,
        "unauthorized",
    );
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer s3cret-for-tests"),
    ];
    let answer = harness::request(broker.address(), "POST", "/meta_tree", &headers, b"{}");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (_, log) = broker.terminate();
    assert!(!log.contains("s3cret"), "{log}");
}

/// A client of `serve stdio`, over the pipes of its process.
struct StdioClient {
    broker: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl StdioClient {
    fn start(run: Run) -> Self {
        let mut broker = run.spawn_with_outputs(Stdio::piped(), Stdio::null());
        let input = broker.stdin.take().expect("it is piped");
        let lines = BufReader::new(broker.stdout.take().expect("it is piped")).lines();
        let mut client = Self {
            broker,
            input,
            lines,
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let result = client.result("initialize", &hello);
        assert_eq!(result["serverInfo"]["name"], "mcp-broker");
        client
    }

    fn result(&mut self, method: &str, params: &Value) -> Value {
        self.answer(method, params)["result"].take()
    }

    fn answer(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}").expect("it reads");
        self.message()
    }

    /// The next message, which must be a notification.
    fn notification(&mut self) -> Value {
        let message = self.message();
        assert!(message["id"].is_null(), "{message}");
        message
    }

    fn message(&mut self) -> Value {
        let line = self.lines.next().expect("a message").expect("UTF-8");
        serde_json::from_str(&line).expect("JSON")
    }

    /// The result of a call of the tool `echo` of a source.
    fn echo(&mut self, source: &str) -> Value {
        let args = json!({"path": format!("{source}/echo"), "args": {"text": "hi"}});
        let params = json!({"name": "meta_call", "arguments": args});
        self.result("tools/call", &params)
    }

    /// Ends the input; the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.input);
        self.broker.wait().expect("it ends").code()
    }
}

#[test]
fn serve_over_stdio_answers_its_client_until_the_input_ends() {
    let bench = Bench::new();
    let mut client = StdioClient::start(bench.serve(&["stdio", "--log-level", "error"]));
    let result = client.echo("/a");
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(client.end(), Some(0));
    let secret = bench.refused(&["stdio", "--secret-file", "x"], 2);
    contains(&secret.stderr, &["remove `--secret-file`"]);
}

#[test]
fn serve_over_stdio_serves_the_other_sources_of_one_that_fails() {
    let bench = Bench::new();
    bench.chaos.script("b", &json!({"start_exit": 9}));
    let mut client = StdioClient::start(bench.serve(&["stdio", "--log-level", "error"]));
    wait_until("the other source serves", || {
        client.echo("/a")["isError"] == false
    });
    let failed = client.echo("/b");
    let text = failed["content"][0]["text"].as_str().expect("a text");
    contains(text, &["\"source_unavailable\"", "\"exit_before_ready\""]);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn serve_of_a_lock_of_version_2_answers_like_version_1() {
    let bench = Bench::new();
    let replies = || {
        let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
        let tree = broker.post("/meta_tree", &json!({"depth": 3})).text();
        let tool = broker.post("/meta_desc", &json!({"path": "/a/echo"}));
        (tree, tool.text())
    };
    let before = replies();
    fs::remove_file(bench.chaos.path().join("given.lock.json")).expect("removed");
    bench.lock();
    let lock = read(&bench.chaos.path().join("given.lock.json").to_string_lossy());
    contains(&lock, &["\"lock_version\": 2"]);
    assert_eq!(replies(), before);
}

#[test]
fn serve_finds_a_tool_by_its_hints_and_shows_none() {
    let bench = Bench::new();
    let with_table = |table: bool| {
        bench.change(|config| {
            let own = &mut config["tree"][0]["source"]["tool_overrides"];
            own["structured"]["hints"] = json!(["zebra crossing"]);
            config["search"] = json!({"table": table});
        });
    };
    with_table(true);
    bench.lock();
    let found = |broker: &Broker, query: &str| {
        let answer = broker.post("/meta_tree", &json!({"query": query}));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["children"].clone()
    };
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
    let hits = found(&broker, "zebra");
    assert_eq!(hits[0]["path"], "/a/structured", "{hits}");
    for (route, request) in [
        ("/meta_tree", json!({"query": "zebra"})),
        ("/meta_tree", json!({"depth": 3})),
        ("/meta_desc", json!({"path": "/a/structured"})),
        (
            "/meta_call",
            json!({"path": "/a/structured", "args": {"no": 1}}),
        ),
    ] {
        let text = broker.post(route, &request).text();
        assert!(!text.contains("crossing"), "{route}: {text}");
    }
    // No word of the catalog: the vectors of words find it.
    assert_ne!(found(&broker, "pedestrians"), json!([]));

    // Both belong to the catalog, which is replaced.
    with_table(false);
    wait_until("the new catalog is served", || {
        found(&broker, "pedestrians") == json!([])
    });
    assert_eq!(found(&broker, "zebra")[0]["path"], "/a/structured");
    drop(broker);
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
    assert_eq!(found(&broker, "zebra")[0]["path"], "/a/structured");
    assert_eq!(found(&broker, "pedestrians"), json!([]));
}

#[test]
fn default_config_is_named_by_each_verb() {
    let bench = Bench::new();
    let folder = bench.chaos.path();
    let run = |args: &[&str], variable: Option<&str>| {
        let run = Run::new(&binary("broker-gen")).folder(folder).args(args);
        let run = run.env("CHAOS", folder).env("A_TOKEN", "a-token-for-tests");
        match variable {
            Some(name) => run.env("MCP_BROKER_CONFIG", name).output(),
            None => run.output(),
        }
    };
    let missing = run(&["tree"], None);
    assert_eq!(missing.code, Some(2));
    contains(
        &missing.stderr,
        &["config: config.json\n", "`config.json` cannot be read"],
    );
    for name in ["smoke_config", "config"] {
        let copy = |from: &str, end: &str| {
            fs::copy(from, folder.join(format!("{name}{end}"))).expect("copied");
        };
        copy(CONFIG, ".json");
        copy(LOCK, ".lock.json");
        let tree = run(&["tree"], None);
        assert_eq!(
            (tree.code, tree.stderr),
            (Some(0), format!("config: {name}.json\n"))
        );
    }
    let given = run(&["tree"], Some("given.json"));
    assert_eq!(given.stderr, "config: given.json, from MCP_BROKER_CONFIG\n");
    let named = run(&["tree", "--config", "config.json"], Some("given.json"));
    assert_eq!((named.code, named.stderr.as_str()), (Some(0), ""));
    let served = run(&["serve", "0.0.0.0:0"], None);
    contains(&served.stderr, &["config=config.json"]);
}
