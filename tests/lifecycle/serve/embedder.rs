//! Searches with an embedder: the vectors beside the lock, the endpoint that makes them, and words when it fails.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use harness::mcp_http::McpSession;
use harness::{Broker, Output, changed_meanwhile, contains, json_text, wait_until};
use serde_json::{Value, json};

use super::Bench;

const KEY: &str = "sk-endpoint-key-for-tests";

/// The answer of the stub.
#[derive(Clone, Copy, PartialEq)]
enum Behaviour {
    Vectors,
    OtherDimensions,
    Status(u16),
    Silence,
}

/// An endpoint. Texts with `structured` or `quux` have nearly the same vector; all others have another direction.
struct Endpoint {
    base: String,
    state: Arc<Mutex<State>>,
}

struct State {
    behaviour: Behaviour,
    requests: Vec<(String, Value)>,
    /// Connections that get no answer.
    silent: Vec<TcpStream>,
}

impl Endpoint {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State {
            behaviour: Behaviour::Vectors,
            requests: Vec::new(),
            silent: Vec::new(),
        }));
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &mut of_thread.lock().expect("the state"));
            }
        });
        Self { base, state }
    }

    fn behave(&self, behaviour: Behaviour) {
        self.state.lock().expect("the state").behaviour = behaviour;
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.state.lock().expect("the state").requests.clone()
    }

    /// The texts of all requests.
    fn texts(&self) -> Vec<String> {
        let requests = self.requests();
        let inputs = requests
            .iter()
            .filter_map(|(_, body)| body["input"].as_array());
        let texts = inputs.flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }
}

fn answer(stream: TcpStream, state: &mut State) {
    let mut reader = BufReader::new(&stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    let texts = request["input"].as_array().cloned().unwrap_or_default();
    state.requests.push((head, request));
    let vector = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        match text.contains("structured") || text.contains("quux") {
            true => vec![1.0, 0.01 * (text.len() % 5) as f64, 0.0],
            false => vec![0.0, 1.0, 0.1 * (text.len() % 7) as f64],
        }
    };
    let (status, body) = match state.behaviour {
        Behaviour::Silence => return state.silent.push(stream),
        Behaviour::Status(status) => (status, json!({"error": {"message": format!("no, {KEY}")}})),
        behaviour => {
            let vectors = texts
                .iter()
                .map(vector)
                .zip(0..)
                .map(|(mut vector, index)| {
                    if behaviour == Behaviour::OtherDimensions {
                        vector.push(1.0);
                    }
                    json!({"object": "embedding", "index": index, "embedding": vector})
                });
            (
                200,
                json!({"object": "list", "data": vectors.collect::<Vec<_>>()}),
            )
        }
    };
    let body = body.to_string();
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    // The client may have left.
    let _ = (&stream).write_all(text.as_bytes());
}

/// The members of `search` for this endpoint.
fn search() -> Value {
    json!({"embedder": "OPENAI", "openai_model": "stub", "timeout": 5})
}

fn with_search(search: &Value) -> Bench {
    let bench = Bench::new();
    bench.change(|config| config["search"] = search.clone());
    bench
}

impl Bench {
    /// Runs a verb with the variables of the endpoint.
    fn verb(&self, verb: &str, endpoint: &Endpoint) -> Output {
        let args = [verb, "--config", &self.config];
        let run = self.chaos.run("broker-gen", &args);
        run.env("OPENAI_BASE_URL", &endpoint.base)
            .env("OPENAI_API_KEY", KEY)
            .output()
    }

    fn start(&self, endpoint: &Endpoint, variables: &[(&str, &str)]) -> Broker {
        let run = self.serve(&["127.0.0.1:0"]);
        let run = run
            .env("OPENAI_BASE_URL", &endpoint.base)
            .env("OPENAI_API_KEY", KEY);
        Broker::start_ready(
            variables
                .iter()
                .fold(run, |run, (name, value)| run.env(name, value)),
        )
    }
}

