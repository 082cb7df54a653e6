//! A lock that is stale for some sources, under rules of access: over stdio the others are served under the rules that
//! were reviewed, or every call is refused.

use broker_model::lock::Lock;
use harness::{contains, wait_until};
use serde_json::{Value, json};

use super::{Bench, StdioClient};

/// The rules: every source has a tool that the local caller may call.
fn rules() -> Value {
    let short = json!({"properties": {"text": {"maxLength": 3}}});
    json!({
        "groups": ["g"], "local": ["g"],
        "rules": [
            {"allow": ["/a/**"], "to": ["g"]},
            {"deny": ["/a/add"], "to": ["g"]},
            {"allow": ["/b/echo"], "to": ["g"], "args": short},
            {"allow": ["/c/echo"], "to": ["g"]},
        ],
    })
}

/// The config with these rules. Its source `/c` is a copy of `/b`, which is disabled when it is locked.
fn configure(config: &mut Value, access: Option<Value>, is_locked: bool) {
    let mut added = config["tree"][1].clone();
    added["path"] = json!("/c");
    added["source"]["disabled"] = json!(is_locked);
    config["tree"].as_array_mut().expect("a list").push(added);
    if !is_locked {
        config["tree"][1]["source"]["tool_filter"] = json!(["echo", "slow"]);
        config["tree"][1]["source"]["path_aliases"] = json!({"echo": "say"});
    }
    if let Some(access) = access {
        config["access"] = access;
    }
}

/// A bench with a lock of the rules.
fn locked() -> Bench {
    let bench = Bench::new();
    bench.change(|config| configure(config, Some(rules()), true));
    bench.lock();
    bench
}

fn call(client: &mut StdioClient, path: &str, args: &Value) -> Value {
    let params = json!({"name": "meta_call", "arguments": {"path": path, "args": args}});
    client.result("tools/call", &params)
}

/// The code of the error of a call.
fn code_of(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let error: Value = serde_json::from_str(text).expect("an error object");
    error["code"].as_str().expect("a code").to_owned()
}

/// The problems for which every call is refused.
fn refused(bench: &Bench) -> Vec<String> {
    let mut client = StdioClient::start(bench.serve(&["stdio"]));
    let mut all = Vec::new();
    for source in ["/a", "/b", "/optional"] {
        let result = client.echo(source);
        assert_eq!(code_of(&result), "start_refused", "{result}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        let error: Value = serde_json::from_str(text).expect("an error object");
        let problems = error["details"]["problems"].as_array().expect("a list");
        for problem in problems {
            assert_eq!(problem["code"], "lock_stale", "{error}");
            all.push(problem.to_string());
        }
    }
    assert_eq!(client.end(), Some(5));
    all
}

#[test]
fn stale_source_beside_changed_rules_refuses_every_call() {
    let bench = locked();
    let removed = "the section `access` was removed since it was locked";
    bench.change(|config| configure(config, None, false));
    contains(&refused(&bench).join("\n"), &[removed, "`/b`", "`/c`"]);
    let mut more = rules();
    more["rules"][1]["deny"] = json!(["/a/fail"]);
    bench.change(|config| configure(config, Some(more.clone()), false));
    let changed = "the section `access` has changed since it was locked";
    contains(&refused(&bench).join("\n"), &[changed, "`/b`", "`/c`"]);
    // Without another change the section is named as well.
    bench.change(|config| configure(config, None, true));
    contains(&refused(&bench).join("\n"), &[removed]);
    // The rules are new: the lock has version 3 for what it leaves out, and records that there were none.
    bench.chaos.script("optional", &json!({"start_exit": 3}));
    bench.change(|config| config["tree"][2]["source"]["startup_timeout"] = json!(5));
    std::fs::remove_file(bench.chaos.path().join("given.lock.json")).expect("removed");
    let args = ["lock", "--config", &bench.config];
    let output = bench.chaos.run("broker-gen", &args).output();
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    contains(
        &bench.chaos_text("given.lock.json"),
        &["\"lock_version\": 3"],
    );
    bench.change(|config| configure(config, Some(rules()), false));
    let new = "the section `access` is new since the config was locked";
    contains(&refused(&bench).join("\n"), &[new, "`/b`"]);
}

#[test]
fn stale_source_beside_unchanged_rules_leaves_the_others_under_them() {
    let bench = locked();
    let allowed = json!({"text": "hi"});
    let mut denied = Vec::new();
    for is_locked in [true, false] {
        let before = bench.chaos.journal("b").len();
        bench.change(|config| configure(config, Some(rules()), is_locked));
        let mut client = StdioClient::start(bench.serve(&["stdio"]));
        wait_until("the source serves", || {
            client.echo("/a")["isError"] == false
        });
        denied.push(code_of(&call(
            &mut client,
            "/a/add",
            &json!({"a": 1, "b": 2}),
        )));
        let tree = json!({"name": "meta_tree", "arguments": {"path": "/a"}});
        let tree = client.result("tools/call", &tree).to_string();
        contains(&tree, &["/a/echo"]);
        assert!(!tree.contains("/a/add"), "{tree}");
        if !is_locked {
            // Of a source that the lock lacks no tool is known that the caller may call.
            for (path, code) in [("/b/echo", "lock_stale"), ("/c/echo", "path_not_found")] {
                let result = call(&mut client, path, &allowed);
                assert_eq!(code_of(&result), code, "{result}");
            }
            let after = bench.chaos.journal("b").len();
            assert_eq!(after, before, "it was not started");
        }
        assert_eq!(client.end(), Some(0));
    }
    assert_eq!(denied, ["path_not_found", "path_not_found"]);
}

#[test]
fn stale_source_of_a_lock_that_does_not_record_the_rules_refuses_every_call() {
    let bench = locked();
    let mut lock = Lock::parse("given.lock.json", &bench.chaos_text("given.lock.json"))
        .expect("the lock is whole");
    (lock.version, lock.access_digest) = (2, None);
    bench.chaos.file("given.lock.json", &lock.to_text());
    let mut client = StdioClient::start(bench.serve(&["stdio"]));
    wait_until("the source serves", || {
        client.echo("/a")["isError"] == false
    });
    assert_eq!(client.end(), Some(0));
    bench.change(|config| configure(config, Some(rules()), false));
    contains(&refused(&bench).join("\n"), &["`/b`", "`/c`"]);
}
