//! The closed set of call codes: each is produced by the real binary, in the test `CODE_is_returned_for_…`.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::TcpStream;

use broker_model::CallCode;
use harness::mcp_http::modern;
use harness::{
    Broker, Chaos, ChaosServer, DirectServer, Run, http_script, on_echo, post, post_bytes, raw,
    read, refusal, request, send, wait_until,
};
use serde_json::{Value, json};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn run(chaos: &Chaos) -> Run {
    chaos.run("chaos-broker", &["127.0.0.1:0"])
}

/// A broker whose sources are ready.
fn ready(chaos: &Chaos) -> Broker {
    Broker::start_ready(run(chaos))
}

/// A broker that answers from its catalog; its sources may still be starting.
fn listening(chaos: &Chaos) -> Broker {
    Broker::start(run(chaos))
}

/// A broker whose source `/a` answers calls of `tool` in this way.
fn answering(chaos: &Chaos, tool: &str, behaviour: Value) -> Broker {
    chaos.script("a", &json!({"on_call": {tool: behaviour}}));
    ready(chaos)
}

#[test]
fn json_invalid_is_returned_for_a_body_that_is_not_json() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let response = request(
        broker.address(),
        "POST",
        "/meta_call",
        &[JSON],
        br#"{"path": }"#,
    );
    let error = refusal(&response, 400, "json_invalid");
    assert_eq!(error["details"]["offset"], 9, "{error}");
}

#[test]
fn path_invalid_is_returned_for_a_path_outside_the_grammar() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let response = broker.call("/a/../b", json!({}));
    refusal(&response, 400, "path_invalid");
}

#[test]
fn path_is_tool_is_returned_for_a_listing_of_a_tool() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let response = broker.post("/meta_tree", &json!({"path": "/a/echo"}));
    let error = refusal(&response, 400, "path_is_tool");
    assert_eq!(error["path"], "/a/echo");
}

#[test]
fn path_is_node_is_returned_for_a_call_of_a_node() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let error = refusal(&broker.call("/a", json!({})), 400, "path_is_node");
    assert_eq!(error["path"], "/a");
}

#[test]
fn field_unknown_is_returned_for_an_unknown_field() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let response = broker.post("/meta_tree", &json!({"path": "/", "dept": 2}));
    let error = refusal(&response, 400, "field_unknown");
    assert_eq!(error["did_you_mean"][0], "depth");
}

#[test]
fn field_invalid_is_returned_for_a_wrong_field_value() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    for body in [
        json!({"path": "/", "depth": 0}),
        json!({"path": "/", "depth": 17}),
        json!({"path": "/", "depth": "one"}),
        json!({"path": "/", "depth": 1.5}),
    ] {
        refusal(&broker.post("/meta_tree", &body), 400, "field_invalid");
    }
    for body in [
        json!({}),
        json!({"path": null, "paths": ""}),
        json!({"paths": "/"}),
    ] {
        refusal(&broker.post("/meta_desc", &body), 400, "field_invalid");
    }
    for args in [json!([]), json!("[]"), json!(""), json!(1)] {
        refusal(&broker.call("/a/echo", args), 400, "field_invalid");
    }
}

#[test]
fn header_invalid_is_returned_for_a_request_without_host() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let response = raw(
        broker.address(),
        b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    refusal(&response, 400, "header_invalid");
}

#[test]
fn unauthorized_is_returned_for_a_request_without_the_secret() {
    let chaos = Chaos::new();
    let broker = Broker::start(run(&chaos).env("MCP_BROKER_SECRET", "s3cret-for-tests"));
    let response = broker.post("/meta_tree", &json!({}));
    refusal(&response, 401, "unauthorized");
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn host_forbidden_is_returned_for_a_foreign_host() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let head = "GET /healthz HTTP/1.1\r\nHost: evil.com\r\nConnection: close\r\n\r\n";
    refusal(
        &raw(broker.address(), head.as_bytes()),
        403,
        "host_forbidden",
    );
}

#[test]
fn origin_forbidden_is_returned_for_a_foreign_origin() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let origin = [("Origin", "http://evil.com")];
    let response = request(broker.address(), "GET", "/healthz", &origin, b"");
    refusal(&response, 403, "origin_forbidden");
}

#[test]
fn path_not_found_is_returned_for_an_unknown_path() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let error = refusal(&broker.call("/a/ecko", json!({})), 404, "path_not_found");
    assert_eq!(error["did_you_mean"][0], "/a/echo");
}

#[test]
fn route_not_found_is_returned_for_an_unknown_route() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let error = refusal(
        &broker.post("/meta_cal", &json!({})),
        404,
        "route_not_found",
    );
    assert_eq!(error["did_you_mean"][0], "/meta_call");
}

