//! Two callers share one broker, and one may see less: nothing that was made or cached for the other
//! reaches it.

use broker_model::CallCode;
use serde_json::json;

use super::fixture::{
    CALLER, Describe, Fixture, MetaReplies, call, fixture_with, json_of, member_of, snapshot,
};
use crate::{Identity, areas};

/// `/a/echo` is allowed to both groups, the two other tools to the first.
fn shared() -> Fixture {
    fixture_with(json!([
        {"allow": ["/**"], "to": ["first"]},
        {"allow": ["/a/echo"], "to": ["second"]},
    ]))
}

fn narrow() -> Identity {
    member_of(&["second"])
}

/// Whether a text names an entry that only the first group may use.
fn names_what_is_denied(text: &str) -> bool {
    text.contains("twin") || text.contains("deep")
}

#[tokio::test]
async fn listing_and_etag_are_those_of_the_caller_in_any_order() {
    let narrow = narrow();
    for first in [&CALLER, &narrow] {
        let core = shared().core;
        // Fills the caches in both orders.
        for path in ["/", "/a"] {
            for depth in [1, 4] {
                core.tree(first, path, depth).unwrap();
            }
        }
        for (path, depth) in [("/", 1), ("/", 4), ("/a", 1), ("/a", 4)] {
            let whole = core.tree(&CALLER, path, depth).unwrap();
            let less = core.tree(&narrow, path, depth).unwrap();
            let text = json_of(&less).to_string();
            assert!(!names_what_is_denied(&text), "{path} {depth}: {text}");
            assert_ne!(whole.body, less.body, "{path} {depth}");
            // A tag says nothing about what another class sees.
            assert_ne!(whole.etag, less.etag, "{path} {depth}");
        }
        let whole = json_of(&core.tree(&CALLER, "/", 4).unwrap()).to_string();
        assert!(whole.contains("/a/twin") && whole.contains("/a/deep/b/echo"));
    }
}

#[tokio::test]
async fn description_and_error_do_not_name_a_denied_entry() {
    let core = shared().core;
    let narrow = narrow();
    let whole = core.described(&CALLER, Describe::One("/a")).unwrap();
    let less = core.described(&narrow, Describe::One("/a")).unwrap();
    assert!(!names_what_is_denied(&json_of(&less).to_string()));
    assert_ne!(whole.etag, less.etag);
    for denied in ["/a/twin", "/a/deep", "/a/deep/b", "/a/deep/b/echo"] {
        assert!(core.lookup(&CALLER, denied).is_ok());
        let error = core.lookup(&narrow, denied).unwrap_err();
        let absent = core.lookup(&narrow, "/a/zzzzzzzz").unwrap_err();
        assert_eq!(error.code, CallCode::PathNotFound);
        assert_eq!(
            error.message.replace(denied, "/a/zzzzzzzz"),
            absent.message,
            "{denied}"
        );
        assert!(core.tree(&narrow, denied, 1).is_err());
    }
    let suggested =
        |caller: &Identity, path: &str| core.lookup(caller, path).unwrap_err().did_you_mean;
    assert_eq!(suggested(&CALLER, "/a/ehco"), ["/a/echo", "/a/deep/b/echo"]);
    assert_eq!(suggested(&narrow, "/a/ehco"), ["/a/echo"]);
    assert!(suggested(&narrow, "/a/twinn").is_empty());
    let paths = ["/a/echo", "/a/twin"].map(str::to_owned);
    let several = json_of(&core.described(&narrow, Describe::Many(&paths)).unwrap());
    assert_eq!(several["entries"][0]["path"], "/a/echo");
    assert_eq!(several["entries"][1]["error"]["code"], "path_not_found");
}

#[tokio::test]
async fn denied_tool_is_not_callable_and_its_withdrawal_not_shown() {
    let broker = shared();
    let narrow = narrow();
    broker.matches(0);
    broker.matches(1);
    let error = call(&broker.core, &narrow, "/a/twin", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(error.code, CallCode::PathNotFound);
    assert!(broker.sources[0].seen().is_empty());
    for caller in [&CALLER, &narrow] {
        broker.sources[0].answer(Ok("{}"));
        let called = call(&broker.core, caller, "/a/echo", json!({"text": ""})).await;
        assert_eq!(called.unwrap().path, "/a/echo");
    }
    // `twin` is gone from the server, and withdrawn.
    broker.lists(0, &snapshot(&["echo"]));
    let text = |code: CallCode| code.as_str().to_owned();
    for (caller, code) in [
        (&CALLER, CallCode::ToolWithdrawn),
        (&narrow, CallCode::PathNotFound),
    ] {
        let error = call(&broker.core, caller, "/a/twin", json!({"text": ""}))
            .await
            .unwrap_err();
        assert_eq!(text(error.code), text(code));
    }
    let less = json_of(&broker.core.tree(&narrow, "/a", 1).unwrap()).to_string();
    assert!(!names_what_is_denied(&less) && !less.contains("withdrawn"));
}

#[tokio::test]
async fn introduction_has_the_areas_of_the_caller_only() {
    let core = shared().core;
    let areas = |caller: &Identity| -> Vec<_> {
        let areas = areas(&core, caller).into_iter();
        areas
            .map(|area| (area.path, area.summary.into_owned()))
            .collect()
    };
    // A node exists for a caller if a tool below it does.
    let all = |names: &str| [("/a", names.to_owned())];
    assert_eq!(areas(&CALLER), all("echo, twin"));
    assert_eq!(
        areas(&narrow()),
        all("echo"),
        "a summary names no denied tool"
    );
    let outsider = member_of(&["third"]);
    assert_eq!(areas(&outsider), []);
    let root = json_of(&core.tree(&outsider, "/", 4).unwrap());
    assert_eq!(root["children"], json!([]));
}
