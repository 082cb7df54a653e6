//! Parts that a program gives a core: its own admission, a health view, a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use broker_mcp::State;
use broker_model::CallCode;
use serde_json::json;

use super::fixture::{CALLER, Fixture, call, catalog, fixture_built, json_of, member_of, snapshot};
use crate::{BrokerInterface, Clock, Core, Describe, Identity, ToolItem};

/// The paths that the caller lists, after a check that every other operation agrees.
async fn visible(broker: &Fixture, caller: &Identity) -> Vec<&'static str> {
    let core = &broker.core;
    let listed: Vec<_> = core
        .list_tools(caller)
        .iter()
        .map(|tool| tool.path)
        .collect();
    let tree = json_of(&core.list(caller, "/", 16).unwrap()).to_string();
    for (path, source) in [("/a/echo", 0), ("/a/twin", 0), ("/a/deep/b/echo", 1)] {
        let exists = listed.contains(&path);
        assert_eq!(
            tree.contains(&format!("\"{path}\"")),
            exists,
            "{path}: {tree}"
        );
        assert_eq!(core.lookup_tool(caller, path).is_ok(), exists, "{path}");
        assert_eq!(
            core.describe(caller, Describe::One(path)).is_ok(),
            exists,
            "{path}"
        );
        let before = broker.sources[source].seen().len();
        if exists {
            broker.sources[source].answer(Ok("{}"));
        }
        let called = call(core, caller, path, json!({"text": ""})).await;
        let code = called.err().map(|error| error.code);
        assert_eq!(code, (!exists).then_some(CallCode::PathNotFound), "{path}");
        let sent = broker.sources[source].seen().len() - before;
        assert_eq!(sent, usize::from(exists), "{path}");
    }
    listed
}

#[tokio::test]
async fn admission_of_a_program_removes_tools_from_every_operation() {
    let no_twin = |identity: &Identity, tool: &ToolItem| {
        identity.is_authenticated() || tool.flat_name != "a-twin"
    };
    let broker = fixture_built(|builder| builder.admission(no_twin));
    broker.matches(0);
    broker.matches(1);
    let all = ["/a/deep/b/echo", "/a/echo", "/a/twin"];
    let key = member_of(&[]);
    // Caches are filled by both, in both orders.
    for _ in 0..2 {
        assert_eq!(visible(&broker, &CALLER).await, all[..2]);
        assert_eq!(visible(&broker, &key).await, all);
    }
    let etag = |caller: &Identity| broker.core.list(caller, "/a", 1).unwrap().etag;
    assert_ne!(etag(&CALLER), etag(&key));
}

#[tokio::test]
async fn node_without_a_tool_that_filters_admit_does_not_exist() {
    let shallow = |_: &Identity, tool: &ToolItem| tool.source != "/a/deep/b";
    let broker = fixture_built(|builder| builder.admission(shallow));
    broker.matches(0);
    broker.matches(1);
    let refused = broker.core.list(&CALLER, "/a/deep", 1).unwrap_err();
    assert_eq!(refused.code, CallCode::PathNotFound);
    assert_eq!(visible(&broker, &CALLER).await, ["/a/echo", "/a/twin"]);
}

#[tokio::test(start_paused = true)]
async fn health_view_removes_tools_while_their_source_is_not_offered() {
    let ready = |_: &str, state: State| state == State::Ready;
    let broker = fixture_built(|builder| builder.health_view(ready));
    broker.matches(0);
    broker.matches(1);
    broker.sources[1].set(State::Starting, None);
    assert_eq!(visible(&broker, &CALLER).await, ["/a/echo", "/a/twin"]);
    let mut changes = broker.core.tool_list_changes(&CALLER);
    broker.sources[1].set(State::Ready, None);
    let changed = tokio::time::timeout(HOUR, changes.next()).await;
    assert_eq!(changed, Ok(true));
    let all = ["/a/deep/b/echo", "/a/echo", "/a/twin"];
    assert_eq!(visible(&broker, &CALLER).await, all);
    broker.sources[0].set(State::Backoff, None);
    let changed = tokio::time::timeout(HOUR, changes.next()).await;
    assert_eq!(changed, Ok(true));
    assert_eq!(visible(&broker, &CALLER).await, all[..1]);
}

#[tokio::test]
async fn health_filters_nothing_by_default() {
    let broker = fixture_built(|builder| builder);
    broker.matches(0);
    broker.matches(1);
    broker.sources[0].set(State::Backoff, None);
    assert_eq!(broker.core.list_tools(&CALLER).len(), 3);
    let tree = json_of(&broker.core.list(&CALLER, "/a", 1).unwrap());
    assert!(tree.to_string().contains("/a/twin"), "{tree}");
}

/// A clock that jumps an hour when its switch is set.
#[derive(Debug)]
struct Jumping(Arc<AtomicBool>);

const BEGUN: Duration = Duration::from_secs(1_000_000_000);
const HOUR: Duration = Duration::from_secs(3600);

impl Clock for Jumping {
    fn now(&self) -> SystemTime {
        let hours = u32::from(self.0.load(Ordering::Relaxed));
        SystemTime::UNIX_EPOCH + BEGUN + HOUR * hours
    }
}

#[tokio::test(start_paused = true)]
async fn clock_of_a_program_dates_withdrawals_and_ends_rights() {
    let jumped = Arc::new(AtomicBool::new(false));
    let broker = fixture_built(|builder| builder.clock(Jumping(jumped.clone())));
    let core = &broker.core;
    let caller = member_of(&[]).expiring(SystemTime::UNIX_EPOCH + BEGUN + HOUR / 2);
    let ended = core.right_ended(&caller);
    let waited = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert!(waited.is_err(), "the clock stands still");
    jumped.store(true, Ordering::Relaxed);
    core.right_ended(&caller).await;
    broker.matches(0);
    broker.matches(1);
    broker.lists(0, &snapshot(&["echo"]));
    let twin = json_of(&core.describe(&CALLER, Describe::One("/a/twin")).unwrap());
    assert_eq!(twin["withdrawn"]["since"], "2001-09-09T02:46:40Z");
}

#[tokio::test]
async fn every_part_but_the_catalog_has_a_default() {
    let problems = Core::builder(catalog()).build().unwrap_err();
    // The config of the catalog of these tests is empty; it was read.
    let texts: Vec<_> = problems.iter().map(|one| one.message.as_str()).collect();
    assert!(texts.iter().all(|text| text.contains("tree")), "{texts:?}");
}

#[tokio::test]
async fn only_an_operator_closes_a_broker() {
    let broker = super::fixture::fixture_with(json!([{"allow": ["/**"], "to": ["*"]}]));
    broker.matches(0);
    broker.matches(1);
    let refused = BrokerInterface::close(&broker.core, &member_of(&["first"])).await;
    assert_eq!(refused.unwrap_err().code, CallCode::Forbidden);
    assert_eq!(visible(&broker, &CALLER).await.len(), 3);
    let local = Identity::local();
    let close = || BrokerInterface::close(&broker.core, &local);
    let (first, second) = tokio::join!(close(), close());
    assert!(first.and(second).and(close().await).is_ok());
    let code = call(&broker.core, &CALLER, "/a/echo", json!({"text": ""})).await;
    assert_eq!(code.unwrap_err().code, CallCode::ShuttingDown);
}