#[test]
fn method_not_allowed_is_returned_for_a_wrong_method() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let response = broker.get("/meta_call");
    refusal(&response, 405, "method_not_allowed");
    assert_eq!(response.header("allow"), Some("POST"));
}

#[test]
fn tool_withdrawn_is_returned_for_a_drifted_tool() {
    let chaos = Chaos::new();
    let tools = Chaos::tools_asking_more("echo");
    chaos.script("a", &json!({"tools": tools}));
    let broker =
        Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", "--ignore-broken-tool"]));
    let response = broker.call("/a/echo", json!({"text": "x"}));
    let error = refusal(&response, 409, "tool_withdrawn");
    assert_eq!(error["details"]["rules"], json!(["input-required-added"]));
    assert_eq!(chaos.events("a", "call"), Vec::<Value>::new());
}

#[test]
fn body_too_large_is_returned_for_a_body_over_the_limit() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let text = "x".repeat(5 << 20);
    let response = broker.call("/a/echo", json!({"text": text}));
    refusal(&response, 413, "body_too_large");
}

#[test]
fn content_type_is_returned_for_a_body_of_another_type() {
    let chaos = Chaos::new();
    let broker = listening(&chaos);
    let plain = [("Content-Type", "text/plain")];
    let response = request(broker.address(), "POST", "/meta_tree", &plain, b"{}");
    refusal(&response, 415, "content_type");
}

#[test]
fn args_invalid_is_returned_for_arguments_against_the_schema() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    let error = refusal(
        &broker.call("/a/echo", json!({"text": 7})),
        422,
        "args_invalid",
    );
    let first = &error["details"]["errors"][0];
    assert_eq!(first["pointer"], "/text", "{error}");
    assert_eq!(first["keyword"], "type", "{error}");
    assert_eq!(error["details"]["args_schema"]["required"], json!(["text"]));
    assert_eq!(error["maybe_executed"], false);
    assert_eq!(chaos.events("a", "call"), Vec::<Value>::new());
}

#[test]
fn overloaded_is_returned_for_a_full_queue() {
    let chaos = Chaos::new();
    chaos.script("b", &json!({"on_call": {"slow": "hang"}}));
    let broker = ready(&chaos);
    let body = json!({"path": "/b/slow", "args": {"ms": 1}}).to_string();
    let bytes = post_bytes(broker.address(), "/meta_call", &body);
    // One call in flight, 256 in the queue, and one too many; which one is refused is not defined.
    let mut calls: Vec<TcpStream> = (0..258).map(|_| send(broker.address(), &bytes)).collect();
    let mut refused = None;
    wait_until("a call is refused", || {
        refused = calls.iter().position(is_answered);
        refused.is_some()
    });
    // The others stay connected: a caller that disconnects makes room.
    let response = read(calls.swap_remove(refused.expect("it was found")));
    let error = refusal(&response, 429, "overloaded");
    assert_eq!(error["retryable"], true);
    assert_eq!(error["maybe_executed"], false);
    assert_eq!(chaos.events("b", "call").len(), 1, "`max_in_flight` is 1");
}

/// Whether there is something to read.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a mode can be set");
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("a mode can be set");
    match peeked {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn source_error_is_returned_for_an_rpc_error_of_the_server() {
    let chaos = Chaos::new();
    let rpc = json!({"code": -32050, "message": "out of paper", "data": {"tray": [1, 2.5, null]}});
    let broker = answering(&chaos, "echo", json!({"rpc_error": rpc}));
    let error = refusal(
        &broker.call("/a/echo", json!({"text": "x"})),
        502,
        "source_error",
    );
    assert_eq!(error["details"]["rpc"], rpc);
}

#[test]
fn source_exited_is_returned_for_a_server_that_exits() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    let error = refusal(
        &broker.call("/a/die", json!({"code": 9})),
        502,
        "source_exited",
    );
    assert_eq!(error["maybe_executed"], true);
    assert_eq!(error["retryable"], false);
    assert_eq!(error["details"]["exit_code"], 9, "{error}");
}

#[test]
fn source_protocol_is_returned_for_an_invalid_answer() {
    let chaos = Chaos::new();
    let broker = answering(&chaos, "echo", json!("not-object"));
    refusal(
        &broker.call("/a/echo", json!({"text": "x"})),
        502,
        "source_protocol",
    );
}

#[test]
fn output_too_large_is_returned_for_an_answer_over_the_limit() {
    let chaos = Chaos::new();
    let broker = answering(&chaos, "echo", json!({"big": 2 << 20}));
    let error = refusal(
        &broker.call("/a/echo", json!({"text": "x"})),
        502,
        "output_too_large",
    );
    assert_eq!(error["maybe_executed"], true);
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(chaos.pids("a").len(), 1, "the server is kept");
}

