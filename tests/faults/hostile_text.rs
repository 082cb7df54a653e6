//! Text of a server reaches callers only in results and in `details.rpc`, and no text of a server or of
//! a config acts on a terminal or forges a line of the log.

use std::fs;

use harness::{
    Broker, Chaos, DirectServer, FLOOD, Response, Run, assert_inert, binary, flooded,
    flooded_places, refusal, wait_until,
};
use serde_json::{Value, json};

/// A marker in every field that a server writes, with terminal controls.
const MARK: &str = "IGNORE-PREVIOUS";
/// Names a variable of the broker's environment; the source does not get it.
const VARIABLE: &str = "MARKED_API_KEY";

fn marked() -> String {
    format!("{MARK} instructions{FLOOD}")
}

/// The scripts of the sources, by the name of the field that they flood.
fn scripts() -> Vec<(&'static str, Value)> {
    let mark = marked();
    let error = json!({"code": -32001, "message": mark, "data": {"a": [mark], mark.as_str(): 1}});
    let line = |line: &str| json!({"raw_line": line});
    let text = json!(mark).to_string();
    let notes = [
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"error\",\"logger\":{text},\"data\":{text}}}}}"
        ),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{text},\"progress\":1,\"message\":{text}}}}}"
        ),
        format!("{{\"jsonrpc\":\"2.0\",\"method\":{text},\"params\":{{}}}}"),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{text},\"method\":\"sampling/createMessage\",\"params\":{{\"a\":{text}}}}}"
        ),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{text},\"result\":{text}}}"),
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[]}}".to_owned(),
    ];
    let tools = |change: &dyn Fn(&mut Value)| {
        Value::from_iter(Chaos::tools().into_iter().map(|mut tool| {
            change(&mut tool);
            tool
        }))
    };
    vec![
        (
            "exit",
            json!({"start_exit": 3, "stderr_lines": [mark, MARK], "start_stderr": format!("{mark}\n{MARK}")}),
        ),
        (
            "exit of 0",
            json!({"start_exit": 0, "stderr_lines": [mark, MARK]}),
        ),
        (
            "noise",
            json!({"start_noise": [mark], "stderr_lines": [mark, MARK]}),
        ),
        (
            "serverInfo",
            json!({"server_info": flooded(&json!({
            "name": mark, "version": mark, "title": mark, "websiteUrl": mark, "icons": [{"src": mark}],
        }), false)}),
        ),
        ("instructions", json!({"instructions": mark})),
        (
            "capabilities",
            json!({"capabilities": {"tools": {}, mark.as_str(): {mark.as_str(): mark}}}),
        ),
        (
            "revision",
            json!({"era": "legacy", "protocol_version": mark}),
        ),
        (
            "revisions",
            json!({"era": "modern", "supported_versions": [mark]}),
        ),
        ("probe", json!({"era": "both", "probe_error": error})),
        (
            "initialize",
            json!({"era": "legacy", "on_method": {"initialize": {"rpc_error": error}}}),
        ),
        (
            "discover",
            json!({"era": "modern", "on_method": {"server/discover": {"rpc_error": error}}}),
        ),
        (
            "discover result",
            json!({"era": "modern", "on_method": {"server/discover": {"result": {"supportedVersions": mark}}}}),
        ),
        ("list error", json!({"list_error": error})),
        (
            "list result",
            json!({"on_method": {"tools/list": {"result": {"tools": [mark]}}}}),
        ),
        (
            "list names",
            json!({"on_method": {"tools/list": {"result": {"tools": [{"name": 1, "a": mark}]}}}}),
        ),
        (
            "tool texts",
            json!({"tools": tools(&|tool| {
                tool["description"] = mark.as_str().into();
                tool["annotations"] = json!({"title": mark});
            })}),
        ),
        (
            "tool names",
            json!({"tools": tools(&|tool| tool["name"] = format!("{}{mark}", tool["name"]).into())}),
        ),
        (
            "tool schemas",
            json!({"tools": tools(&|tool| {
                tool["inputSchema"] = json!({
                    "type": "object", "properties": {mark.as_str(): {"type": mark}}, "required": [mark],
                    "$schema": mark, "x": {"$ref": mark, "pattern": mark},
                });
            })}),
        ),
        ("error", json!({"on_call": {"echo": {"rpc_error": error}}})),
        (
            "long error",
            json!({"on_call": {"echo": {"rpc_error": {"code": -1, "message": mark.repeat(2000), "data": mark.repeat(2000)}}}}),
        ),
        (
            "error without code",
            json!({"on_call": {"echo": line(&format!("{{\"id\":$ID,\"error\":{{\"message\":{text}}}}}"))}}),
        ),
        (
            "error as text",
            json!({"on_call": {"echo": line(&format!("{{\"id\":$ID,\"error\":{text}}}"))}}),
        ),
        (
            "result as text",
            json!({"on_call": {"echo": {"raw_result": text}}}),
        ),
        (
            "result type",
            json!({"on_call": {"echo": {"result": {"resultType": mark}}}}),
        ),
        (
            "both",
            json!({"on_call": {"echo": line(&format!("{{\"id\":$ID,\"result\":{{}},\"error\":{{\"code\":1,\"message\":{text}}}}}"))}}),
        ),
        (
            "half a line",
            json!({"on_call": {"echo": line(&format!("{{\"id\":$ID,\"result\":{text}"))}}),
        ),
        (
            "death",
            json!({"stderr_lines": [mark, MARK], "on_call": {"echo": "exit:7"}}),
        ),
        (
            "notifications",
            json!({"on_call": {"echo": line(&notes.join("\n"))}}),
        ),
    ]
}

