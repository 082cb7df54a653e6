//! Starts in which one source hangs, one exits and one differs from the lock, in every order, over HTTP and
//! over stdio.

use std::thread;

use harness::{Broker, Chaos, binary, is_alive, wait_until};
use serde_json::{Value, json};

use super::stdio::client::{Client, MODERN, hello, modern};

const SOURCES: [&str; 3] = ["a", "b", "optional"];

/// The sources by their behaviour at the start.
#[derive(Clone, Copy, Debug)]
struct Roles {
    hangs: &'static str,
    exits: &'static str,
    /// It differs from the lock, or has no fault.
    third: &'static str,
}

/// Runs `check` for every order of the roles, all at the same time.
fn in_every_order(check: impl Fn(Roles) + Sync) {
    thread::scope(|scope| {
        for at in 0..6 {
            let [hangs, mut exits, mut third] =
                [at % 3, (at + 1) % 3, (at + 2) % 3].map(|source| SOURCES[source]);
            if at >= 3 {
                std::mem::swap(&mut exits, &mut third);
            }
            let roles = Roles {
                hangs,
                exits,
                third,
            };
            let check = &check;
            scope.spawn(move || check(roles));
        }
    });
}

/// The scripts of the source that hangs until [`release`], and of the one that exits.
fn scripts(roles: Roles) -> Chaos {
    let chaos = Chaos::new();
    let released = chaos.path().join("released");
    let hangs = format!("until [ -e '{}' ]; do sleep 0.05; done", released.display());
    chaos.script(roles.hangs, &json!({"start_shell": hangs}));
    chaos.script(
        roles.exits,
        &json!({"start_exit": 1, "stderr_lines": ["SERVER WROTE THIS"]}),
    );
    chaos
}

/// The config of the broker in which every source is required, with these further members of each
/// source and of the top level.
fn config(chaos: &Chaos, top: &Value, source: &Value) -> String {
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let add = |to: &mut Value, members: &Value| {
        for (name, value) in members.as_object().expect("an object") {
            to[name] = value.clone();
        }
    };
    chaos.config(compiled, |config| {
        add(config, top);
        for node in config["tree"].as_array_mut().expect("a list") {
            node["source"]["required"] = json!(true);
            add(&mut node["source"], source);
        }
    })
}

fn over_stdio(chaos: &Chaos, config: &str) -> Client {
    let folder = chaos.path().to_str().expect("the path is text");
    let variables = [("CHAOS", folder), ("A_TOKEN", "a-token-for-tests")];
    let mut client = Client::start_program(&binary("chaos-broker"), &[config], &variables);
    let answer = client.request(json!("init"), "initialize", hello("2025-11-25"));
    assert!(answer["result"].is_object(), "{answer}");
    client
}

fn echo(source: &str) -> Value {
    json!({"path": format!("/{source}/echo"), "args": {"text": "x"}})
}

fn no_process_is_left(chaos: &Chaos) {
    let alive = |source: &&str| chaos.pids(source).into_iter().any(is_alive);
    wait_until("no process is left", || !SOURCES.iter().any(alive));
}

fn nothing_was_executed(chaos: &Chaos) {
    for source in SOURCES {
        assert_eq!(chaos.events(source, "call"), [] as [Value; 0]);
    }
}

/// The report of a refused start over HTTP, which must exit with this code.
fn refused_over_http(chaos: &Chaos, config: &str, code: i32) -> Value {
    let args = ["127.0.0.1:0", config, "--log-format", "json"];
    let output = chaos.run("chaos-broker", &args).output();
    assert_eq!(output.code, Some(code), "{}", output.stderr);
    no_process_is_left(chaos);
    nothing_was_executed(chaos);
    let mut lines = output.stderr.lines();
    let report = lines.find(|line| line.contains("format_version"));
    serde_json::from_str(report.expect("there is a report")).expect("JSON")
}

#[test]
fn start_over_http_with_drift_beside_unreachable_sources_is_refused() {
    let drifted = json!({"tools": Chaos::tools_asking_more("echo")});
    in_every_order(|roles| {
        let chaos = scripts(roles);
        chaos.script(roles.third, &drifted);
        let soon = json!({"startup_timeout": 2});
        let serve = config(&chaos, &json!({"on_unreachable": "serve"}), &soon);
        let report = refused_over_http(&chaos, &serve, 3);
        let drifted = format!("/{}", roles.third);
        assert_eq!(report["tools"][0]["source"], drifted, "{report}");
        assert_eq!(report["summary"]["unchecked"], 2, "{report}");

        // Without the setting every source must be reached.
        let refuse = config(&chaos, &json!({}), &soon);
        let report = refused_over_http(&chaos, &refuse, 4);
        assert_eq!(report["summary"]["unchecked"], 2, "{report}");
    });
}

