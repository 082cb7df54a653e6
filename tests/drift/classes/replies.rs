//! The replies of a broker: every reply of `meta_tree` and `meta_desc`, and the health routes, compared
//! with the compiled-in catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use harness::{Broker, Chaos, Response};
use regex::Regex;
use serde_json::{Value, json};

/// A marker in every text of the live server that is not in the lock; callers must never see it.
pub(crate) const MARK: &str = "qzmark";

/// The replies by request.
pub(crate) type Replies = BTreeMap<String, Response>;

/// The replies of a broker whose sources match the lock.
pub(crate) static REVIEWED: LazyLock<Replies> = LazyLock::new(|| {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let replies = replies(&broker);
    assert!(
        replies.values().all(|reply| !reply.text().contains(MARK)),
        "nothing reviewed has the mark"
    );
    replies
});

/// Every reply of `meta_tree` and `meta_desc`.
fn replies(broker: &Broker) -> Replies {
    let mut asked: Vec<(&str, Value)> = [1, 2, 16]
        .map(|depth| ("/meta_tree", json!({"path": "/", "depth": depth})))
        .into();
    let whole = broker.post("/meta_tree", &json!({"depth": 16})).json();
    let mut paths = Vec::new();
    walk(&whole, &mut |entry| paths.push(entry["path"].clone()));
    assert!(paths.len() > 10, "the whole tree: {whole}");
    for path in &paths {
        asked.push(("/meta_tree", json!({"path": path})));
        asked.push(("/meta_desc", json!({"path": path})));
    }
    asked.push(("/meta_desc", json!({"paths": paths})));
    let answer = |(route, body): &(&str, Value)| {
        let key = format!("{route} {body}");
        (key, broker.post(route, body))
    };
    asked.iter().map(answer).collect()
}

/// Calls `see` with every entry below: every object with a path and a type.
fn walk(value: &Value, see: &mut impl FnMut(&Value)) {
    if value.get("path").is_some() && value.get("type").is_some() {
        see(value);
    }
    let below = value.get("children").or(value.get("entries"));
    for child in below.and_then(Value::as_array).into_iter().flatten() {
        walk(child, see);
    }
}

/// Asserts that every reply has the compiled-in bytes, except that the tools in `withdrawn` have a
/// reason. Returns the reasons.
pub(crate) fn only_withdrawn(broker: &Broker, withdrawn: &BTreeSet<String>) -> Vec<Value> {
    let mut said = Vec::new();
    for (asked, reply) in replies(broker) {
        let reviewed = &REVIEWED[&asked];
        let mut touched = Vec::new();
        walk(&reviewed.json(), &mut |entry| {
            let path = entry["path"].as_str().unwrap_or_default();
            if withdrawn.contains(path) {
                touched.push(path.to_owned());
            }
        });
        assert!(!unreviewed(&reply.text()), "{asked}: {}", reply.text());
        if touched.is_empty() {
            assert_eq!(reply.status, reviewed.status, "{asked}");
            // A refusal has a request id, which differs each time.
            if reply.status == 200 {
                assert_eq!(with_no_source(&reply.text()), reviewed.text(), "{asked}");
                assert_eq!(reply.header("etag"), reviewed.header("etag"), "{asked}");
            }
            continue;
        }
        assert_ne!(reply.header("etag"), reviewed.header("etag"), "{asked}");
        let body = with_no_source(&reply.text());
        let mut body: Value = serde_json::from_str(&body).expect("JSON");
        let mut found = Vec::new();
        take_withdrawn(&mut body, &mut found);
        assert_eq!(body, reviewed.json(), "{asked}");
        let paths: Vec<_> = found.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(paths, touched, "{asked}");
        said.extend(found.into_iter().map(|(_, why)| why));
    }
    said
}

/// Returns a reply without the states of sources that take no calls now.
fn with_no_source(reply: &str) -> String {
    let unavailable = Regex::new(r#","unavailable":\{[^}]*\}"#).expect("a pattern");
    unavailable.replace_all(reply, "").into_owned()
}

fn take_withdrawn(value: &mut Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) => {
            if let Some(why) = members.remove("withdrawn") {
                let path = members["path"].as_str().unwrap_or_default();
                found.push((path.to_owned(), why));
            }
            let below = members
                .iter_mut()
                .filter(|(name, _)| matches!(name.as_str(), "children" | "entries"));
            below.for_each(|(_, value)| take_withdrawn(value, found));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| take_withdrawn(item, found)),
        _ => {}
    }
}

/// Whether a text contains text of the live server.
pub(crate) fn unreviewed(text: &str) -> bool {
    text.to_lowercase().contains(MARK) || text.contains(['\u{200b}', '\u{e0041}'])
}

/// One source in `/readyz`, which must be 200, and the same one in `/sources`.
pub(crate) fn health(broker: &Broker, path: &str) -> Value {
    let (ready, sources) = (broker.get("/readyz"), broker.get("/sources"));
    for reply in [&ready, &sources] {
        assert!(!unreviewed(&reply.text()), "{}", reply.text());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let of = |reply: &Response| {
        let all = reply.json()["sources"].clone();
        let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
        all.find(|source| source["path"] == path)
            .expect("the source is listed")
    };
    let (short, mut long) = (of(&ready), of(&sources));
    if let Some(members) = long.as_object_mut() {
        assert!(
            members
                .remove("counters")
                .is_some_and(|one| one.is_object())
        );
        assert!(
            members
                .remove("instances")
                .is_some_and(|one| one.is_array())
        );
    }
    assert_eq!(
        (&short["withdrawn"], &short["tools"]),
        (&long["withdrawn"], &long["tools"])
    );
    short
}

/// The events of a log in JSON with this message.
pub(crate) fn events(broker: &Broker, message: &str) -> Vec<Value> {
    let log = broker.stderr();
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole
        .lines()
        .map(|line| broker_model::json::parse(line).expect("each line is JSON, no key twice"));
    lines.filter(|event| event["message"] == message).collect()
}