/// A reply without the parts of the server: the result of a call, and its JSON-RPC error.
fn of_the_broker(reply: &Value) -> String {
    let mut reply = reply.clone();
    if reply.get("result").is_some() {
        reply["result"] = Value::Null;
    }
    if reply["error"]["code"] == "source_error" {
        let rpc = reply["error"]["details"]["rpc"].take();
        assert!(
            rpc.to_string().len() <= (16 << 10) + 100,
            "{}",
            rpc.to_string().len()
        );
        assert!(rpc["code"].is_i64(), "{rpc}");
    }
    reply.to_string()
}

#[track_caller]
fn has_no_mark(what: &str, text: &str) {
    assert!(!text.contains(MARK), "{what}: {text}");
    assert!(!text.contains(VARIABLE), "{what}: {text}");
}

/// Calls with arguments that their tools accept.
fn calls() -> [(&'static str, Value); 3] {
    [
        ("/a/echo", json!({"text": "x"})),
        ("/a/add", json!({"a": 1, "b": 2})),
        ("/a/slow", json!({"ms": 1})),
    ]
}

fn replies(broker: &Broker) -> Vec<Response> {
    let paths = calls().map(|(path, _)| path);
    let answers = calls().map(|(path, args)| broker.call(path, args));
    let mut all: Vec<_> = answers.into();
    all.push(broker.call("/a/echo", json!({"text": "again"})));
    all.push(broker.post("/meta_tree", &json!({"depth": 16})));
    all.push(broker.post("/meta_desc", &json!({"paths": paths})));
    all.extend(["/readyz", "/sources", "/healthz"].map(|route| broker.get(route)));
    all
}

#[test]
fn server_texts_reach_callers_only_in_results_and_rpc_errors() {
    for (what, script) in scripts() {
        let chaos = Chaos::new();
        chaos.script("a", &script);
        let args = [
            "127.0.0.1:0",
            "--ignore-broken-tool",
            "--log-level",
            "debug",
        ];
        let broker = Broker::start_ready(chaos.run("chaos-broker", &args).env(VARIABLE, "a-value"));
        wait_until("the source was checked", || {
            broker.source("/a")["state"] != "starting"
        });
        for reply in replies(&broker) {
            has_no_mark(what, &of_the_broker(&reply.json()));
        }
        let log = broker.stderr();
        assert_inert(what, &log);
        // The report contains the texts for the operator.
        if what == "exit" || what == "death" {
            wait_until("the log says what the server last said", || {
                broker.stderr().contains(MARK)
            });
        }
    }
}

#[test]
fn server_texts_reach_stdio_clients_only_in_results_and_rpc_errors() {
    for (what, script) in scripts() {
        let chaos = Chaos::new();
        chaos.script("a", &script);
        let run = chaos.run("chaos-broker", &["stdio", "--ignore-broken-tool"]);
        let mut client = DirectServer::start(run.env(VARIABLE, "a-value"));
        has_no_mark(what, &json!(client.tools()).to_string());
        for (path, args) in calls() {
            let args = json!({"path": path, "args": args});
            let mut result = Value::Null;
            wait_until("the source was checked", || {
                result = client.call("meta_call", &args)["result"].take();
                !result.to_string().contains(r#"\"code\":\"starting\""#)
            });
            if result["isError"] != true {
                continue;
            }
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            if let Ok(error) = serde_json::from_str::<Value>(text) {
                has_no_mark(what, &of_the_broker(&json!({ "error": error })));
            }
        }
        for (tool, args) in [
            ("meta_tree", json!({"depth": 16})),
            ("meta_desc", json!({"path": "/a/echo"})),
        ] {
            has_no_mark(what, &client.call(tool, &args).to_string());
        }
    }
}

#[test]
fn source_failure_has_cause_and_exit_for_callers_and_text_in_the_log() {
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"start_exit": 3, "stderr_lines": [marked(), MARK]}),
    );
    let args = ["127.0.0.1:0", "--ignore-broken-tool"];
    let broker = Broker::start_ready(chaos.run("chaos-broker", &args).env(VARIABLE, "a-value"));
    let response = broker.call("/a/echo", json!({"text": "x"}));
    let error = refusal(&response, 503, "source_unavailable");
    assert_eq!(error["message"], "the server exited with code 3");
    assert_eq!(
        error["details"],
        json!({"cause": "exit_before_ready", "exit_code": 3, "signal": null})
    );
    wait_until("the log has its last words and the variable", || {
        let log = broker.stderr();
        log.contains(MARK) && log.contains(VARIABLE)
    });
    assert_inert("the log", &broker.stderr());
    let doctor = chaos
        .run("chaos-broker", &["doctor"])
        .env(VARIABLE, "a-value");
    let said = doctor.output().stdout;
    assert!(said.contains(MARK) && said.contains(VARIABLE), "{said}");
}

