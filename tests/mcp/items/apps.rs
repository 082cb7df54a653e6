//! MCP Apps, which the broker does not carry: tools for pages of their server exist for no caller, and what a page may
//! do is reviewed or absent.

use harness::{contains, refusal};
use serde_json::{Value, json};

use super::{Items, each, session, tree};

/// A resource with this policy of its page.
fn page(uri: &str, origin: &str) -> Value {
    json!({"uri": uri, "name": "page", "mimeType": "text/html;profile=mcp-app", "_meta": policy(origin)})
}

fn policy(origin: &str) -> Value {
    json!({"ui": {"csp": {"connectDomains": [origin]}}, "k": 1})
}

/// A tool with this value of `_meta.ui.visibility`.
fn tool(name: &str, visibility: &Value) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"},
        "_meta": {"ui": {"visibility": visibility}}})
}

fn lists() -> Value {
    json!({
        "tools": [
            tool("refresh_page", &json!(["app"])), tool("no_reader", &json!([])),
            tool("both", &json!(["model", "app"])), tool("either", &Value::Null),
        ],
        "templates": [
            {"uriTemplate": "ui://page/{name}", "name": "pages", "_meta": policy("https://template.example")},
            {"uriTemplate": "ui://bare/{name}", "name": "bare"},
        ],
        "resources": [page("ui://main", "https://reviewed.example")],
    })
}

fn members() -> Value {
    json!({"resources": "locked", "resource_filter": ["ui://*"]})
}

#[test]
fn tool_for_pages_only_is_in_no_list_and_cannot_be_called() {
    let items = Items::new(&lists(), &members());
    let broker = items.serve();
    let hidden = ["refresh_page", "no_reader"];
    let lock = items.0.lock_json();
    let locked = each(&lock["sources"][0]["exposed"], "upstream_name");
    let entries: Vec<_> = tree(&broker, "/a")
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    for name in hidden {
        let path = format!("/a/{name}");
        assert!(
            locked.iter().any(|one| one == name),
            "{name} stays locked: {locked:?}"
        );
        assert!(!entries.contains(&path), "{entries:?}");
        refusal(&broker.call(&path, json!({})), 404, "path_not_found");
        let described = broker.post("/meta_desc", &json!({"path": path}));
        refusal(&described, 404, "path_not_found");
    }
    let shown = items.0.verb(&["tree"]).stdout;
    let lines = shown
        .lines()
        .filter(|line| line.contains("no caller sees it"));
    assert_eq!(lines.count(), hidden.len(), "{shown}");
    for shown in ["/a/both", "/a/either", "/a/noop"] {
        assert!(entries.contains(&shown.to_owned()), "{shown}: {entries:?}");
        broker.result(shown, json!({}));
    }
    for mode in ["meta", "direct", "search"] {
        let session =
            harness::mcp_http::McpSession::begin(broker.address(), &format!("/mcp/{mode}"));
        let listed = session.result("tools/list", &json!({})).to_string();
        assert!(!listed.contains("refresh_page"), "{listed}");
        let params = json!({"name": "a-refresh_page", "arguments": {}});
        let answer = session.ask(&json!(1), "tools/call", &params).json();
        let is_refused = answer["error"].is_object() || answer["result"]["isError"] == true;
        assert!(is_refused, "{answer}");
        if mode == "search" {
            let params = json!({"name": "retrieve_tools", "arguments": {"query": "refresh_page"}});
            let found = session.result("tools/call", &params).to_string();
            assert!(!found.contains("Does refresh_page"), "{found}");
        }
    }
}

#[test]
fn changed_tool_for_pages_only_ends_check_and_start_like_any_other() {
    let mut strict = members();
    strict["on_drift"] = json!("refuse");
    let items = Items::new(&lists(), &strict);
    assert_eq!(items.lock().code, Some(0));
    let mut changed = lists();
    changed["tools"][0]["inputSchema"]["required"] = json!(["x"]);
    items.set(&changed);
    let output = items.0.verb(&["check"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    contains(&output.stdout, &["/a/refresh_page"]);
    let refused = items.0.verb(&["serve", "0"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    contains(&refused.stderr, &["/a/refresh_page"]);
}

#[test]
fn policy_of_a_page_that_is_read_is_the_reviewed_one_or_absent() {
    let items = Items::new(&lists(), &members());
    let broker = items.serve();
    let mut wider = lists();
    wider["content"] = json!({"_meta": policy("*")});
    // Only what is read changes.
    items.set(&wider);
    let session = session(&broker);
    for (uri, expected) in [
        ("ui://main", policy("https://reviewed.example")),
        ("ui://page/x", policy("https://template.example")),
        ("ui://bare/x", json!({"k": 1})),
    ] {
        let read = session.result("resources/read", &json!({"uri": uri}));
        let content = &read["contents"][0];
        assert_eq!(content["uri"], uri);
        assert_eq!(content["_meta"], expected, "{uri}");
    }
    let listed = session.result("resources/list", &json!({}));
    assert_eq!(
        listed["resources"][0]["_meta"],
        policy("https://reviewed.example")
    );
    // A content without the member stays without it.
    wider["content"] = json!({});
    items.set(&wider);
    let read = session.result("resources/read", &json!({"uri": "ui://main"}));
    assert_eq!(read["contents"][0].get("_meta"), None, "{read}");
}

#[test]
fn policy_of_a_live_page_is_absent() {
    let mut live = members();
    live["resources"] = json!("live");
    let mut wide = lists();
    wide["content"] = json!({"_meta": policy("*")});
    let items = Items::new(&wide, &live);
    let broker = items.serve();
    let session = session(&broker);
    let read = session.result("resources/read", &json!({"uri": "ui://main"}));
    assert_eq!(read["contents"][0]["_meta"], json!({"k": 1}), "{read}");
    let listed = session.result("resources/list", &json!({}));
    let meta = &listed["resources"][0]["_meta"];
    assert_eq!((meta.get("ui"), &meta["k"]), (None, &json!(1)), "{listed}");
}
