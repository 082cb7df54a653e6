//! A real Prometheus scrapes a running broker, and answers the queries of each panel of the dashboard and of each alert.
//! With `MCP_BROKER_PANELS=FILE` the test also writes the answers over time, from which `docs/pictures/draw` makes the
//! pictures of the page; `MCP_BROKER_PANEL_SECONDS` is the time of the load.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use harness::faults::scaled;
use harness::{Broker, Chaos, Run, get, post_bytes, send, wait_within};
use serde_json::{Value, json};

use crate::config::changed;

/// The time in which Prometheus has every series.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(40);

/// A Prometheus that scrapes one broker each second; ended when dropped.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    fn start(chaos: &Chaos, target: &str) -> Self {
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "scrape_configs": [{"job_name": "broker", "static_configs": [{"targets": [target]}]}],
            "rule_files": [deploy("alerts.rules.yml")],
        });
        // YAML contains JSON.
        let file = chaos.file("prometheus.yml", &config.to_string());
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let storage = chaos.path().join("tsdb");
        let child = Run::new(Path::new("prometheus"))
            .args([
                format!("--config.file={}", file.display()),
                format!("--storage.tsdb.path={}", storage.display()),
                format!("--web.listen-address={address}"),
                "--log.level=error".to_owned(),
            ])
            .spawn_with_outputs(Stdio::null(), Stdio::null());
        Self { child, address }
    }

    /// Asks for the values of an expression in each second since a time.
    fn query(&self, expression: &str, since: SystemTime) -> Value {
        let seconds = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            since.expect("it is after 1970").as_secs()
        };
        let (from, to) = (seconds(since), seconds(SystemTime::now()));
        let query = encoded(expression);
        let range = format!("query_range?query={query}&start={from}&end={to}&step=1");
        self.api(&range)["result"].clone()
    }

    fn api(&self, path: &str) -> Value {
        // An answer of HTTP/1.0 is not chunked.
        let request = format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n");
        let mut answer = String::new();
        send(&self.address, request.as_bytes())
            .read_to_string(&mut answer)
            .expect("an answer comes");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let body: Value =
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert_eq!(body["status"], "success", "{path}: {body}");
        body["data"].clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It is this process's child and has not been waited for.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn deploy(name: &str) -> String {
    format!("{}/deploy/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns a text as the value of a query of a URL.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// A query of the dashboard.
struct Query {
    title: String,
    expression: String,
}

/// Returns the queries of all panels, for the scraped job.
fn queries() -> Vec<Query> {
    let text = fs::read_to_string(deploy("grafana.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let of_panel = |panel: &Value| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(move |target| {
            let expression = target["expr"].as_str().expect("an expression");
            let expression = expression
                .replace("$job", "broker")
                .replace("$__rate_interval", "10s");
            let title = title.clone();
            Query { title, expression }
        })
    };
    panels.iter().flat_map(of_panel).collect()
}

/// Calls until `over`: results, errors of tools, refusals, calls that wait for `/b`, and callers that leave.
fn call_until(broker: &Broker, over: &AtomicBool) {
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    broker.call("/b/echo", json!({"text": "x"}));
                }
            });
        }
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // A caller that leaves during its call.
                let body = json!({"path": "/b/echo", "args": {"text": "x"}}).to_string();
                let bytes = post_bytes(broker.address(), "/meta_call", &body);
                let leaving = send(broker.address(), &bytes);
                broker.call("/a/add", json!({"a": 1, "b": 2}));
                drop(leaving);
                broker.call("/a/fail", json!({}));
                broker.call("/a/nothing", json!({}));
                broker.call("/a/slow", json!({"ms": 3000}));
            }
        });
    });
}

#[test]
fn prometheus_answers_each_panel_of_the_dashboard() {
    let chaos = Chaos::new();
    let config = changed(&chaos, |config| {
        config["audit"] = json!({"file": "audit.jsonl"});
    });
    let delays = json!({"on_call": {"echo": {"delay_ms": 20}}});
    chaos.script("b", &delays);
    chaos.script("a", &delays);
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
    let prometheus = Prometheus::start(&chaos, broker.address());
    let begun = SystemTime::now();
    wait_within(SCRAPE_TIMEOUT, "Prometheus is ready", || {
        let listens = std::net::TcpStream::connect(&prometheus.address).is_ok();
        listens && get(&prometheus.address, "/-/ready").status == 200
    });
    let answers = |query: &Query| {
        let Query { title, expression } = query;
        wait_within(SCRAPE_TIMEOUT, &format!("{title}: {expression}"), || {
            let found = prometheus.query(expression, begun);
            found.as_array().is_some_and(|series| !series.is_empty())
        });
    };
    let over = AtomicBool::new(false);
    let (broker, prometheus) = (&broker, &prometheus);
    thread::scope(|scope| {
        let end = EndOnDrop(&over);
        scope.spawn(|| call_until(broker, &over));
        let seconds = scaled("MCP_BROKER_PANEL_SECONDS", 1) as u64;
        wait_within(SCRAPE_TIMEOUT * 4, "calls before the drift", || {
            begun
                .elapsed()
                .is_ok_and(|elapsed| elapsed.as_secs() >= seconds / 2)
        });
        // Two scrapes before the drift: an increase needs a value before it.
        answers(&queries()[0]);
        let tools = Chaos::tools_asking_more("echo");
        chaos.script(
            "a",
            &json!({"tools": tools, "generation": 1, "on_call": delays["on_call"]}),
        );
        queries().iter().for_each(answers);
        wait_within(SCRAPE_TIMEOUT * 4, "calls after the drift", || {
            begun
                .elapsed()
                .is_ok_and(|elapsed| elapsed.as_secs() >= seconds)
        });
        drop(end);
    });
    // The rules are loaded, and the one for the withdrawn tool fires.
    let rules = prometheus.api("rules?type=alert");
    let rules = rules["groups"][0]["rules"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let state = |name: &str| {
        let rule = rules.iter().find(|rule| rule["name"] == name);
        rule.unwrap_or_else(|| panic!("{name}: {rules:?}"))["state"].clone()
    };
    assert_ne!(state("McpToolWithdrawn"), "inactive");
    assert_eq!(state("McpAuditUnavailable"), "inactive");
    assert!(rules.iter().all(|rule| rule["health"] == "ok"), "{rules:?}");
    if let Ok(file) = std::env::var("MCP_BROKER_PANELS") {
        write_panels(prometheus, begun, Path::new(&file));
    }
}

/// Ends the load, also after a failed assertion.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes the answers to all queries over the time since `begun`.
fn write_panels(prometheus: &Prometheus, begun: SystemTime, file: &Path) {
    let panels = queries().into_iter().map(|Query { title, expression }| {
        let series = prometheus.query(&expression, begun);
        json!({"title": title, "query": expression, "series": series})
    });
    let panels: Vec<_> = panels.collect();
    fs::write(file, json!(panels).to_string()).expect("writable");
}
