//! Listing, describing and looking up.

use broker_mcp::State;
use broker_model::CallCode;
use broker_model::digest::etag;
use serde_json::json;

use super::fixture::{CALLER, Describe, MetaReplies, catalog, fixture, fixture_of, json_of, setup};
use crate::listing::nearest::Budget;
use crate::listing::paths;
use crate::{Broker, StartMode};

#[tokio::test]
async fn listing_of_an_unchanged_tree_is_the_compiled_bytes() {
    let fixture = fixture(StartMode::Plain);
    // The description of a tool whose source is not ready says so.
    fixture.sources[0].set(State::Ready, None);
    let (core, compiled) = (fixture.core, catalog());
    let reply = core.tree(&CALLER, "/a", 1).unwrap();
    assert_eq!(reply.etag.as_deref(), Some(etag(&reply.body).as_str()));
    let retry = core.tree(&CALLER, "/a", 1).unwrap();
    assert_eq!(reply.body.as_ptr(), retry.body.as_ptr(), "not copied");
    let described = core.described(&CALLER, Describe::One("/a/echo")).unwrap();
    let at = compiled.find("/a/echo").unwrap();
    assert_eq!(described.body, compiled.text(compiled.entry(at).desc));
    assert_eq!(
        described.etag.as_deref(),
        Some(compiled.entry(at).desc_etag)
    );
}

#[tokio::test]
async fn listing_with_a_depth_opens_nodes_level_by_level() {
    let core = fixture(StartMode::Plain).core;
    let one = json_of(&core.tree(&CALLER, "/", 1).unwrap());
    assert_eq!(
        one,
        json!({"path": "/", "type": "node", "summary": "at /", "children": [
            {"path": "/a", "type": "node", "summary": "echo, twin"},
            {"path": "/empty", "type": "node", "summary": "at /empty"}]})
    );
    let two = json_of(&core.tree(&CALLER, "/", 2).unwrap());
    assert_eq!(
        two["children"],
        json!([
            {"path": "/a", "type": "node", "summary": "echo, twin", "children": [
                {"path": "/a/deep", "type": "node", "summary": "at /a/deep"},
                {"path": "/a/echo", "type": "tool", "summary": "at /a/echo"},
                {"path": "/a/twin", "type": "tool", "summary": "at /a/twin"}]},
            {"path": "/empty", "type": "node", "summary": "at /empty", "children": []}])
    );
    let all = core.tree(&CALLER, "/", 4).unwrap();
    let tool = &json_of(&all)["children"][0]["children"][0]["children"][0]["children"][0];
    assert_eq!(tool["path"], "/a/deep/b/echo");
    let deeper = core.tree(&CALLER, "/", 16).unwrap();
    assert_eq!(deeper.body.as_ptr(), all.body.as_ptr(), "composed once");
    for depth in [0, 17] {
        let error = core.tree(&CALLER, "/", depth).unwrap_err();
        assert_eq!(error.code, CallCode::FieldInvalid);
    }
}

#[tokio::test]
async fn description_of_several_paths_keeps_their_order_and_errors() {
    let core = fixture(StartMode::Plain).core;
    let paths = ["/a/twin", "/nothing", "/empty"].map(str::to_owned);
    let reply = core.described(&CALLER, Describe::Many(&paths)).unwrap();
    let entries = &json_of(&reply)["entries"];
    assert_eq!(entries[0]["path"], "/a/twin");
    assert_eq!(entries[1]["path"], "/nothing");
    assert_eq!(entries[1]["error"]["code"], "path_not_found");
    assert_eq!(entries[2]["children"], json!([]));
    assert_eq!(reply.etag.unwrap(), etag(&reply.body));
    let many = vec!["/".to_owned(); 51];
    let error = core.described(&CALLER, Describe::Many(&many)).unwrap_err();
    assert_eq!(error.code, CallCode::FieldInvalid);
    assert!(core.described(&CALLER, Describe::Many(&many[..50])).is_ok());
}

