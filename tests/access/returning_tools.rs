//! A deny stays in force for a tool that returns: one that the lock left out, and one that was withdrawn.

use harness::{Bench, Broker, Chaos, refusal, wait_until};
use serde_json::{Value, json};

use crate::caller::{Caller, Key, listed};
use crate::stage::{Stage, scripted, serve};

/// Denies `echo` of both sources to all callers but `root`.
fn access() -> Value {
    json!({
        "groups": ["reader", "admin"],
        "rules": [
            {"allow": ["/**"], "to": ["reader", "admin"]},
            {"deny": ["/a/echo", "/b/ech?"], "to": ["*"], "except": ["admin"]},
        ],
    })
}

/// A broker over these scripts for `/a` and `/b`, whose lock ends with this exit code; `ada` reads, `root` is an admin.
fn stage(scripts: [&Value; 2], code: i32) -> (Stage, Caller, Caller) {
    let keys = [Key::new("ada", &["reader"]), Key::new("root", &["admin"])];
    let bench = Bench::new();
    for (name, script) in ["a", "b"].iter().zip(scripts) {
        bench.script(name, script);
    }
    let mut config = scripted(access());
    config["identities"]["keys_file"] = json!("keys.json");
    bench.write("c.json", &config.to_string());
    let entries: Vec<_> = keys.iter().map(|key| key.entry.clone()).collect();
    bench.write("keys.json", &json!({"keys": entries}).to_string());
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(code), "{}", output.stderr);
    let broker = Broker::start_ready(serve(&bench));
    let stage = Stage { bench, broker };
    let [ada, root] = keys.map(|key| stage.caller(&key));
    (stage, ada, root)
}

fn text() -> Value {
    json!({"text": "x"})
}

/// The caller neither sees nor calls `echo` of these sources, by any surface.
fn has_no_echo(caller: &Caller, sources: &[&str]) {
    let tree = caller.tree("/", 16).text();
    assert!(!tree.contains("/echo"), "{tree}");
    let session = caller.session("/mcp/direct");
    let names = listed(|params| session.ask("tools/list", params));
    let found = caller.post("/meta_tree", &json!({"query": "echo its arguments"}));
    assert!(!found.text().contains("/echo"), "{}", found.text());
    for source in sources {
        let path = format!("/{source}/echo");
        refusal(&caller.call(&path, &text()), 404, "path_not_found");
        refusal(&caller.describe(&path), 404, "path_not_found");
        let flat = format!("{source}-echo");
        assert!(!names.contains(&flat), "{names:?}");
        let call = json!({"name": flat, "arguments": text()});
        let reply = session.ask("tools/call", &call).json();
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
}

/// No server has executed `echo` more often than `root` called it.
fn executed(stage: &Stage, source: &str) -> usize {
    let calls = stage.journal(source, "call").into_iter();
    calls.filter(|call| call["tool"] == "echo").count()
}

#[test]
fn deny_stays_in_force_for_a_tool_that_the_lock_left_out_and_takes_back() {
    let broken = Chaos::tools_with("echo", |tool| {
        tool["inputSchema"]["properties"]["n"] = json!({"type": "int"});
    });
    let odd = json!({"plain": true, "tools": broken});
    let (stage, ada, root) = stage([&odd, &json!({"start_exit": 3})], 8);
    for caller in [&ada, &root] {
        has_no_echo(caller, &["a", "b"]);
        assert_eq!(caller.call("/a/add", &json!({"a": 1, "b": 2})).status, 200);
    }
    let before = ada.tree("/a", 1).body;

    let fine = json!({"plain": true});
    stage.bench.script("a", &fine);
    stage.bench.script("b", &fine);
    stage.bench.lock();
    wait_until("the new lock is served", || {
        ["/a/echo", "/b/echo"]
            .iter()
            .all(|path| root.call(path, &text()).status == 200)
    });
    let ran = (executed(&stage, "a"), executed(&stage, "b"));
    has_no_echo(&ada, &["a", "b"]);
    assert_eq!(ada.tree("/a", 1).body, before);
    assert_eq!(ada.call("/b/add", &json!({"a": 1, "b": 2})).status, 200);
    assert_eq!((executed(&stage, "a"), executed(&stage, "b")), ran);
}

#[test]
fn deny_stays_in_force_for_a_withdrawn_tool_that_returns() {
    let fine = json!({"plain": true});
    let (stage, ada, root) = stage([&fine, &fine], 0);
    has_no_echo(&ada, &["a"]);
    let gone = json!({"plain": true, "tools": Chaos::tools_without("echo"), "generation": 1});
    stage.bench.script("a", &gone);
    wait_until("the tool is withdrawn", || {
        !root.describe("/a/echo").json()["withdrawn"].is_null()
    });
    has_no_echo(&ada, &["a"]);
    stage
        .bench
        .script("a", &json!({"plain": true, "generation": 2}));
    wait_until("the tool is back", || {
        root.call("/a/echo", &text()).status == 200
    });
    has_no_echo(&ada, &["a"]);
    assert_eq!(executed(&stage, "a"), 1);
}