#[test]
fn source_unavailable_is_returned_for_a_server_that_is_down() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"start_exit": 3, "start_stderr": "no licence"}));
    let broker =
        Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", "--ignore-broken-tool"]));
    let response = broker.call("/a/echo", json!({"text": "x"}));
    let error = refusal(&response, 503, "source_unavailable");
    assert_eq!(error["details"]["cause"], "exit_before_ready");
    assert_eq!(error["details"]["exit_code"], 3, "{error}");
    assert!(error["details"].get("stderr").is_none(), "{error}");
    wait_until("its last words are in the log", || {
        broker.stderr().contains("no licence")
    });
    assert_eq!(error["maybe_executed"], false);
}

#[test]
fn starting_is_returned_for_a_call_before_the_verdict() {
    let chaos = Chaos::new();
    chaos.script("b", &json!({"start_delay_ms": 600_000}));
    let broker = listening(&chaos);
    let error = refusal(
        &broker.call("/b/echo", json!({"text": "x"})),
        503,
        "starting",
    );
    assert_eq!(error["retryable"], true);
}

#[test]
fn start_refused_is_returned_for_a_call_after_a_refused_start() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_without("echo")}));
    // A listener ends with the refusal; over stdio the broker answers until its client leaves.
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let config = chaos.config(compiled, |config| config["on_drift"] = json!("refuse"));
    let mut broker = DirectServer::start(chaos.run("chaos-broker", &["stdio", &config]));
    let call = json!({"path": "/b/echo", "args": {"text": "x"}});
    let answer = broker.call("meta_call", &call);
    let text = answer["result"]["content"][0]["text"].as_str();
    let error: Value = serde_json::from_str(text.expect("a text")).expect("an error object");
    assert_eq!(
        (&error["code"], &error["details"]["class"]),
        (&json!("start_refused"), &json!("gone")),
        "{error}"
    );
    assert_eq!(error["details"]["source"], "/a");
    assert!(error.get("retryable").is_none(), "{error}");
}

#[test]
fn shutting_down_is_returned_for_a_request_during_the_drain() {
    let chaos = Chaos::new();
    let broker = answering(&chaos, "echo", json!("hang"));
    let address = broker.address().to_owned();
    let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
    let _in_flight = send(&address, &post_bytes(&address, "/meta_call", &body));
    chaos.await_events("a", "call", 1);
    broker.signal("TERM");
    wait_until("the broker begins to stop", || {
        broker.stderr().contains("stopping")
    });
    let mut response = None;
    wait_until("new requests are refused", || {
        let latest = post(&address, "/meta_tree", &json!({}));
        let refused = latest.status != 200;
        response = Some(latest);
        refused
    });
    let response = response.expect("there was one");
    refusal(&response, 503, "shutting_down");
    assert_eq!(response.header("connection"), Some("close"));
    let call = broker.call("/a/add", json!({"a": 1, "b": 2}));
    refusal(&call, 503, "shutting_down");
    assert_eq!(broker.get("/readyz").status, 503);
}

#[test]
fn call_timeout_is_returned_for_a_call_that_hangs() {
    let chaos = Chaos::new();
    let broker = answering(&chaos, "slow", json!("hang"));
    let error = refusal(
        &broker.call("/a/slow", json!({"ms": 1})),
        504,
        "call_timeout",
    );
    assert_eq!(error["maybe_executed"], true);
    let calls = chaos.events("a", "call");
    let cancelled = chaos.await_events("a", "cancelled", 1);
    assert_eq!(cancelled[0]["id"], calls[0]["id"]);
    assert_eq!((calls.len(), cancelled.len()), (1, 1));
}

#[test]
fn upstream_http_is_returned_for_a_call_that_gets_an_http_error() {
    let chaos = Chaos::new();
    let fault = json!([on_echo(&json!({"status": 500, "body": "no"}))]);
    chaos.script("h", &http_script("modern", &json!({"rules": fault})));
    let server = ChaosServer::start(&chaos, "h");
    let config = chaos.path().join("http.json");
    let source = json!({"url": server.url, "tool_filter": ["echo"]});
    let tree = json!({"tree": [{"path": "/h", "source": source}]});
    std::fs::write(&config, tree.to_string()).expect("the config is written");
    let config = config.to_string_lossy();
    let locked = chaos
        .run("broker-gen", &["lock", "--config", &config])
        .output();
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    let broker = Broker::start_ready(chaos.run("broker-gen", &["serve", "0", "--config", &config]));
    let error = refusal(
        &broker.call("/h/echo", json!({"text": "x"})),
        502,
        "upstream_http",
    );
    assert_eq!(error["details"]["status"], 500);
}