#[tokio::test]
async fn path_invalid_or_unknown_is_refused_with_suggestions() {
    let core = fixture(StartMode::Plain).core;
    for bad in ["", "a", "/a/", "/a/../b", "/%61", "//"] {
        let error = core.lookup(&CALLER, bad).unwrap_err();
        assert_eq!(error.code, CallCode::PathInvalid, "{bad}");
    }
    for (unknown, nearest) in [
        ("/a/ehco", vec!["/a/echo", "/a/deep/b/echo"]),
        ("/a/Twin", vec!["/a/twin"]),
        ("/aa/deep/echo", vec!["/a/deep/b/echo", "/a/echo"]),
        ("/a/zzzzzzzz", vec![]),
    ] {
        let error = core.lookup(&CALLER, unknown).unwrap_err();
        assert_eq!(error.code, CallCode::PathNotFound);
        assert_eq!(error.did_you_mean, nearest, "{unknown}");
    }
    let long = format!("/{}", "x".repeat(500).replace("xxxxxxxxxx", "/xxxxxxxxx"));
    assert!(core.lookup(&CALLER, &long).is_err());
}

#[tokio::test]
async fn suggestions_of_one_request_share_a_step_budget() {
    let core = fixture(StartMode::Plain).core;
    let snapshot = core.services().snapshot(&CALLER);
    let mut budget = Budget::default();
    budget.names = 4;
    let mut suggested = |path| {
        paths::resolve_within(snapshot.scope(), path, &mut budget)
            .unwrap_err()
            .did_you_mean
    };
    assert_eq!(suggested("/a/ehco"), ["/a/echo", "/a/deep/b/echo"]);
    assert!(suggested("/a/ehco").is_empty(), "the budget is spent");
    assert_eq!(budget.names, 0);
}

#[tokio::test]
async fn listing_of_a_tool_is_refused_with_a_hint() {
    let core = fixture(StartMode::Plain).core;
    let error = core.tree(&CALLER, "/a/echo", 1).unwrap_err();
    assert_eq!(error.code, CallCode::PathIsTool);
    assert!(
        error
            .hint
            .as_deref()
            .unwrap()
            .contains(r#"{"path":"/a/echo""#)
    );
}

#[tokio::test]
async fn filter_that_is_narrower_hides_tools_everywhere() {
    let narrow = fixture_of(
        StartMode::Plain,
        json!({"tool_filter": ["!twin"]}),
        json!({}),
    );
    let core = &narrow.core;
    let tree = core.tree(&CALLER, "/a", 1).unwrap();
    assert!(!json_of(&tree).to_string().contains("twin"));
    assert_ne!(
        tree.etag,
        fixture(StartMode::Plain)
            .core
            .tree(&CALLER, "/a", 1)
            .unwrap()
            .etag
    );
    let described = core.described(&CALLER, Describe::One("/a")).unwrap();
    assert!(!json_of(&described).to_string().contains("twin"));
    let error = core.lookup(&CALLER, "/a/twin").unwrap_err();
    assert_eq!(error.code, CallCode::PathNotFound);
    let error = core.lookup(&CALLER, "/a/twinn").unwrap_err();
    assert!(error.did_you_mean.is_empty(), "not even suggested");
    assert_eq!(core.services().health().sources[0].tools, 1);
    // Its drift must not be visible either.
    narrow.matches(1);
    narrow.lists(0, &super::fixture::snapshot(&["echo"]));
    assert!(core.services().first_verdict().await.refuse.is_none());
}

#[test]
fn environment_variables_missing_in_any_source_are_all_reported() {
    let missing = json!({"env": {"X": "${NOT_SET_ONE}", "Y": "${NOT_SET_TWO}"}});
    let problems = setup(
        StartMode::Plain,
        missing,
        json!({"env": {"Z": "${NOT_SET_THREE}"}}),
    )
    .unwrap_err();
    let text = format!("{problems:?}");
    for name in ["NOT_SET_ONE", "NOT_SET_TWO", "NOT_SET_THREE"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(problems.iter().all(|problem| problem.position.is_some()));
}
