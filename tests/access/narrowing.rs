//! Rules of a config that is given to a running broker: they may only take rights away.

use harness::{Broker, contains, refusal, wait_until};
use serde_json::{Value, json};

use crate::caller::{Key, listed, until_end};
use crate::stage::{Stage, scripted, serve};

fn access() -> Value {
    json!({
        "groups": ["reader", "writer", "admin"],
        "rules": [
            {"allow": ["/a/**"], "to": ["reader"]},
            {"allow": ["/b/**"], "to": ["writer"], "args": {"maxProperties": 2}},
            {"allow": ["/**"], "to": ["admin"]},
            {"deny": ["/**/fail"], "to": ["*"], "except": ["admin"]},
        ],
        "secret": ["reader"],
    })
}

/// A broker with the keys of `ada`, who reads and writes, and of `root`, an admin.
fn stage() -> (Stage, [Key; 2]) {
    let keys = [
        Key::new("ada", &["reader", "writer"]),
        Key::new("root", &["admin"]),
    ];
    let stage = Stage::new(access(), &[&keys[0], &keys[1]]);
    (stage, keys)
}

/// Writes a config with other rules.
fn change(stage: &Stage, change: impl FnOnce(&mut Value)) {
    let mut config = scripted(access());
    config["identities"]["keys_file"] = json!("keys.json");
    change(&mut config["access"]);
    stage.bench.write("c.json", &config.to_string());
}

/// The report of a reload that is refused.
fn refused(broker: &Broker) -> String {
    let before = broker.stderr().len();
    broker.signal("HUP");
    let said = || broker.stderr()[before..].to_owned();
    wait_until("the reload is refused", || said().contains("not reloaded"));
    said()
}

#[test]
fn reload_with_fewer_rights_takes_effect_for_every_caller_at_once() {
    let (stage, [ada, root]) = stage();
    let (ada, root) = (stage.caller(&ada), stage.caller(&root));
    let session = ada.session("/mcp/direct");
    let mut streams = [session.stream(), ada.subscription()];
    let of_root = root.session("/mcp/direct");
    let unchanged = of_root.stream();
    let list = || listed(|params| session.ask("tools/list", params));
    assert!(list().contains(&"a-add".to_owned()));
    change(&stage, |access| {
        access["rules"][3]["deny"] = json!(["/**/fail", "/a/add"]);
        access["rules"][1]["args"] = json!({"maxProperties": 2});
    });
    stage.reload();
    for stream in &mut streams {
        let message = stream.next_message().expect("the change is announced");
        assert_eq!(message["method"], "notifications/tools/list_changed");
    }
    assert!(!list().contains(&"a-add".to_owned()));
    let sum = json!({"a": 1, "b": 2});
    refusal(&ada.call("/a/add", &sum), 404, "path_not_found");
    assert_eq!(root.call("/a/add", &sum).status, 200);
    assert_eq!(of_root.delete().status, 204);
    assert!(until_end(unchanged).is_empty(), "it saw no change");
}

#[test]
fn reload_with_more_rights_is_refused_and_names_the_tools() {
    let (stage, [ada, _root]) = stage();
    let ada = stage.caller(&ada);
    let before = ada.tree("/", 16).body;
    type Change = fn(&mut Value);
    let wider: [(Change, &str); 7] = [
        (
            |access| access["rules"][0]["to"] = json!(["reader", "writer"]),
            "`/a/",
        ),
        (
            |access| access["rules"][3]["deny"] = json!(["/a/fail"]),
            "`/b/fail`",
        ),
        (
            |access| access["rules"][3]["except"] = json!(["admin", "reader"]),
            "/fail`",
        ),
        (
            |access| access["rules"][1]["args"] = json!({"maxProperties": 3}),
            "`/b/",
        ),
        (
            |access| access["rules"][1]["allow"] = json!(["/b/**", "/a/echo"]),
            "`/a/echo`",
        ),
        (
            |access| access["anonymous"] = json!(["reader"]),
            "access.anonymous",
        ),
        (
            |access| access["denied"] = json!("forbidden"),
            "access.denied",
        ),
    ];
    for (wider, named) in wider {
        change(&stage, wider);
        let report = refused(&stage.broker);
        contains(&report, &["error[lock_widen]", named]);
        assert_eq!(ada.tree("/", 16).body, before, "{report}");
    }
    let mut config = scripted(access());
    config["identities"]["keys_file"] = json!("keys.json");
    config.as_object_mut().expect("an object").remove("access");
    stage.bench.write("c.json", &config.to_string());
    contains(&refused(&stage.broker), &["error[lock_widen]"]);
    assert_eq!(ada.tree("/", 16).body, before);
}

#[test]
fn other_rules_need_a_lock_at_the_next_start() {
    let (stage, _) = stage();
    change(&stage, |access| {
        access["rules"][0]["to"] = json!(["reader", "writer"]);
    });
    let Stage { bench, broker } = stage;
    drop(broker);
    let output = serve(&bench).output();
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(&output.stderr, &["error[lock_stale]"]);
}

#[test]
fn node_whose_tools_a_reload_hides_is_gone_for_callers_of_them() {
    let key = Key::new("ada", &["reader"]);
    let root = Key::new("root", &["admin"]);
    let access = json!({
        "groups": ["reader", "admin"],
        "rules": [
            {"allow": ["/a/**", "/b/echo"], "to": ["reader"]},
            {"allow": ["/**"], "to": ["admin"]},
        ],
    });
    let stage = Stage::new(access.clone(), &[&key, &root]);
    let (ada, root) = (stage.caller(&key), stage.caller(&root));
    let tops = |caller: &crate::caller::Caller| {
        let top = caller.tree("/", 1).json();
        top["children"].as_array().map(Vec::len)
    };
    assert_eq!((tops(&ada), tops(&root)), (Some(2), Some(2)));
    let mut config = scripted(access);
    config["identities"]["keys_file"] = json!("keys.json");
    config["tree"][1]["source"]["tool_filter"] = json!(["add"]);
    stage.bench.write("c.json", &config.to_string());
    stage.reload();
    refusal(&ada.tree("/b", 1), 404, "path_not_found");
    assert_eq!((tops(&ada), tops(&root)), (Some(1), Some(2)));
    let session = ada.try_session("/mcp").expect("a session").1;
    assert!(!session.text().contains("/b"), "{}", session.text());
}
