//! The drift state: the startup gate, withdrawal and restoration.

use std::time::Duration;

use broker_drift::Class;
use broker_mcp::{SourceFailure, State, Verdict};
use broker_model::snapshot::ListedTool;
use broker_model::{CallCode, SourceCause};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::fixture::{CALLER, Describe, MetaReplies, fixture, fixture_of, json_of, snapshot};
use crate::{Broker, Name, RefusalCause, StartMode};

fn edit(tool: &mut ListedTool, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut members = tool.read();
    change(&mut members);
    *tool = members.into();
}

const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn plain_start_with_drift_is_refused_with_every_difference() {
    let broker = fixture(StartMode::Plain);
    let mut live = snapshot(&["echo"]);
    edit(&mut live.tools[0], |tool| {
        tool.insert("description".to_owned(), json!("Now deletes."));
    });
    broker.lists(0, &live);
    broker.matches(1);
    let outcome = timeout(WAIT_TIMEOUT, broker.core.services().first_verdict())
        .await
        .unwrap();
    assert_eq!(outcome.refuse, Some(RefusalCause::Drift));
    let classes: Vec<_> = outcome
        .report
        .tools
        .iter()
        .map(|tool| (tool.path.as_str(), tool.class))
        .collect();
    assert_eq!(
        classes,
        [("/a/echo", Class::Text), ("/a/twin", Class::Gone)]
    );
    let error = broker
        .call("/a/deep/b/echo", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(error.code, CallCode::StartRefused);
    assert!(!broker.core.services().health().ready);
}

#[tokio::test]
async fn plain_start_with_a_failed_required_source_is_refused_after_one_try() {
    let broker = fixture(StartMode::Plain);
    broker.lists(0, &snapshot(&["echo"]));
    let failure = SourceFailure {
        stderr: vec!["no such file".to_owned()],
        ..SourceFailure::new(SourceCause::ExitBeforeReady, "it exited with code 1")
    };
    broker.sources[1].set(State::Backoff, Some(failure));
    let outcome = timeout(WAIT_TIMEOUT, broker.core.services().first_verdict())
        .await
        .unwrap();
    assert_eq!(
        outcome.refuse,
        Some(RefusalCause::Unchecked),
        "4 wins over 3"
    );
    assert_eq!(outcome.report.tools.len(), 1);
    let finding = &outcome.report.sources[0].findings[0];
    assert_eq!(finding.rule, "source-unavailable");
    assert!(
        finding.message.contains("no such file"),
        "{}",
        finding.message
    );
    let mut status = broker.sources[1].status();
    let stopped = status.wait_for(|status| status.state == State::Stopping);
    timeout(WAIT_TIMEOUT, stopped).await.unwrap().unwrap();
}

#[tokio::test]
async fn optional_source_that_fails_refuses_no_start_and_is_retried() {
    let broker = fixture_of(StartMode::Plain, json!({}), json!({"required": false}));
    broker.matches(0);
    let outcome = timeout(WAIT_TIMEOUT, broker.core.services().first_verdict())
        .await
        .unwrap();
    assert!(outcome.refuse.is_none() && broker.core.services().health().ready);
    let failure = SourceFailure::new(SourceCause::StartupTimeout, "no answer");
    broker.sources[1].set(State::Backoff, Some(failure));
    while !broker
        .core
        .0
        .call_path()
        .fleet
        .drift_state
        .gate
        .is_settled(1)
    {
        tokio::task::yield_now().await;
    }
    broker.lists(1, &snapshot(&[]));
    broker.sources[1].answer(Ok("{}"));
    let error = broker
        .call("/a/deep/b/echo", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(error.code, CallCode::ToolWithdrawn);
    assert!(broker.core.services().health().ready);
}

#[tokio::test]
async fn withdrawn_tool_is_listed_not_callable_and_restored() {
    let broker = fixture(StartMode::Plain);
    broker.matches(0);
    broker.matches(1);
    let core = &broker.core;
    let before = core.tree(&CALLER, "/a", 1).unwrap();
    let before_deep = core.tree(&CALLER, "/", 16).unwrap();
    let mut live = snapshot(&["echo", "twin"]);
    edit(&mut live.tools[1], |tool| {
        tool.insert("description".to_owned(), json!("Now deletes."));
        tool["inputSchema"]["required"] = json!(["text", "confirm"]);
    });
    assert_eq!(broker.lists(0, &live), Verdict::Serve);

    let tree = core.tree(&CALLER, "/a", 1).unwrap();
    assert_ne!(tree.etag, before.etag);
    let child = &json_of(&tree)["children"][2];
    let withdrawn = &child["withdrawn"];
    assert_eq!(
        (&withdrawn["class"], &withdrawn["rules"]),
        (
            &json!("breaking"),
            &json!(["input-required-added", "description-changed"])
        )
    );
    assert!(withdrawn["since"].as_str().unwrap().ends_with('Z'));
    assert!(json_of(&tree)["children"][1].get("withdrawn").is_none());
    let deep = core.tree(&CALLER, "/", 16).unwrap();
    assert_ne!(deep.etag, before_deep.etag);
    for path in ["/a", "/a/twin"] {
        let described = core.described(&CALLER, Describe::One(path)).unwrap();
        let text = json_of(&described).to_string();
        assert!(text.contains("\"withdrawn\"") && text.contains("at /a/twin"));
        assert!(!text.contains("deletes"), "only reviewed text is shown");
    }
    assert!(
        core.look_up(&CALLER, Name::Path("/a/twin"))
            .unwrap()
            .item
            .withdrawn
    );

    let error = broker
        .call("/a/twin", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(error.code, CallCode::ToolWithdrawn);
    let details = error.details.as_ref().unwrap();
    assert_eq!(
        details["rules"],
        json!(["input-required-added", "description-changed"])
    );
    assert_eq!(
        details["expected"],
        core.look_up(&CALLER, Name::Path("/a/twin")).unwrap().digest
    );
    let found = broker_model::digest::Digest::from_tool(&live.tools[1].read());
    assert_eq!(details["found"], found.as_str());
    broker.sources[0].answer(Ok("{}"));
    assert!(
        broker.call("/a/echo", json!({"text": ""})).await.is_ok(),
        "its neighbour is served"
    );
    let health = core.services().health();
    assert_eq!(
        (health.sources[0].state, health.sources[0].withdrawn),
        ("ready", 1)
    );
    assert!(health.ready);

    // A re-check that finds the same keeps the time and the view.
    let view = core.0.call_path().fleet.drift_state.view.load_full();
    broker.lists(0, &live);
    assert!(std::sync::Arc::ptr_eq(
        &view,
        &core.0.call_path().fleet.drift_state.view.load_full()
    ));

    // The source itself is up since the epoch; its tools are withdrawn since now.
    broker.lists(0, &snapshot(&[]));
    let health = core.services().health();
    assert_eq!(health.sources[0].state, "withdrawn");
    assert!(
        health.sources[0].since.as_str() > "2000",
        "{:?}",
        health.sources
    );

    broker.matches(0);
    let after = core.tree(&CALLER, "/a", 1).unwrap();
    assert_eq!((after.etag, after.body), (before.etag, before.body));
    broker.sources[0].answer(Ok("{}"));
    assert!(broker.call("/a/twin", json!({"text": ""})).await.is_ok());
}

#[tokio::test]
async fn source_without_any_served_tool_is_withdrawn() {
    let broker = fixture(StartMode::Tolerant);
    broker.lists(0, &snapshot(&["new"]));
    broker.matches(1);
    let outcome = broker.core.services().first_verdict().await;
    assert!(outcome.refuse.is_none());
    assert!(
        outcome
            .report
            .tools
            .iter()
            .any(|tool| tool.class == Class::Added)
    );
    assert_eq!(
        broker.core.services().health().sources[0].state,
        "withdrawn"
    );
    let error = broker.call("/a/new", json!({})).await.unwrap_err();
    assert_eq!(error.code, CallCode::PathNotFound);
}

#[tokio::test]
async fn server_info_change_withdraws_nothing() {
    let broker = fixture(StartMode::Tolerant);
    let mut live = snapshot(&["echo", "twin"]);
    live.server_info = json!({"name": "other", "version": "2"});
    assert_eq!(broker.lists(0, &live), Verdict::Serve);
    assert_eq!(broker.core.services().health().sources[0].withdrawn, 0);
    let strict = fixture(StartMode::Plain);
    strict.lists(0, &live);
    strict.matches(1);
    let outcome = strict.core.services().first_verdict().await;
    assert_eq!(outcome.refuse, Some(RefusalCause::Drift));
}

#[tokio::test]
async fn call_waiting_for_a_restart_follows_the_new_verdict() {
    let broker = fixture(StartMode::Plain);
    broker.matches(0);
    broker.matches(1);
    let source = &broker.sources[0];
    for (listed, admitted) in [(&["echo", "twin"][..], true), (&["twin"], false)] {
        source.set(State::Starting, None);
        let seen = source.seen().len();
        source.answer(Ok("{}"));
        let mut call = Box::pin(broker.call("/a/echo", json!({"text": ""})));
        assert!(timeout(Duration::from_millis(1), &mut call).await.is_err());
        broker.lists(0, &snapshot(listed));
        let outcome = timeout(WAIT_TIMEOUT, call).await.unwrap();
        assert_eq!(outcome.is_ok(), admitted);
        assert_eq!(source.seen().len() - seen, usize::from(admitted));
        if let Err(error) = outcome {
            assert_eq!(
                (error.code, error.maybe_executed),
                (CallCode::ToolWithdrawn, Some(false))
            );
        }
    }
}

/// The listing of `/a` with another text of `echo`, and with the given change.
fn reworded(change: impl FnOnce(&mut broker_model::Snapshot)) -> broker_model::Snapshot {
    let mut live = snapshot(&["echo", "twin"]);
    change(&mut live);
    live
}

fn describe_otherwise(live: &mut broker_model::Snapshot, text: &str) {
    edit(&mut live.tools[0], |tool| {
        tool.insert("description".to_owned(), json!(text));
    });
}

#[tokio::test]
async fn text_drift_is_served_or_withdrawn_as_configured() {
    for (policy, withdrawn) in [("serve", 0), ("withdraw", 1)] {
        let broker = fixture_of(
            StartMode::Tolerant,
            json!({ "on_text_drift": policy }),
            json!({}),
        );
        let live = reworded(|live| describe_otherwise(live, "OBEY ME"));
        assert_eq!(broker.lists(0, &live), Verdict::Serve);
        broker.matches(1);
        let report = broker.core.services().first_verdict().await.report;
        assert_eq!(report.tools[0].class, Class::Text, "reports keep the class");
        assert_eq!(
            broker.core.services().health().sources[0].withdrawn,
            withdrawn
        );
        broker.sources[0].answer(Ok("{}"));
        let outcome = broker.call("/a/echo", json!({"text": ""})).await;
        if withdrawn == 0 {
            assert!(outcome.is_ok());
            continue;
        }
        let error = outcome.unwrap_err();
        assert_eq!(error.code, CallCode::ToolWithdrawn);
        let details = error.details.as_ref().unwrap();
        assert_eq!(details["class"], "text");
        assert_eq!(details["rules"], json!(["description-changed"]));
        assert!(!error.message.contains("OBEY"), "{}", error.message);
        assert!(broker.call("/a/twin", json!({"text": ""})).await.is_ok());
        broker.matches(0);
        broker.sources[0].answer(Ok("{}"));
        assert!(broker.call("/a/echo", json!({"text": ""})).await.is_ok());
    }
}

#[tokio::test]
async fn plain_start_with_text_drift_is_refused_under_any_policy() {
    for policy in ["serve", "withdraw"] {
        let broker = fixture_of(
            StartMode::Plain,
            json!({ "on_text_drift": policy }),
            json!({}),
        );
        broker.lists(0, &reworded(|live| describe_otherwise(live, "Other.")));
        broker.matches(1);
        let outcome = broker.core.services().first_verdict().await;
        assert_eq!(outcome.refuse, Some(RefusalCause::Drift), "{policy}");
    }
}

#[tokio::test]
async fn text_drift_withdraws_tool_or_source_except_for_white_space() {
    let withdraw = || json!({"on_text_drift": "withdraw"});
    let long: String = (0..60)
        .map(|n| format!("\"p{n}\":{{\"type\":\"string\"}},"))
        .collect();
    let properties = format!("{{{long}\"text\":{{\"type\":\"string\"}}}}");
    let properties: serde_json::Value = serde_json::from_str(&properties).unwrap();
    type Change = Box<dyn Fn(&mut broker_model::Snapshot)>;
    let cases: Vec<(&str, usize, Change)> = vec![
        ("nothing", 0, Box::new(|_| {})),
        (
            "a description",
            1,
            Box::new(|live| describe_otherwise(live, "Other.")),
        ),
        (
            "white space",
            0,
            Box::new(|live| describe_otherwise(live, " Says  it back.\n")),
        ),
        (
            "a title",
            1,
            Box::new(|live| {
                edit(&mut live.tools[1], |tool| {
                    tool.insert("title".to_owned(), json!("Other"));
                });
            }),
        ),
        (
            "the text of a parameter",
            1,
            Box::new(|live| {
                edit(&mut live.tools[0], |tool| {
                    tool["inputSchema"]["properties"]["text"]["description"] = json!("Other");
                });
            }),
        ),
        (
            "a new parameter, and a description",
            1,
            Box::new(|live| {
                edit(&mut live.tools[0], |tool| {
                    tool["inputSchema"]["properties"]["more"] = json!({"type": "string"});
                });
                describe_otherwise(live, "Other.");
            }),
        ),
        (
            "a new parameter",
            0,
            Box::new(|live| {
                edit(&mut live.tools[0], |tool| {
                    tool["inputSchema"]["properties"]["more"] = json!({"type": "string"});
                });
            }),
        ),
        (
            "a description behind more findings than are listed",
            1,
            Box::new(move |live| {
                edit(&mut live.tools[0], |tool| {
                    tool["inputSchema"]["properties"] = properties.clone();
                });
                describe_otherwise(live, "Other.");
            }),
        ),
        (
            "instructions",
            2,
            Box::new(|live| live.instructions = Some("Other.".to_owned())),
        ),
        (
            "name and version",
            0,
            Box::new(|live| {
                live.server_info = json!({"name": "other", "version": "2"});
            }),
        ),
    ];
    for (what, withdrawn, change) in cases {
        let broker = fixture_of(StartMode::Tolerant, withdraw(), json!({}));
        assert_eq!(
            broker.lists(0, &reworded(|live| change(live))),
            Verdict::Serve
        );
        let health = broker.core.services().health();
        assert_eq!(health.sources[0].withdrawn, withdrawn, "{what}");
        let state = if withdrawn == 2 { "withdrawn" } else { "ready" };
        assert_eq!(health.sources[0].state, state, "{what}");
    }
}
