//! Reads of resources: the URIs that a caller may read through a locked resource, a template and an entry of live
//! resources.

use std::future::Future as _;
use std::pin::pin;
use std::task::Poll;

use broker_mcp::State;
use broker_model::item::{ItemKind, LIVE};
use broker_model::snapshot::ListedTool;
use broker_model::{CallCode, NodePath, Snapshot};
use serde_json::{Value, json};

use crate::catalog::{Catalog, Item, Source, Span};
use crate::tests::fixture::{
    CALLER, Fixture, catalog, config, context, fixture_over, request, snapshot,
};
use crate::{Broker as _, CoreError, Operation, Outcome, Request};

/// A locked resource, a template that covers it, and the entry of live resources of the other source.
const RESOURCE: &str = "/a/echo";
const TEMPLATE: &str = "/a/twin";
const LIVE_ENTRY: &str = "/a/deep/b/echo";
const URI: &str = "x://docs/one";
const TEMPLATE_TEXT: &str = "x://{host}/one";

/// Further members of the two sources in the config.
fn members() -> [Value; 2] {
    ["locked", "live"].map(|mode| json!({"resources": mode, "resource_filter": ["**"]}))
}

/// The catalog of the fixture, with resources in place of its tools.
fn resources() -> &'static Catalog {
    let base = catalog();
    let any = base.items.iter().find_map(|item| item.output_schema);
    let any = any.expect("it accepts all arguments");
    let kinds = [
        (RESOURCE, ItemKind::Resource, URI),
        (TEMPLATE, ItemKind::Template, TEMPLATE_TEXT),
        (LIVE_ENTRY, ItemKind::Resource, LIVE),
    ];
    let items = base.items.iter().map(|item| {
        let path = base.entry(item.entry).path;
        let (_, kind, id) = kinds.iter().find(|(of, ..)| *of == path).expect("a kind");
        Item {
            kind: *kind,
            id,
            key: kind.key(id).leak(),
            flat_name: "",
            args_schema: any,
            output_schema: None,
            listed: None,
            ..*item
        }
    });
    let [a, b] = members();
    let config = config(a, b);
    let mut blob = base.blob.to_owned();
    let sources = base.sources.iter().zip(names()).map(|(source, names)| {
        let path = NodePath::parse(source.path).unwrap();
        let lock = config.source(&path).unwrap().to_locked(&snapshot(names));
        let (lock, at) = (lock.to_json().to_string(), blob.len() as u32);
        blob.push_str(&lock);
        let len = lock.len() as u32;
        Source {
            lock: Span { at, len },
            ..*source
        }
    });
    let (sources, items) = (sources.collect::<Vec<_>>(), items.collect::<Vec<_>>());
    Box::leak(Box::new(Catalog {
        blob: blob.leak(),
        items: items.leak(),
        sources: sources.leak(),
        ..*base
    }))
}

/// The tools that the locks of the two sources have.
fn names() -> [&'static [&'static str]; 2] {
    [&["echo", "twin"], &["echo"]]
}

/// A broker whose callers may use the entries at these paths. The second source lists `x://a` now.
fn fixture(paths: &[&str]) -> Fixture {
    let rules = json!([{"allow": paths, "to": ["*"]}]);
    let broker = fixture_over(resources(), rules, members());
    broker.lists(0, &snapshot(names()[0]));
    lists_live(&broker, "x://a");
    broker
}

fn lists_live(broker: &Fixture, uri: &str) {
    let resource = json!({"uri": uri, "name": "A"}).to_string();
    let listed = Snapshot {
        resources: vec![ListedTool::new(ItemKind::Resource.key(uri), &resource)],
        ..snapshot(names()[1])
    };
    broker.lists(1, &listed);
}

fn read(broker: &Fixture, path: &str, uri: &str) -> Request {
    Request {
        operation: Operation::ReadResource(uri.into()),
        ..request(&CALLER, context(&broker.core), path, json!({}))
    }
}

/// Reads a URI; returns the outcome and the URIs that reached the servers.
async fn reading(
    broker: &Fixture,
    path: &str,
    uri: &str,
) -> (Result<Outcome, Box<CoreError>>, Vec<String>) {
    for source in &broker.sources {
        source.answer(Ok("{}"));
    }
    let outcome = broker.core.call(read(broker, path, uri)).await;
    (outcome, sent(broker))
}

fn sent(broker: &Fixture) -> Vec<String> {
    let sources = broker.sources.iter();
    let calls = sources.flat_map(|source| source.seen());
    calls.map(|call| call.tool).collect()
}

#[tokio::test]
async fn locked_resource_is_read_by_its_uri_only() {
    let broker = fixture(&["/**"]);
    let (outcome, sent) = reading(&broker, RESOURCE, URI).await;
    outcome.unwrap();
    assert_eq!(sent, [URI]);
    let broker = fixture(&["/**"]);
    let (outcome, sent) = reading(&broker, RESOURCE, "x://docs/two").await;
    assert_eq!(outcome.unwrap_err().code, CallCode::PathNotFound);
    assert_eq!(sent, [""; 0]);
}

/// The server gets the URI alone, and may read it as a URI of the template.
#[tokio::test]
async fn locked_resource_of_a_denied_template_is_not_read() {
    let broker = fixture(&[RESOURCE]);
    let (outcome, sent) = reading(&broker, RESOURCE, URI).await;
    assert_eq!(outcome.unwrap_err().code, CallCode::PathNotFound);
    assert_eq!(sent, [""; 0]);
}

#[tokio::test]
async fn template_reads_no_spelling_of_a_denied_resource() {
    for (uri, is_read) in [
        ("x://other/one", true),
        (URI, false),
        ("x://DOCS/one", false),
        // Parsers of URIs disagree about its authority, so that it may be every other URI.
        ("x://a%5Cb/one", false),
    ] {
        let broker = fixture(&[TEMPLATE]);
        let (outcome, sent) = reading(&broker, TEMPLATE, uri).await;
        let code = outcome.err().map(|error| error.code);
        assert_eq!(code, (!is_read).then_some(CallCode::PathNotFound), "{uri}");
        assert_eq!(sent, if is_read { vec![uri] } else { Vec::new() });
    }
}

#[tokio::test]
async fn live_entry_reads_what_its_source_lists_now() {
    let broker = fixture(&["/**"]);
    let (outcome, sent) = reading(&broker, LIVE_ENTRY, "x://a").await;
    outcome.unwrap();
    assert_eq!(sent, ["x://a"]);
    let (outcome, sent) = reading(&broker, LIVE_ENTRY, "x://b").await;
    assert_eq!(outcome.unwrap_err().code, CallCode::ArgsInvalid);
    assert_eq!(sent, ["x://a"]);
}

#[tokio::test]
async fn read_that_waits_for_its_source_is_refused_if_the_new_list_lacks_its_uri() {
    for (listed, is_read) in [("x://a", true), ("x://b", false)] {
        let broker = fixture(&["/**"]);
        broker.sources[1].set(State::Starting, None);
        let calling = broker.core.call(read(&broker, LIVE_ENTRY, "x://a"));
        let mut calling = pin!(calling);
        let waits = std::future::poll_fn(|cx| Poll::Ready(calling.as_mut().poll(cx).is_pending()));
        assert!(waits.await, "the source is starting");
        broker.sources[1].answer(Ok("{}"));
        lists_live(&broker, listed);
        let code = calling.await.err().map(|error| error.code);
        assert_eq!(code, (!is_read).then_some(CallCode::ArgsInvalid));
        assert_eq!(sent(&broker).len(), usize::from(is_read));
    }
}
