//! The views for operators: drift, access rules and activity; and the jobs of a caller.

use harness::{request, wait_until};
use serde_json::{Value, json};

use crate::stage::{Stage, config, locked, repo_tools};

pub(crate) const READER: &str = "mbk_kqwklyfhlzomvdsoalv2dfumpepwnx3p";
pub(crate) const ADMIN: &str = "mbk_vlq2eaarm7xvarhoew7ouadhsunjcdlr";

/// Returns members of a config with readers and operators.
pub(crate) fn two_groups() -> Value {
    json!({
        "access": {
            "groups": ["reader", "admin"],
            "rules": [
                {"allow": ["/repo/get_file", "/repo/list_issues"], "to": ["reader"]},
                {"allow": ["/repo/create_issue"], "to": ["reader"], "args": {"properties": {"title": {"const": "x"}}}},
                {"allow": ["/**"], "to": ["admin"]},
            ],
            "operators": ["admin"],
        },
        "identities": {"keys": [
            {"name": "reader", "groups": ["reader"],
             "sha256": "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7"},
            {"name": "admin", "groups": ["admin"],
             "sha256": "5f231824d36b7db81e7a2c33ea7661754a59621b874794a7ee4a4c2db2710a5b"},
        ]},
        "audit": {"file": "audit.jsonl", "reads": true},
    })
}

/// Returns a broker whose source `repo` has another tool than the lock: a new required argument, texts with markup and a
/// bidirectional mark.
pub(crate) fn drifted(more: Value) -> Stage {
    let scripts = [("repo", json!({"tools": repo_tools(), "built_in": false}))];
    let bench = locked(&config(&["repo"], more), &scripts);
    let mut tools = repo_tools();
    tools[0]["inputSchema"]["properties"]["token"] = json!({"type": "string"});
    tools[0]["inputSchema"]["required"] = json!(["token"]);
    tools[1]["description"] = json!("<img src=x onerror=window.owned=1> Lists \u{202e}all issues.");
    tools[3]["description"] = json!("Creates an issue now.");
    tools.push(
        json!({"name": "new_tool", "description": "New.", "inputSchema": {"type": "object"}}),
    );
    bench.script("repo", &json!({"tools": tools, "built_in": false}));
    Stage::serve(bench)
}

fn answer(stage: &Stage, route: &str, key: Option<&str>) -> (u16, Value) {
    let key = key.map(|key| ("X-API-Key", key));
    let headers: Vec<_> = key.into_iter().collect();
    let reply = request(stage.broker.address(), "GET", route, &headers, b"");
    (reply.status, reply.json())
}

