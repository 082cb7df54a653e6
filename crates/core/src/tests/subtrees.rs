//! Identities that see only a part of the tree.

use broker_model::CallCode;
use serde_json::json;

use super::fixture::{
    CALLER, Describe, MetaReplies, call, catalog, fixture, fixture_of, json_of, summary,
};
use crate::catalog::{Catalog, Entry};
use crate::identity::Subtree;
use crate::{Broker, Core, Identity, StartMode, ToolQuery, areas};

fn within(core: &Core, path: &str) -> Identity {
    core.services()
        .within(&CALLER, path)
        .expect("the path exists")
}

#[tokio::test]
async fn restricted_identity_sees_its_subtree_with_the_same_bytes() {
    let core = fixture(StartMode::Plain).core;
    let deep = within(&core, "/a/deep");
    assert_eq!((deep.root(), CALLER.root()), ("/a/deep", "/"));
    for path in ["/a/deep", "/a/deep/b"] {
        for depth in [1, 4] {
            let (whole, part) = (
                core.tree(&CALLER, path, depth).unwrap(),
                core.tree(&deep, path, depth).unwrap(),
            );
            assert_eq!((whole.body, whole.etag), (part.body, part.etag), "{path}");
        }
    }
    let described = core.described(&deep, Describe::One("/a/deep/b/echo"));
    assert_eq!(json_of(&described.unwrap())["path"], "/a/deep/b/echo");
    let page = core.tools(&deep, &ToolQuery::default()).unwrap();
    let tools: serde_json::Value = serde_json::from_slice(&page.json()).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_eq!(tools[0]["name"], "a-deep-b-echo");
    assert!(core.flat(&deep, "a-deep-b-echo").is_some());
}

#[tokio::test]
async fn restricted_identity_finds_nothing_outside_its_subtree() {
    let broker = fixture(StartMode::Plain);
    broker.matches(0);
    broker.matches(1);
    let core = &broker.core;
    let deep = within(core, "/a/deep");
    for path in ["/", "/a", "/a/echo", "/a/twin", "/empty", "/a/ehco", "/zz"] {
        let error = core.lookup(&deep, path).unwrap_err();
        assert_eq!(error.code, CallCode::PathNotFound, "{path}");
        assert!(core.tree(&deep, path, 1).is_err(), "{path}");
        let suggested = &error.did_you_mean;
        let inside = suggested.iter().all(|path| path.starts_with("/a/deep"));
        assert!(inside, "{path}: {suggested:?}");
        let details = format!("{:?}", error.details);
        assert!(!details.contains("twin") && !details.contains("empty"));
    }
    for above in ["/", "/a"] {
        let error = core.tree(&deep, above, 1).unwrap_err();
        assert_eq!(error.did_you_mean, ["/a/deep"], "{above}");
    }
    assert_eq!(core.flat(&deep, "a-echo"), None);
    let after = ToolQuery {
        after: Some("a-echo"),
        ..ToolQuery::default()
    };
    assert_eq!(core.tools(&deep, &after), None);
    let error = call(core, &deep, "/a/echo", json!({"text": ""})).await;
    assert_eq!(error.unwrap_err().code, CallCode::PathNotFound);
    assert!(broker.sources[0].seen().is_empty());
    broker.sources[1].answer(Ok("{}"));
    let called = call(core, &deep, "/a/deep/b/echo", json!({"text": ""})).await;
    assert_eq!(called.unwrap().path, "/a/deep/b/echo");
}

#[tokio::test]
async fn restriction_only_narrows() {
    let core = fixture(StartMode::Plain).core;
    assert!(within(&core, "/").is_same_caller(&CALLER));
    let deep = within(&core, "/a/deep");
    let deeper = core.services().within(&deep, "/a/deep/b").unwrap();
    assert_eq!(deeper.root(), "/a/deep/b");
    let same = core.services().within(&deeper, "/a/deep/b").unwrap();
    assert!(same.is_same_caller(&deeper));
    for path in ["/", "/a", "/a/deep", "/a/twin", "/a/deep/c"] {
        let error = core.services().within(&deeper, path).unwrap_err();
        assert_eq!(error.code, CallCode::PathNotFound, "{path}");
    }
    let error = core.services().within(&CALLER, "/a/twinn").unwrap_err();
    assert_eq!(error.did_you_mean, ["/a/twin"]);
    let error = core.services().within(&CALLER, "a//").unwrap_err();
    assert_eq!(error.code, CallCode::PathInvalid);
    let hidden = fixture_of(
        StartMode::Plain,
        json!({"tool_filter": ["!twin"]}),
        json!({}),
    );
    assert!(hidden.core.services().within(&CALLER, "/a/twin").is_err());
}

#[tokio::test]
async fn areas_of_a_restricted_identity_are_the_children_of_its_entry() {
    let core = fixture(StartMode::Plain).core;
    let areas = |path: &str| -> Vec<_> {
        let areas = areas(&core, &within(&core, path)).into_iter();
        areas
            .map(|area| (area.path, area.summary.into_owned()))
            .collect()
    };
    let area = |path: &'static str| (path, summary(path));
    assert_eq!(areas("/"), ["/a", "/empty"].map(area));
    assert_eq!(areas("/a"), ["/a/deep", "/a/echo", "/a/twin"].map(area));
    assert_eq!(areas("/a/twin"), [area("/a/twin")]);
    assert_eq!(areas("/empty"), []);
}

#[test]
fn subtree_has_its_entry_and_what_is_below() {
    let paths = [
        "/", "/a", "/a-b", "/a-b/c", "/a.b", "/a/x", "/a/x-y", "/a/x/z", "/a0", "/aa", "/b",
    ];
    let base = catalog();
    let entries = paths.map(|path| {
        let empty = base.find("/empty").unwrap();
        let Entry { head, desc, .. } = *base.entry(empty);
        Entry {
            path,
            words: "\t",
            kind: crate::catalog::EntryKind::Item(0),
            head,
            desc,
            desc_head: head,
            desc_etag: "",
        }
    });
    let whole = Catalog {
        entries: Vec::from(entries).leak(),
        ..*base
    };
    for (root, path) in paths.iter().enumerate().skip(1) {
        let subtree = Subtree::new(&whole, root as u32);
        for (at, other) in paths.iter().enumerate() {
            let expected = other == path || other.starts_with(&format!("{path}/"));
            assert_eq!(subtree.contains(at as u32), expected, "{other} in {path}");
        }
    }
}
