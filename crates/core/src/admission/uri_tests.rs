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

/// An entry of resources, and a template that covers the locked resource [`URI`]; both of the first source.
const RESOURCES: &str = "/a/echo";
const TEMPLATE: &str = "/a/twin";
const URI: &str = "x://docs/one";
const TEMPLATE_TEXT: &str = "x://{host}/one";
/// The tools that the lock of the first source has.
const NAMES: [&str; 2] = ["echo", "twin"];

/// Further members of the first source in the config.
fn members(id: &str) -> Value {
    let mode = if id == LIVE { "live" } else { "locked" };
    json!({"resources": mode, "resource_filter": ["**"]})
}

/// The catalog of the fixture, with a template and the resource `id` in place of the tools of the first source.
fn resources(id: &'static str) -> &'static Catalog {
    let base = catalog();
    let any = base.items.iter().find_map(|item| item.output_schema);
    let any = any.expect("it accepts all arguments");
    let item = |item: &Item| {
        let (kind, id) = match base.entry(item.entry).path {
            RESOURCES => (ItemKind::Resource, id),
            TEMPLATE => (ItemKind::Template, TEMPLATE_TEXT),
            _ => return Item { ..*item },
        };
        Item {
            kind,
            id,
            key: kind.key(id).leak(),
            flat_name: "",
            args_schema: any,
            output_schema: None,
            listed: None,
            ..*item
        }
    };
    let items: Vec<_> = base.items.iter().map(item).collect();
    let config = config(members(id), json!({}));
    let source = config.source(&NodePath::parse("/a").unwrap()).unwrap();
    let lock = source.to_locked(&snapshot(&NAMES)).to_json().to_string();
    let (at, len) = (base.blob.len() as u32, lock.len() as u32);
    let with_lock = Source {
        lock: Span { at, len },
        ..base.sources[0]
    };
    Box::leak(Box::new(Catalog {
        blob: format!("{}{lock}", base.blob).leak(),
        items: items.leak(),
        sources: vec![with_lock, Source { ..base.sources[1] }].leak(),
        ..*base
    }))
}

/// A broker whose callers may use the entries at these paths. The resource is `id`; of live ones, `x://a` is listed.
fn fixture(id: &'static str, paths: &[&str]) -> Fixture {
    let rules = json!([{"allow": paths, "to": ["*"]}]);
    let broker = fixture_over(resources(id), rules, [members(id), json!({})]);
    lists(&broker, "x://a");
    broker.matches(1);
    broker
}

/// The first source lists the resource `uri` now.
fn lists(broker: &Fixture, uri: &str) {
    let resource = json!({"uri": uri, "name": "A"}).to_string();
    let listed = Snapshot {
        resources: vec![ListedTool::new(ItemKind::Resource.key(uri), &resource)],
        ..snapshot(&NAMES)
    };
    broker.lists(0, &listed);
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
    broker.sources[0].answer(Ok("{}"));
    let outcome = broker.core.call(read(broker, path, uri)).await;
    (outcome, sent(broker))
}

fn sent(broker: &Fixture) -> Vec<String> {
    let calls = broker.sources[0].seen().into_iter();
    calls.map(|call| call.tool).collect()
}

#[tokio::test]
async fn locked_resource_is_read_by_its_uri_only() {
    let broker = fixture(URI, &["/**"]);
    let (outcome, sent) = reading(&broker, RESOURCES, URI).await;
    outcome.unwrap();
    assert_eq!(sent, [URI]);
    let broker = fixture(URI, &["/**"]);
    let (outcome, sent) = reading(&broker, RESOURCES, "x://docs/two").await;
    assert_eq!(outcome.unwrap_err().code, CallCode::PathNotFound);
    assert_eq!(sent, [""; 0]);
}

/// The server gets the URI alone, and may read it as a URI of the template.
#[tokio::test]
async fn locked_resource_of_a_denied_template_is_not_read() {
    let broker = fixture(URI, &[RESOURCES]);
    let (outcome, sent) = reading(&broker, RESOURCES, URI).await;
    assert_eq!(outcome.unwrap_err().code, CallCode::PathNotFound);
    assert_eq!(sent, [""; 0]);
}

#[tokio::test]
async fn live_resource_of_a_denied_template_is_not_read() {
    for (paths, is_read) in [(&["/**"][..], true), (&[RESOURCES], false)] {
        let broker = fixture(LIVE, paths);
        lists(&broker, URI);
        let (outcome, sent) = reading(&broker, RESOURCES, URI).await;
        let code = outcome.err().map(|error| error.code);
        assert_eq!(code, (!is_read).then_some(CallCode::PathNotFound));
        assert_eq!(sent.len(), usize::from(is_read));
    }
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
        let broker = fixture(URI, &[TEMPLATE]);
        let (outcome, sent) = reading(&broker, TEMPLATE, uri).await;
        let code = outcome.err().map(|error| error.code);
        assert_eq!(code, (!is_read).then_some(CallCode::PathNotFound), "{uri}");
        assert_eq!(sent, if is_read { vec![uri] } else { Vec::new() });
    }
}

#[tokio::test]
async fn live_entry_reads_what_its_source_lists_now() {
    let broker = fixture(LIVE, &["/**"]);
    let (outcome, sent) = reading(&broker, RESOURCES, "x://a").await;
    outcome.unwrap();
    assert_eq!(sent, ["x://a"]);
    let (outcome, sent) = reading(&broker, RESOURCES, "x://b").await;
    assert_eq!(outcome.unwrap_err().code, CallCode::ArgsInvalid);
    assert_eq!(sent, ["x://a"]);
}

#[tokio::test]
async fn read_that_waits_for_its_source_is_refused_if_the_new_list_lacks_its_uri() {
    for (listed, is_read) in [("x://a", true), ("x://b", false)] {
        let broker = fixture(LIVE, &["/**"]);
        broker.sources[0].set(State::Starting, None);
        let calling = broker.core.call(read(&broker, RESOURCES, "x://a"));
        let mut calling = pin!(calling);
        let waits = std::future::poll_fn(|cx| Poll::Ready(calling.as_mut().poll(cx).is_pending()));
        assert!(waits.await, "the source is starting");
        broker.sources[0].answer(Ok("{}"));
        lists(&broker, listed);
        let code = calling.await.err().map(|error| error.code);
        assert_eq!(code, (!is_read).then_some(CallCode::ArgsInvalid));
        assert_eq!(sent(&broker).len(), usize::from(is_read));
    }
}