fn tree(broker: &Broker, query: &str) -> Value {
    let answer = broker.post("/meta_tree", &json!({"query": query}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The answer of `retrieve_tools`.
fn retrieve(broker: &Broker, query: &str) -> Value {
    let session = McpSession::begin(broker.address(), "/mcp/search");
    let params = json!({"name": "retrieve_tools", "arguments": {"query": query}});
    json_text(&session.result("tools/call", &params))
}

#[test]
fn lock_embeds_the_texts_of_exposed_tools_once() {
    let endpoint = Endpoint::start();
    let bench = with_search(&search());
    let locked = bench.verb("lock", &endpoint);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    let host = endpoint.base.trim_end_matches("/v1");
    let sent = endpoint.texts();
    contains(
        &locked.stderr,
        &[&format!("sends {} texts to {host}", sent.len()), "wrote"],
    );
    assert!(!locked.stderr.contains(KEY), "{}", locked.stderr);
    let lock: Value = serde_json::from_str(&bench.chaos_text("given.lock.json")).expect("a lock");
    let exposed: usize = lock["sources"]
        .as_array()
        .expect("sources")
        .iter()
        .map(|source| source["exposed"].as_array().map_or(0, Vec::len))
        .sum();
    assert!(sent.len() <= exposed && sent.len() > 3, "{sent:?}");
    let (head, body) = endpoint.requests().remove(0);
    contains(&head, &["POST /v1/embeddings", &format!("Bearer {KEY}")]);
    assert_eq!(body["model"], "stub");

    // Unchanged texts are not sent again.
    let vectors = bench.chaos_text("given.vectors");
    let before = endpoint.requests().len();
    for verb in ["lock", "vectors"] {
        let again = bench.verb(verb, &endpoint);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        contains(&again.stderr, &["given.vectors is up to date"]);
    }
    assert_eq!(
        (endpoint.requests().len(), bench.chaos_text("given.vectors")),
        (before, vectors)
    );
    assert_eq!(bench.verb("check", &endpoint).code, Some(0));

    // A hint is one more text.
    bench.change(|config| {
        config["search"] = search();
        config["tree"][0]["source"]["tool_overrides"]["structured"]["hints"] = json!(["zebra"]);
    });
    assert_eq!(bench.verb("lock", &endpoint).code, Some(0));
    assert_eq!(endpoint.texts()[sent.len()..], ["zebra"]);
    assert_eq!(bench.verb("verify", &endpoint).code, Some(0));
}

#[test]
fn vectors_that_are_missing_or_edited_are_refused_with_the_command() {
    let endpoint = Endpoint::start();
    let bench = with_search(&search());
    assert_eq!(bench.verb("lock", &endpoint).code, Some(0));
    let vectors = bench.chaos_text("given.vectors");
    let edited = vectors.replacen("\"dimensions\": 3", "\"dimensions\": 4", 1);
    let before = endpoint.requests().len();
    for (text, reason) in [(None, "cannot be read"), (Some(edited), "were edited")] {
        match &text {
            None => {
                std::fs::remove_file(bench.chaos.path().join("given.vectors")).expect("it exists")
            }
            Some(text) => drop(bench.chaos.file("given.vectors", text)),
        }
        for verb in ["check", "verify", "serve"] {
            let refused = bench.verb(verb, &endpoint);
            assert_eq!(refused.code, Some(5), "{verb}: {}", refused.stderr);
            contains(
                &format!("{}{}", refused.stdout, refused.stderr),
                &["vectors_stale", reason, "broker-gen vectors"],
            );
        }
    }
    assert_eq!(
        endpoint.requests().len(),
        before,
        "nothing embeds but lock and vectors"
    );
    assert_eq!(bench.verb("vectors", &endpoint).code, Some(0));
    assert_eq!(bench.chaos_text("given.vectors"), vectors);
}

#[test]
fn vectors_that_another_program_wrote_meanwhile_are_left() {
    let endpoint = Endpoint::start();
    let bench = with_search(&search());
    assert_eq!(bench.verb("lock", &endpoint).code, Some(0));
    let whole = bench.chaos_text("given.vectors");
    let file = bench.chaos.path().join("given.vectors");
    std::fs::remove_file(&file).expect("it exists");
    let output = changed_meanwhile(
        bench.chaos.path(),
        || bench.verb("vectors", &endpoint),
        || drop(bench.chaos.file("given.vectors", "of another run")),
    );
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let said = "given.vectors` is not written: another program changed it while this run worked";
    contains(&output.stderr, &["file_write", said]);
    assert_eq!(bench.chaos_text("given.vectors"), "of another run");
    assert_eq!(bench.verb("vectors", &endpoint).code, Some(0));
    assert_eq!(bench.chaos_text("given.vectors"), whole);
}

#[test]
fn vectors_are_written_behind_a_link_and_a_dangling_one_is_refused() {
    let endpoint = Endpoint::start();
    let bench = with_search(&search());
    assert_eq!(bench.verb("lock", &endpoint).code, Some(0));
    let whole = bench.chaos_text("given.vectors");
    let file = bench.chaos.path().join("given.vectors");
    std::fs::remove_file(&file).expect("it exists");
    std::os::unix::fs::symlink("stored", &file).expect("a link can be made");
    let output = bench.verb("vectors", &endpoint);
    assert_ne!(output.code, Some(0), "{}", output.stdout);
    let said = "it is a symbolic link to a file that does not exist";
    contains(&output.stderr, &["given.vectors", said]);
    assert!(!bench.chaos.path().join("stored").exists());

    bench.chaos.file("stored", "");
    let output = bench.verb("vectors", &endpoint);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(bench.chaos_text("stored"), whole);
    assert!(std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_symlink()));
}

#[test]
fn search_uses_the_vector_of_the_query_and_sends_it_once() {
    let endpoint = Endpoint::start();
    let bench = with_search(&search());
    assert_eq!(bench.verb("lock", &endpoint).code, Some(0));
    let sent = endpoint.texts().len();
    let broker = bench.start(&endpoint, &[]);
    assert_eq!(endpoint.texts().len(), sent, "a start sends nothing");
    for _ in 0..3 {
        let found = tree(&broker, "quux");
        assert_eq!(found["children"][0]["path"], "/a/structured", "{found}");
        assert_eq!(found.get("degraded"), None);
    }
    assert_eq!(endpoint.texts()[sent..], ["quux"]);
    // The secret of a source is typed by mistake.
    tree(&broker, "quux a-token-for-tests");
    let texts = endpoint.texts();
    assert_eq!(texts.len(), sent + 2);
    assert!(!texts[sent + 1].contains("a-token-for-tests"), "{texts:?}");
    let (_, log) = broker.terminate();
    assert!(!log.contains(KEY) && !log.contains("quux"), "{log}");
}

#[test]
fn words_answer_when_the_endpoint_gives_no_vector() {
    let endpoint = Endpoint::start();
    let mut search = search();
    search["timeout"] = json!(0.2);
    let bench = with_search(&search);
    assert_eq!(bench.verb("lock", &endpoint).code, Some(0));
    let broker = bench.start(&endpoint, &[]);
    let is_degraded = |value: &str| {
        let line = format!("mcp_broker_search_degraded {value}");
        let text = broker.get("/metrics").text();
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    };
    is_degraded("0");
    for (at, behaviour) in [
        Behaviour::Silence,
        Behaviour::Status(429),
        Behaviour::Status(302),
        Behaviour::OtherDimensions,
    ]
    .into_iter()
    .enumerate()
    {
        endpoint.behave(behaviour);
        let found = tree(&broker, &format!("structured {at}"));
        assert_eq!(found["degraded"], "words", "{found}");
        assert_eq!(found["children"][0]["path"], "/a/structured", "{found}");
        is_degraded("1");
    }
    let found = retrieve(&broker, "structured again");
    assert_eq!(found["degraded"], "words", "{found}");
    wait_until("the failure is logged", || {
        broker.stderr().contains("the model gave no vector")
    });
    assert_eq!(
        broker.stderr().matches("the model gave no vector").count(),
        1
    );
    endpoint.behave(Behaviour::Vectors);
    let found = tree(&broker, "structured 9");
    assert_eq!(found.get("degraded"), None, "{found}");
    is_degraded("0");
    let found = retrieve(&broker, "quux");
    assert_eq!(
        (found.get("degraded"), &found["tools"][0]["path"]),
        (None, &json!("/a/structured"))
    );
    wait_until("it answers again", || {
        broker.stderr().contains("answers searches again")
    });
    assert!(!broker.stderr().contains(KEY), "{}", broker.stderr());
}

#[test]
fn variable_chooses_the_built_embedder_or_words_alone() {
    let endpoint = Endpoint::start();
    let bench = with_search(&search());
    assert_eq!(bench.verb("lock", &endpoint).code, Some(0));
    let sent = endpoint.texts().len();
    let broker = bench.start(&endpoint, &[("MCP_BROKER_EMBEDDER", "BM25")]);
    let found = tree(&broker, "structured");
    assert_eq!(
        (found.get("degraded"), endpoint.texts().len()),
        (None, sent)
    );
    drop(broker);
    let broker = bench.start(&endpoint, &[("MCPPROXY_EMBEDDER", "OPENAI")]);
    tree(&broker, "structured");
    assert_eq!(endpoint.texts().len(), sent + 1);
    drop(broker);
    let refused = bench
        .serve(&["127.0.0.1:0"])
        .env("MCP_BROKER_EMBEDDER", "HF")
        .output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["embedder_mismatch", "`HF`", "built for `OPENAI`"],
    );

    let refused = bench
        .serve(&["127.0.0.1:0"])
        .env("MCPPROXY_EMBEDDER", "HF")
        .output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let named = ["embedder_mismatch", "MCPPROXY_EMBEDDER is `HF`"];
    contains(&refused.stderr, &named);

    // The variable alone sends nothing.
    let plain = with_search(&json!({}));
    plain.lock();
    let refused = plain
        .serve(&["127.0.0.1:0"])
        .env("MCP_BROKER_EMBEDDER", "OPENAI")
        .env("OPENAI_BASE_URL", &endpoint.base)
        .output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(&refused.stderr, &["embedder_mismatch", "built for `BM25`"]);
    assert_eq!(endpoint.texts().len(), sent + 1);
}

#[test]
fn variable_of_the_other_proxy_without_a_config_leaves_the_search_to_words() {
    let endpoint = Endpoint::start();
    let plain = with_search(&json!({}));
    plain.lock();
    for name in ["OPENAI", "HF"] {
        let broker = plain.start(&endpoint, &[("MCPPROXY_EMBEDDER", name)]);
        let found = retrieve(&broker, "structured");
        assert_eq!(
            (found.get("degraded"), &found["tools"][0]["path"]),
            (None, &json!("/a/structured"))
        );
        let said = format!("`MCPPROXY_EMBEDDER` is `{name}`");
        let add = format!("\"search\": {{\"embedder\": \"{name}\"}}");
        contains(&broker.stderr(), &[&said, &add, "`broker-gen lock`"]);
    }
    assert_eq!(endpoint.texts().len(), 0);
}

#[test]
fn endpoint_that_may_not_be_used_gets_nothing() {
    let endpoint = Endpoint::start();
    let bench = with_search(&json!({"embedder": "OPENAI", "external": false}));
    let refused = bench.verb("lock", &endpoint);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(&refused.stderr, &["`\"external\": false` forbids", "`HF`"]);
    let bench = with_search(&search());
    let args = ["lock", "--config", &bench.config];
    let open = bench
        .chaos
        .run("broker-gen", &args)
        .env("OPENAI_BASE_URL", "http://api.example/v1")
        .env("OPENAI_API_KEY", KEY)
        .output();
    contains(
        &open.stderr,
        &[
            "embedder_unavailable",
            "OPENAI_BASE_URL must begin with `https://`",
            "the lock was not written",
        ],
    );
    assert!(!open.stderr.contains(KEY), "{}", open.stderr);
    assert_eq!(endpoint.requests().len(), 0);
    let proxied = bench
        .chaos
        .run("broker-gen", &args)
        .env("OPENAI_BASE_URL", "https://api.invalid/v1")
        .env("OPENAI_API_KEY", KEY)
        .env("ALL_PROXY", "socks://127.0.0.1:1")
        .output();
    let named = "`ALL_PROXY` does not name a proxy that can be used";
    contains(&proxied.stderr, &["embedder_unavailable", named]);

    // A refusal while the lock is made: the lock is written, the vectors are made by the next run.
    endpoint.behave(Behaviour::Status(401));
    let refused = bench.verb("lock", &endpoint);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["embedder_unavailable", "HTTP status 401", "OPENAI_API_KEY"],
    );
    assert!(!refused.stderr.contains(KEY), "{}", refused.stderr);
    endpoint.behave(Behaviour::Vectors);
    assert_eq!(bench.verb("vectors", &endpoint).code, Some(0));
    assert_eq!(bench.verb("check", &endpoint).code, Some(0));
}

#[test]
fn model_on_this_machine_needs_a_program_that_runs_it() {
    let endpoint = Endpoint::start();
    let bench = with_search(&json!({"embedder": "HF", "hf_model": "all-MiniLM-L6-v2"}));
    let refused = bench.verb("lock", &endpoint);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &[
            "embedder_unavailable",
            "without the feature `hf`",
            "--features hf",
        ],
    );
}