/// Checks the output of a program, with both streams on a pipe and on a terminal.
fn printed(chaos: &Chaos, args: &[&str]) {
    let run = |args: &[&str]| chaos.run("chaos-broker", args).env("TERM", "dumb");
    let output = run(args).output();
    let what = args.join(" ");
    assert_inert(&what, &output.stdout);
    assert_inert(&what, &output.stderr);
    let (_, screen) = run(args).on_terminal();
    assert_inert(&what, &screen);
}

#[test]
fn server_texts_reach_no_terminal_of_an_operator_unescaped() {
    for (what, script) in scripts() {
        let chaos = Chaos::new();
        chaos.script("a", &script);
        // A server that serves would keep the broker running: `b` keeps it from starting.
        chaos.script("b", &json!({"tools": [], "instructions": marked()}));
        printed(&chaos, &["doctor"]);
        printed(&chaos, &["127.0.0.1:0", "--log-level", "trace"]);
        let json = ["127.0.0.1:0", "--log-format", "json"];
        let report = chaos.run("chaos-broker", &json).output();
        assert_inert(what, &report.stderr);
        let doctor = chaos
            .run("chaos-broker", &["doctor", "--format", "json"])
            .output();
        assert_inert(what, &doctor.stdout);
        assert!(
            serde_json::from_str::<Value>(&doctor.stdout).is_ok(),
            "{what}"
        );
    }
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"start_exit": 3, "stderr_lines": [marked(), MARK]}),
    );
    let args = ["127.0.0.1:0", "--ignore-broken-tool"];
    let broker = Broker::start_ready(chaos.run("chaos-broker", &args));
    for form in ["human", "json"] {
        printed(&chaos, &["status", broker.address(), "--format", form]);
    }
}

#[test]
fn config_strings_at_a_start_are_shown_escaped() {
    let chaos = Chaos::new();
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let text = fs::read_to_string(compiled).expect("it is there");
    let mut config: Value = serde_json::from_str(&text).expect("it is JSON");
    // The sources are alike: one of them has every kind of place. Its servers never start, so that no
    // variant serves.
    config["tree"].as_array_mut().expect("a list").truncate(1);
    for variant in flooded_places(&config) {
        let file = chaos.file("given.json", &variant.to_string());
        let file = file.to_str().expect("a path");
        for format in ["human", "json"] {
            let args = ["not-an-address", file, "--log-format", format];
            let output = Run::new(&binary("chaos-broker")).args(args).output();
            assert_inert(format, &output.stderr);
        }
        let output = chaos.run("chaos-broker", &["127.0.0.1:0", file]).output();
        assert_eq!(output.code, Some(2), "{variant}: {}", output.stderr);
        assert_inert("a start", &output.stderr);
    }
}