#[test]
fn routes_of_operators_answer_operators_only() {
    let stage = drifted(two_groups());
    for route in ["/drift", "/access", "/activity"] {
        for (key, expected) in [
            (None, 401),
            (Some("mbk_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 401),
            (Some(READER), 403),
            (Some(ADMIN), 200),
        ] {
            let (status, body) = answer(&stage, route, key);
            assert_eq!(status, expected, "{route} {key:?}: {body}");
        }
    }
    let (_, access) = answer(&stage, "/access", Some(ADMIN));
    let row = |path: &str| {
        let mut rows = access["tools"].as_array().expect("a list").iter();
        rows.find(|row| row["path"] == path)
            .cloned()
            .expect("the tool is listed")
    };
    assert_eq!(access["groups"], json!(["reader", "admin"]));
    assert_eq!(row("/repo/get_file")["may_call"], json!([0, 1]));
    assert_eq!(row("/repo/delete_branch")["may_call"], json!([1]));
    assert_eq!(row("/repo/create_issue")["narrowed"], json!([0]));
    let (_, drift) = answer(&stage, "/drift", Some(ADMIN));
    let entries = drift["entries"].as_array().expect("a list");
    let of = |path: &str| {
        entries
            .iter()
            .find(|entry| entry["path"] == path)
            .unwrap_or_else(|| panic!("{path} does not differ: {drift}"))
    };
    assert_eq!(of("/repo/get_file")["withdraws"], true);
    assert_eq!(of("/repo/list_issues")["class"], "security");
    assert_eq!(of("/repo/create_issue")["withdraws"], false);
    assert_eq!(of("/repo/new_tool")["is_reviewed"], false);
    assert_eq!(drift["not_compared"], json!([]));
}

#[test]
fn routes_of_operators_answer_without_rules_and_without_an_audit_log() {
    let stage = Stage::repo(json!({}));
    let (status, drift) = answer(&stage, "/drift", None);
    assert_eq!((status, &drift["entries"]), (200, &json!([])));
    let (status, access) = answer(&stage, "/access", None);
    assert_eq!((status, &access["groups"]), (200, &json!([])));
    let (status, refusal) = answer(&stage, "/activity", None);
    assert_eq!(
        (status, &refusal["error"]["code"]),
        (404, &json!("route_not_found"))
    );
}

#[test]
fn drift_view_shows_reviewed_and_live_values_the_rule_and_the_command() {
    let stage = drifted(json!({}));
    let mut page = stage.page();
    page.wait_for_text("nav", "Drift");
    page.view("#/drift");
    page.wait_for_text("article", "/repo/get_file");
    let shown = page.text("article");
    for part in [
        "breaking: withdrawn",
        "Example",
        "broker-gen lock --config c.json",
        "Lists the issues of a repository.",
        "<img src=x onerror=window.owned=1> Lists U+202Eall issues.",
        "/repo/new_tool",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let rule = stage.broker.source_details("/repo")["withdrawn_tools"][0]["rules"][0].clone();
    assert!(
        shown.contains(rule.as_str().expect("a rule")),
        "{rule}: {shown}"
    );
    assert_eq!(
        page.value("document.querySelectorAll('main img').length"),
        0
    );
    page.view("#/tools/repo/get_file");
    page.wait_for_text(".detail", "Withdrawn since");
    page.wait_for_text(".rows", "withdrawn");
    page.assert_clean(&stage.origin());
}

#[test]
fn access_and_activity_are_shown_to_operators() {
    let stage = drifted(two_groups());
    let call = |path: &str| {
        let body = json!({"path": path, "args": {"title": "x"}}).to_string();
        let headers = [("X-API-Key", READER), ("Content-Type", "application/json")];
        request(
            stage.broker.address(),
            "POST",
            "/meta_call",
            &headers,
            body.as_bytes(),
        )
        .status
    };
    assert_eq!(call("/repo/create_issue"), 200);
    assert_eq!(call("/repo/delete_branch"), 404);
    let mut page = stage.page();
    page.wait_for("document.activeElement.id === 'key'");
    page.enter_key(ADMIN);
    page.wait_for_text("nav", "Activity");
    page.view("#/access");
    page.wait_for_text("article", "4 of 4");
    assert!(page.text(".rows").contains("some arguments: reader"));
    page.value("const group = document.querySelector('select'); group.value = '0'; group.dispatchEvent(new Event('change'))");
    page.wait_for_text("article", "3 of 4");
    page.view("#/tools/repo/delete_branch");
    page.wait_for_text(".detail dl + section, .detail section", "admin");
    page.view("#/activity");
    page.wait_for_text("article", "/repo/create_issue");
    page.value("document.querySelector('input[type=checkbox]').click()");
    page.wait_for(
        "![...document.querySelectorAll('.rows .badge')].some((one) => one.innerText === 'ok')",
    );
    page.wait_for_text(".rows", "/repo/delete_branch");
    page.click(".row");
    page.wait_for_text("pre[aria-label=Line]", "\"kind\"");
    assert!(!page.text("body").contains(ADMIN));
    page.assert_clean(&stage.origin());
}

#[test]
fn jobs_view_shows_progress_and_cancels_a_job() {
    let script = json!({
        "tools": repo_tools(), "built_in": false,
        "on_call": {"get_file": {"progress": 3, "then": {"delay_ms": 60_000}}},
    });
    let mut members = two_groups();
    members["jobs"] = json!({"store": "jobs.sqlite"});
    let stage = Stage::serve(locked(&config(&["repo"], members), &[("repo", script)]));
    let send = |method: &str, route: &str, body: &str| {
        let headers = [("X-API-Key", READER), ("Content-Type", "application/json")];
        request(
            stage.broker.address(),
            method,
            route,
            &headers,
            body.as_bytes(),
        )
        .json()
    };
    let body = json!({"path": "/repo/get_file", "args": {}, "mode": "async"});
    let accepted = send("POST", "/meta_call", &body.to_string());
    let route = format!("/jobs/{}", accepted["job_id"].as_str().expect("an id"));
    wait_until("the job has progress", || {
        send("GET", &route, "")["progress"]["progress"] == 3
    });
    let mut page = stage.page();
    page.wait_for("document.activeElement.id === 'key'");
    page.enter_key(READER);
    page.wait_for_text("nav", "Jobs");
    page.view("#/jobs");
    page.wait_for_text("table", "running");
    page.wait_for("document.querySelector('progress')?.value === 3");
    page.click("table button");
    page.wait_for_text("table", "canceled");
    assert_eq!(
        page.value("document.querySelectorAll('table button').length"),
        0
    );
    page.assert_clean(&stage.origin());
}