/// The details of the error that every call gets after a refused start. Over MCP a flag is left out if it is false.
fn start_refused(error: &Value) -> &Value {
    assert_eq!(
        (
            &error["code"],
            &error["retryable"],
            &error["maybe_executed"]
        ),
        (&json!("start_refused"), &Value::Null, &Value::Null),
        "{error}"
    );
    assert!(error["hint"].is_string(), "{error}");
    assert!(!error.to_string().contains("SERVER WROTE"), "{error}");
    &error["details"]
}

#[test]
fn start_over_stdio_with_drift_beside_unreachable_sources_answers_start_refused() {
    let drifted = json!({"tools": Chaos::tools_asking_more("echo")});
    in_every_order(|roles| {
        let chaos = scripts(roles);
        chaos.script(roles.third, &drifted);
        let strict = json!({"on_drift": "refuse"});
        let config = config(&chaos, &strict, &json!({"startup_timeout": 2}));
        let mut client = over_stdio(&chaos, &config);
        for source in SOURCES {
            let error = client.tool_error("meta_call", echo(source));
            let details = start_refused(&error);
            assert_eq!(
                (&details["source"], &details["class"]),
                (&json!(format!("/{}", roles.third)), &json!("breaking")),
                "{error}"
            );
        }
        no_process_is_left(&chaos);
        start_refused(&client.tool_error("meta_tree", json!({})));
        start_refused(&client.tool_error("meta_desc", json!({"path": "/a"})));
        let end = client.end();
        assert_eq!(end.status.code(), Some(3), "{}", end.stderr);
        assert!(end.stderr.contains("refused to start"), "{}", end.stderr);
        nothing_was_executed(&chaos);
    });
}

#[test]
fn start_over_stdio_that_is_refused_answers_other_methods_as_usual() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_without("echo")}));
    let config = config(&chaos, &json!({"on_drift": "refuse"}), &json!({}));
    let mut client = over_stdio(&chaos, &config);
    let before = client.request(json!("list"), "tools/list", json!({}));
    start_refused(&client.tool_error("meta_call", echo("b")));
    no_process_is_left(&chaos);
    let ping = client.request(json!("ping"), "ping", json!({}));
    assert_eq!(ping["result"], json!({}));
    let answer = client.request(json!("init"), "initialize", hello("2025-06-18"));
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    let list = client.request(json!("list"), "tools/list", json!({}));
    assert_eq!(list, before);
    let discover = client.request(json!("discover"), "server/discover", modern(json!({})));
    let versions = discover["result"]["supportedVersions"].to_string();
    assert!(versions.contains(MODERN), "{discover}");
    let params = modern(json!({"name": "meta_call", "arguments": echo("b")}));
    let result = &client.request(json!("modern"), "tools/call", params)["result"];
    assert_eq!(
        (&result["isError"], &result["resultType"]),
        (&json!(true), &json!("complete"))
    );
    // A stop signal ends it with the exit code of the refusal as well.
    client.signal("TERM");
    assert_eq!(client.wait().status.code(), Some(3));
}

#[test]
fn start_over_stdio_that_needs_every_source_names_the_one_that_failed() {
    let chaos = Chaos::new();
    chaos.script("b", &json!({"start_exit": 1}));
    let config = config(&chaos, &json!({"on_unreachable": "refuse"}), &json!({}));
    let mut client = over_stdio(&chaos, &config);
    let error = client.tool_error("meta_call", echo("a"));
    let details = start_refused(&error);
    assert_eq!(
        (&details["source"], &details["class"], &details["cause"]),
        (
            &json!("/b"),
            &json!("unchecked"),
            &json!("exit_before_ready")
        )
    );
    assert_eq!(client.end().status.code(), Some(4));
}

/// A broker, and the way to call its tools.
enum Caller {
    Http(Broker),
    Stdio(Client),
}

impl Caller {
    /// The error of a call of the source's tool; null if it succeeds.
    fn error(&mut self, source: &str) -> Value {
        match self {
            Self::Http(broker) => broker.post("/meta_call", &echo(source)).json()["error"].clone(),
            Self::Stdio(client) => {
                let result = client.tool("meta_call", echo(source));
                match result["isError"].as_bool() {
                    Some(true) => {
                        let text = result["content"][0]["text"].as_str().expect("a text");
                        serde_json::from_str(text).expect("an error object")
                    }
                    _ => Value::Null,
                }
            }
        }
    }

    fn await_result(&mut self, source: &str) {
        wait_until(&format!("`/{source}` serves"), || {
            self.error(source).is_null()
        });
    }

    fn is_unavailable(&mut self, source: &str, cause: &str) {
        let error = self.error(source);
        assert_eq!(
            (&error["code"], &error["details"]["cause"]),
            (&json!("source_unavailable"), &json!(cause)),
            "{error}"
        );
    }

