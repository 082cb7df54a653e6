//! Parts that a program gives a core: its own admission, a health view, a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use broker_mcp::State;
use broker_model::CallCode;
use serde_json::json;

use super::fixture::{
    CALLER, Describe, Fixture, MetaReplies, call, catalog, fixture_built, fixture_built_with,
    json_of, member_of, snapshot,
};
use crate::{Broker, Clock, Core, Identity, Name, Restrict, ToolItem};

/// The paths that the caller lists, after a check that every other operation agrees.
async fn visible(broker: &Fixture, caller: &Identity) -> Vec<&'static str> {
    let core = &broker.core;
    let listed: Vec<_> = core.items(caller).iter().map(|tool| tool.path).collect();
    let tree = json_of(&core.tree(caller, "/", 16).unwrap()).to_string();
    for (path, source) in [("/a/echo", 0), ("/a/twin", 0), ("/a/deep/b/echo", 1)] {
        let exists = listed.contains(&path);
        assert_eq!(
            tree.contains(&format!("\"{path}\"")),
            exists,
            "{path}: {tree}"
        );
        assert_eq!(
            core.look_up(caller, Name::Path(path)).is_ok(),
            exists,
            "{path}"
        );
        assert_eq!(
            core.described(caller, Describe::One(path)).is_ok(),
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
    let deep = |caller: &Identity| broker.core.tree(caller, "/a/deep", 1).unwrap();
    assert_eq!(deep(&CALLER).body, deep(&key).body);
    assert_ne!(deep(&CALLER).etag, deep(&key).etag, "the class differs");
}

#[tokio::test]
async fn callers_learn_of_a_filter_that_changes() {
    let admits = Arc::new(AtomicBool::new(true));
    let switch = admits.clone();
    let all_or_none = move |_: &Identity, _: &ToolItem| switch.load(Ordering::Relaxed);
    let broker = fixture_built(|builder| builder.admission(all_or_none));
    let mut changes = broker.core.services().tool_list_changes(&CALLER);
    admits.store(false, Ordering::Relaxed);
    broker.core.services().note_filter_change();
    assert!(changes.next().await);
    assert_eq!(broker.core.items(&CALLER), []);
}

#[tokio::test]
async fn filter_of_a_program_decides_who_operates_a_broker_without_rules() {
    let no_twin = |_: &Identity, tool: &ToolItem| tool.flat_name != "a-twin";
    let broker = fixture_built(|builder| builder.admission(no_twin));
    let shown = |caller| Broker::health(&broker.core, caller).sources.len();
    assert_eq!((shown(&CALLER), shown(&Identity::local())), (0, 2));
}

#[tokio::test]
async fn filter_leaves_no_trace_of_a_tool_that_rules_deny() {
    let rules = json!([{"allow": ["/a/echo"], "to": ["*"]}]);
    let access =
        json!({"groups": ["first"], "anonymous": ["*"], "rules": rules, "denied": "forbidden"});
    let ready = |_: &str, state: State| state == State::Ready;
    let broker = fixture_built_with(access, |builder| builder.health_view(ready));
    broker.matches(0);
    broker.matches(1);
    let seen = || {
        let replies = ["/", "/a"].map(|path| broker.core.tree(&CALLER, path, 1).unwrap());
        replies.map(|reply| (reply.body, reply.etag))
    };
    let before = seen();
    let code = || {
        broker
            .core
            .described(&CALLER, Describe::One("/a/deep/b/echo"))
            .unwrap_err()
            .code
    };
    assert_eq!(code(), CallCode::Forbidden);
    broker.sources[1].set(State::Backoff, None);
    assert_eq!(seen(), before);
    // It is denied by a rule, and health says nothing about it.
    assert_eq!(code(), CallCode::Forbidden);
    // No rule denies this one.
    broker.sources[0].set(State::Backoff, None);
    let absent = broker.core.described(&CALLER, Describe::One("/a/echo"));
    assert_eq!(absent.unwrap_err().code, CallCode::PathNotFound);
}

#[tokio::test]
async fn node_without_a_tool_that_filters_admit_does_not_exist() {
    let shallow = |_: &Identity, tool: &ToolItem| tool.source != "/a/deep/b";
    let broker = fixture_built(|builder| builder.admission(shallow));
    broker.matches(0);
    broker.matches(1);
    let refused = broker.core.tree(&CALLER, "/a/deep", 1).unwrap_err();
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
    let mut changes = broker.core.services().tool_list_changes(&CALLER);
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
    assert_eq!(broker.core.items(&CALLER).len(), 3);
    let tree = json_of(&broker.core.tree(&CALLER, "/a", 1).unwrap());
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
    let ended = core.services().right_ended(&caller);
    let waited = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert!(waited.is_err(), "the clock does not move");
    jumped.store(true, Ordering::Relaxed);
    core.services().right_ended(&caller).await;
    broker.matches(0);
    broker.matches(1);
    broker.lists(0, &snapshot(&["echo"]));
    let twin = json_of(&core.described(&CALLER, Describe::One("/a/twin")).unwrap());
    assert_eq!(twin["withdrawn"]["since"], "2001-09-09T02:46:40Z");
}

#[tokio::test]
async fn config_of_a_core_is_by_default_that_of_the_catalog() {
    // The one of this catalog is an empty object.
    let problems = Core::builder(catalog()).build().unwrap_err();
    let texts: Vec<_> = problems.iter().map(|one| one.message.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("tree")), "{texts:?}");
}

#[tokio::test]
async fn program_closes_its_broker_without_an_operator() {
    let broker = super::fixture::fixture_with(json!([{"allow": ["/**"], "to": ["*"]}]));
    broker.matches(0);
    broker.matches(1);
    assert_eq!(visible(&broker, &CALLER).await.len(), 3);
    // A wrapper closes the broker inside.
    let narrow = Restrict::new(broker.core.clone(), |_, _| false);
    let close = || Broker::close(&broker.core);
    tokio::join!(close(), close(), narrow.close());
    close().await;
    let code = call(&broker.core, &CALLER, "/a/echo", json!({"text": ""})).await;
    assert_eq!(code.unwrap_err().code, CallCode::ShuttingDown);
}