/// An issuer whose port no program listens on.
const UNREACHABLE: &str = "http://127.0.0.1:9";
/// A token of that issuer: `{"alg":"ES256","typ":"at+jwt","kid":"k"}`, `{"iss":…,"aud":"a","sub":"s","exp":4000000000}`, and a
/// signature of zeros.
const TOKEN: &str = "eyJhbGciOiAiRVMyNTYiLCAidHlwIjogImF0K2p3dCIsICJraWQiOiAiayJ9.eyJpc3MiOiAiaHR0cDovLzEyNy4wLjAuMTo5IiwgImF1ZCI6ICJhIiwgInN1YiI6ICJzIiwgImV4cCI6IDQwMDAwMDAwMDB9.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// A broker over one scripted source, with these further members of its config.
fn serve_with(chaos: &Chaos, members: &Value) -> Broker {
    chaos.script("s", &json!({}));
    let config = chaos.path().join("own.json");
    let source = json!({"command": [harness::binary("chaos-mcp"), chaos.path().join("s.json")]});
    let mut all = json!({"tree": [{"path": "/s", "source": source}]});
    let members = members.as_object().expect("an object").clone();
    all.as_object_mut().expect("an object").extend(members);
    std::fs::write(&config, all.to_string()).expect("the config is written");
    let config = config.to_string_lossy();
    let locked = chaos
        .run("broker-gen", &["lock", "--config", &config])
        .output();
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    Broker::start_ready(chaos.run("broker-gen", &["serve", "0", "--config", &config]))
}

#[test]
fn audit_unavailable_is_returned_for_a_call_while_the_audit_log_is_full() {
    let chaos = Chaos::new();
    let config = chaos.config(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/chaos-broker/config.json"
        ),
        |config| config["audit"] = json!({"file": "audit.jsonl"}),
    );
    // Writes beyond the limit fail like those on a full disk.
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", &config]);
    let broker = Broker::start_ready(run.through("sh", &["-c", limited]));
    wait_until("the file is full", || {
        broker.call("/b/echo", json!({"text": "x"})).status != 200
    });
    let response = broker.call("/b/echo", json!({"text": "x"}));
    let error = refusal(&response, 503, "audit_unavailable");
    assert_eq!(error["maybe_executed"], false, "{error}");
}

#[test]
fn forbidden_is_returned_for_a_tool_that_the_caller_may_not_use() {
    let chaos = Chaos::new();
    let rules = json!([{"allow": ["/**"], "to": ["a"]}]);
    let access = json!({"groups": ["a"], "rules": rules, "denied": "forbidden"});
    let broker = serve_with(&chaos, &json!({"access": access}));
    refusal(
        &broker.call("/s/echo", json!({"text": "x"})),
        403,
        "forbidden",
    );
}

#[test]
fn identity_unavailable_is_returned_for_a_token_whose_issuer_is_not_reachable() {
    let chaos = Chaos::new();
    let issuers = json!([{"issuer": UNREACHABLE, "audience": ["a"], "algorithms": ["ES256"]}]);
    let broker = serve_with(&chaos, &json!({"identities": {"issuers": issuers}}));
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", &bearer),
    ];
    let body = br#"{"path":"/"}"#;
    let reply = harness::request(broker.address(), "POST", "/meta_tree", &headers, body);
    refusal(&reply, 503, "identity_unavailable");
}

#[test]
fn call_codes_are_all_tested() {
    // The codes of jobs are produced beside the other tests of jobs.
    let source = concat!(include_str!("codes.rs"), include_str!("../jobs/codes.rs"));
    let source = source.split("#[test]\nfn ").skip(1);
    let names = source.filter_map(|rest| rest.split_once("()").map(|(name, _)| name));
    let tests = names.filter_map(|name| name.split_once("_is_returned_for_"));
    let all: BTreeSet<&str> = CallCode::ALL.iter().map(|code| code.as_str()).collect();
    let mut tested: BTreeSet<&str> = tests.map(|(code, _)| code).collect();
    // A panic cannot be requested; it is tested where codes are mapped to statuses.
    // Only a client over stdio gets `lock_stale`: `stdio_client_is_served_by_the_sources_that_are_not_stale`.
    tested.extend(["internal", "lock_stale"]);
    assert_eq!(tested, all);
}

#[test]
fn error_over_mcp_names_no_page() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    for (route, params) in [
        (
            "/mcp",
            json!({"name": "meta_call", "arguments": {"path": "/a/nothing"}}),
        ),
        ("/mcp", json!({"name": "nothing", "arguments": {}})),
        (
            "/mcp/search",
            json!({"name": "call_tool", "arguments": {"name": "/a/echo", "arguments": {"text": 1}}}),
        ),
        ("/mcp/direct", json!({"name": "a-nothing", "arguments": {}})),
    ] {
        let answer = modern(broker.address(), route, &json!(1), "tools/call", &params);
        let text = answer.text();
        let is_error = text.contains("\"error\"") || text.contains("\"isError\":true");
        assert!(is_error && !text.contains("errors.md"), "{text}");
    }
}
