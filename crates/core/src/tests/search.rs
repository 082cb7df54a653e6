//! Search as callers use it: bounds, places, access, withdrawals.

use broker_model::CallCode;
use serde_json::{Value, json};

use super::fixture::{
    CALLER, MetaReplies, SearchOptions, fixture, fixture_with, json_of, member_of, snapshot,
};
use crate::{Broker, Core, Identity, StartMode};

fn answer(core: &Core, caller: &Identity, query: &str, options: SearchOptions<'_>) -> Value {
    json_of(&core.found(caller, query, options).unwrap())
}

fn paths(entries: &Value) -> Vec<&str> {
    let entries = entries.as_array().unwrap().iter();
    entries
        .map(|entry| entry["path"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn answer_has_the_best_tools_and_their_nodes() {
    let core = fixture(StartMode::Plain).core;
    let found = answer(&core, &CALLER, "deep echo", SearchOptions::default());
    assert_eq!(paths(&found["children"]), ["/a/deep/b/echo", "/a/echo"]);
    assert_eq!(paths(&found["nodes"]), ["/a/deep/b", "/a"]);
    let best = &found["children"][0];
    assert_eq!(
        (&best["type"], &best["score"]),
        (&json!("tool"), &json!(1.0))
    );
    assert_eq!(best["summary"], "at /a/deep/b/echo");
    assert_eq!(
        (&found["path"], &found["query"]),
        (&json!("/"), &json!("deep echo"))
    );
    assert!(found.get("weak").is_none());
    assert_eq!(
        core.found(&CALLER, "echo", SearchOptions::default())
            .unwrap()
            .etag,
        None
    );
}

#[tokio::test]
async fn only_tools_below_the_place_are_found_and_at_most_the_limit() {
    let core = fixture(StartMode::Plain).core;
    let at = |path, limit| SearchOptions {
        path: Some(path),
        limit,
    };
    let below = answer(&core, &CALLER, "echo", at("/a/deep", 5));
    assert_eq!(paths(&below["children"]), ["/a/deep/b/echo"]);
    assert_eq!(paths(&below["nodes"]), ["/a/deep/b"]);
    let own = answer(&core, &CALLER, "echo", at("/a/deep/b", 5));
    assert_eq!(paths(&own["nodes"]), [""; 0], "the place is known");
    assert_eq!(
        paths(&answer(&core, &CALLER, "echo", at("/", 1))["children"]).len(),
        1
    );
    let nothing = answer(&core, &CALLER, "zebra", at("/", 5));
    assert_eq!(
        (paths(&nothing["children"]).len(), &nothing["weak"]),
        (0, &json!(true))
    );
}

#[tokio::test]
async fn queries_limits_and_places_out_of_bounds_are_refused() {
    let core = fixture(StartMode::Plain).core;
    let code = |query: &str, path, limit| {
        let refused = core.found(&CALLER, query, SearchOptions { path, limit });
        refused.err().map(|error| error.code)
    };
    let invalid = Some(CallCode::FieldInvalid);
    for (query, limit, want) in [
        ("", 5, invalid),
        (" -_. ", 5, invalid),
        (&"x".repeat(401), 5, invalid),
        (&"é".repeat(400), 5, None),
        ("echo", 0, invalid),
        ("echo", 51, invalid),
        ("echo", 50, None),
        ("文", 1, None),
    ] {
        assert_eq!(code(query, None, limit), want, "{query} {limit}");
    }
    assert_eq!(code("echo", Some("/zzz"), 5), Some(CallCode::PathNotFound));
    assert_eq!(code("echo", Some("/a/echo"), 5), Some(CallCode::PathIsTool));
}

#[tokio::test]
async fn callers_find_only_what_exists_for_them() {
    let core = fixture_with(json!([
        {"allow": ["/a/**"], "to": ["first"]},
        {"allow": ["/a/twin"], "to": ["second"]},
    ]))
    .core;
    let found = |caller: &Identity, query| answer(&core, caller, query, SearchOptions::default());
    let (first, second) = (member_of(&["first"]), member_of(&["second"]));
    assert_eq!(paths(&found(&first, "echo")["children"]).len(), 2);
    let none = found(&second, "echo");
    assert_eq!(paths(&none["children"]), [""; 0]);
    assert_eq!(
        none,
        json!({"path": "/", "type": "node", "query": "echo", "children": [], "nodes": [], "weak": true})
    );
    assert_eq!(paths(&found(&second, "twni")["children"]), ["/a/twin"]);
    // `ehco` is one mistake from a word that only the first caller has.
    assert_eq!(paths(&found(&second, "ehco")["children"]), [""; 0]);
    let inside = core.services().within(&first, "/a/deep").unwrap();
    assert_eq!(
        paths(&found(&inside, "echo")["children"]),
        ["/a/deep/b/echo"]
    );
    assert_eq!(found(&inside, "echo")["path"], "/a/deep");
}

#[tokio::test]
async fn withdrawn_tool_is_ranked_and_marked() {
    let broker = fixture(StartMode::Tolerant);
    broker.matches(1);
    broker.lists(0, &snapshot(&["echo"]));
    let core = broker.core;
    let found = answer(&core, &CALLER, "twin", SearchOptions::default());
    assert_eq!(paths(&found["children"]), ["/a/twin"]);
    assert!(
        found["children"][0]["withdrawn"]["class"].is_string(),
        "{found}"
    );
}