    /// The source hangs. Where drift refuses, no call waits for it; where it withdraws, this one has waited.
    fn is_not_there_yet(&mut self, source: &str) {
        if let Self::Http(_) = self {
            return self.is_unavailable(source, "startup_timeout");
        }
        let error = self.error(source);
        assert_eq!(error["code"], "starting", "{error}");
        assert_eq!(error["details"]["waited_s"], 1.0, "{error}");
        assert_eq!(error["details"]["retry_after_s"], 5, "{error}");
        assert_eq!(error["retryable"], true, "{error}");
    }

    /// The status and the body of `/readyz`, over HTTP.
    fn readiness(&self) -> Option<(u16, Value)> {
        let Self::Http(broker) = self else {
            return None;
        };
        let reply = broker.get("/readyz");
        let body = reply.json();
        Some((reply.status, json!([body["ready"], body["degraded"]])))
    }

    fn stop(self) -> Option<i32> {
        match self {
            Self::Http(broker) => broker.terminate().0.code(),
            Self::Stdio(client) => client.end().status.code(),
        }
    }
}

/// A start with a source that hangs, one that exits and one without faults: the broker serves the third, and
/// the others as soon as they are there. Drift that it finds then ends nothing.
fn serves_what_it_reaches(roles: Roles, drifted: &Value, start: impl Fn(&Chaos) -> Caller) {
    let chaos = scripts(roles);
    let mut caller = start(&chaos);
    caller.await_result(roles.third);
    caller.is_not_there_yet(roles.hangs);
    caller.is_unavailable(roles.exits, "exit_before_ready");
    let degraded = (200, json!([true, true]));
    assert!(caller.readiness().is_none_or(|is| is == degraded));

    chaos.script(roles.hangs, drifted);
    chaos.file("released", "");
    wait_until("the drift withdraws the tool", || {
        caller.error(roles.hangs)["code"] == "tool_withdrawn"
    });
    chaos.script(roles.exits, &json!({}));
    caller.await_result(roles.exits);
    assert!(caller.readiness().is_none_or(|is| is == degraded));
    caller.await_result(roles.third);
    assert_eq!(chaos.events(roles.hangs, "call"), [] as [Value; 0]);
    assert_eq!(caller.stop(), Some(0), "{roles:?}");
}

#[test]
fn start_over_http_serves_the_sources_that_are_reached() {
    let drifted = json!({"tools": Chaos::tools_asking_more("echo")});
    in_every_order(|roles| {
        serves_what_it_reaches(roles, &drifted, |chaos| {
            let config = config(chaos, &json!({"on_unreachable": "serve"}), &json!({}));
            let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
            let waiting = broker.post("/meta_call", &echo(roles.third));
            assert_eq!(waiting.json()["error"]["code"], "starting");
            Caller::Http(broker)
        });
    });
}

#[test]
fn start_over_stdio_serves_the_sources_that_are_reached() {
    let drifted = json!({"tools": Chaos::tools_asking_more("echo")});
    in_every_order(|roles| {
        serves_what_it_reaches(roles, &drifted, |chaos| {
            let config = config(chaos, &json!({"start_wait": 1}), &json!({}));
            Caller::Stdio(over_stdio(chaos, &config))
        });
    });
}

#[test]
fn start_over_stdio_withdraws_what_differs_and_says_it_in_the_instructions() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_without("echo")}));
    let config = config(&chaos, &json!({}), &json!({}));
    let mut client = over_stdio(&chaos, &config);
    let error = client.tool_error("meta_call", echo("a"));
    assert_eq!(error["code"], "tool_withdrawn", "{error}");
    let served = client.tool("meta_call", echo("b"));
    assert!(served["isError"] != true, "{served}");
    let again = client.request(json!("again"), "initialize", hello("2025-11-25"));
    let instructions = again["result"]["instructions"].as_str().unwrap_or_default();
    assert!(
        instructions.ends_with("\nWithdrawn, not callable: /a/echo"),
        "{instructions}"
    );
    assert_eq!(client.end().status.code(), Some(0));
}

#[test]
fn call_over_stdio_waits_for_its_slow_source_only() {
    let chaos = Chaos::new();
    // Longer than a start waits for sources that need not be reached.
    chaos.script("a", &json!({"start_shell": "sleep 16"}));
    let config = config(&chaos, &json!({}), &json!({}));
    let mut client = over_stdio(&chaos, &config);
    let listed = client.request(json!("list"), "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(3));
    let began = tokio::time::Instant::now();
    let other = client.tool("meta_call", echo("b"));
    assert!(other["isError"] != true, "{other}");
    assert_eq!(chaos.events("a", "list"), [] as [Value; 0]);
    let slow = client.tool("meta_call", echo("a"));
    assert!(slow["isError"] != true, "{slow}");
    assert!(began.elapsed().as_secs() >= 10, "{:?}", began.elapsed());
    assert_eq!(client.end().status.code(), Some(0));
}
