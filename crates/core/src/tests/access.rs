//! Rules that narrow arguments, the answer for denied entries, and the end of the right to call.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use broker_mcp::{CallFailure, SourceFailure, State};
use broker_model::{CallCode, SourceCause};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fixture::{
    CALLER, Describe, MetaReplies, call, fixture_that_shows_denials, fixture_with, json_of,
    member_of,
};
use crate::{Broker, Claims, Identity, Revocation, ToolQuery};

fn token(claims: Value) -> Identity {
    let claims: Claims = claims.as_object().unwrap().clone().into_iter().collect();
    let groups: [String; 1] = ["first".to_owned()];
    Identity::token("https://issuer", "someone", groups, claims)
}

/// `/a/echo` only with the text that the claim `org` names, for the first group.
fn narrowed() -> Value {
    json!([
        {"allow": ["/a/echo"], "to": ["first"],
         "args": {"properties": {"text": {"const": {"$claim": "org"}}}, "required": ["text"]}},
        {"allow": ["/a/echo"], "to": ["second"], "args": {"properties": {"text": {"maxLength": 2}}}},
    ])
}

#[tokio::test]
async fn arguments_must_match_a_narrowing_that_applies_to_the_caller() {
    let broker = fixture_with(narrowed());
    broker.matches(0);
    broker.matches(1);
    let one = token(json!({"org": "one", "other": true}));
    for (caller, text, code) in [
        (&one, json!("one"), None),
        (&one, json!("two"), Some(CallCode::Forbidden)),
        // The schema of the tool comes first.
        (&one, json!(1), Some(CallCode::ArgsInvalid)),
        (
            &token(json!({})),
            json!("one"),
            Some(CallCode::PathNotFound),
        ),
        (
            &member_of(&["first"]),
            json!("one"),
            Some(CallCode::PathNotFound),
        ),
        (&member_of(&["second"]), json!("ab"), None),
        (
            &member_of(&["second"]),
            json!("abc"),
            Some(CallCode::Forbidden),
        ),
    ] {
        if code.is_none() {
            broker.sources[0].answer(Ok("{}"));
        }
        let called = call(&broker.core, caller, "/a/echo", json!({"text": text})).await;
        assert_eq!(
            called.err().map(|error| error.code),
            code,
            "{caller:?} {text}"
        );
    }
    let refused = call(&broker.core, &one, "/a/echo", json!({"text": "secret"})).await;
    let error = refused.unwrap_err();
    let details = error.details.as_ref().unwrap();
    assert_eq!(details["errors"][0]["pointer"], "/text");
    assert_eq!(error.maybe_executed, Some(false));
    assert!(!format!("{error} {details}").contains("secret"));
}

#[tokio::test]
async fn caller_is_shown_the_schema_that_its_arguments_must_match() {
    let core = fixture_with(narrowed()).core;
    let described =
        |caller: &Identity| json_of(&core.described(caller, Describe::One("/a/echo")).unwrap());
    let one = described(&token(json!({"org": "one"})));
    assert_eq!(one["args_schema_narrowed"], true);
    assert_eq!(one["args_schema"]["required"], json!(["text"]));
    let narrowing =
        |org: &str| json!([{"properties": {"text": {"const": org}}, "required": ["text"]}]);
    assert_eq!(one["args_schema"]["allOf"], narrowing("one"));
    let two = described(&token(json!({"org": "two"})));
    assert_eq!(two["args_schema"]["allOf"], narrowing("two"));
    // Both rules apply to the caller of tests, which has both groups and no claim: one is left.
    let both = described(&CALLER);
    assert_eq!(
        both["args_schema"]["allOf"][0]["properties"]["text"]["maxLength"],
        2
    );
    let page = core
        .tools(&token(json!({"org": "one"})), &ToolQuery::default())
        .unwrap();
    let tools: Value = serde_json::from_slice(&page.json()).unwrap();
    assert_eq!(tools[0]["inputSchema"]["allOf"], narrowing("one"));
    assert_eq!(tools.as_array().unwrap().len(), 1);
}

/// A caller whose right can be withdrawn.
fn revocable(cancels_calls: bool) -> (Identity, CancellationToken) {
    let revoked = CancellationToken::new();
    let revocation = Revocation {
        revoked: revoked.clone(),
        cancels_calls,
        keeps: None,
    };
    (member_of(&["first"]).revoked_by(revocation), revoked)
}

#[tokio::test]
async fn call_of_a_revoked_caller_is_refused_and_its_result_discarded() {
    let rules = json!([{"allow": ["/**"], "to": ["first"]}]);
    for cancels_calls in [false, true] {
        let broker = fixture_with(rules.clone());
        broker.matches(0);
        broker.matches(1);
        let (caller, revoked) = revocable(cancels_calls);
        let mut calling = pin!(call(&broker.core, &caller, "/a/echo", json!({"text": ""})));
        let waits = std::future::poll_fn(|cx| Poll::Ready(calling.as_mut().poll(cx).is_pending()));
        assert!(waits.await);
        assert_eq!(broker.sources[0].seen().len(), 1);
        revoked.cancel();
        if !cancels_calls {
            let waits =
                std::future::poll_fn(|cx| Poll::Ready(calling.as_mut().poll(cx).is_pending()));
            assert!(waits.await, "a call that was sent runs to its end");
            broker.sources[0].answer(Ok("{}"));
        }
        let error = calling.await.unwrap_err();
        assert_eq!(error.code, CallCode::Unauthorized);
        assert_eq!(error.maybe_executed, Some(true));
        let refused = call(&broker.core, &caller, "/a/echo", json!({"text": ""})).await;
        let error = refused.unwrap_err();
        assert_eq!(
            (error.code, error.maybe_executed),
            (CallCode::Unauthorized, Some(false))
        );
        assert_eq!(broker.sources[0].seen().len(), 1);
    }
}

#[tokio::test]
async fn failure_of_a_revoked_callers_call_shows_nothing_of_the_server() {
    let rules = json!([{"allow": ["/**"], "to": ["first"]}]);
    let exited = |maybe_executed| CallFailure::Exited {
        failure: SourceFailure::new(SourceCause::Exited, "sent by the server"),
        maybe_executed,
    };
    let rpc = CallFailure::Rpc {
        error: serde_json::value::to_raw_value(&json!({"message": "sent by the server"})).unwrap(),
        code: -32000,
        message: "sent by the server".to_owned(),
    };
    for (failure, maybe_executed) in [(exited(true), true), (exited(false), false), (rpc, true)] {
        let broker = fixture_with(rules.clone());
        broker.matches(0);
        broker.matches(1);
        let (caller, revoked) = revocable(false);
        let mut calling = pin!(call(&broker.core, &caller, "/a/echo", json!({"text": ""})));
        let waits = std::future::poll_fn(|cx| Poll::Ready(calling.as_mut().poll(cx).is_pending()));
        assert!(waits.await);
        revoked.cancel();
        broker.sources[0].answer(Err(failure));
        let error = calling.await.unwrap_err();
        assert_eq!(
            (error.code, error.maybe_executed),
            (CallCode::Unauthorized, Some(maybe_executed))
        );
        assert!(!format!("{error:?}").contains("sent by the server"));
    }
}

#[tokio::test]
async fn call_that_reloaded_rules_deny_before_it_is_sent_is_refused() {
    let to_first = |args: Value| json!([{"allow": ["/a/**"], "to": ["first"], "args": args}]);
    let any = json!({});
    let of_text = json!({"properties": {"text": {"maxLength": 2}}});
    let other = json!({"properties": {"text": {"maxLength": 3}}});
    let denied = json!([{"allow": ["/a/**"], "to": ["first"]}, {"deny": ["/a/echo"], "to": ["*"]}]);
    let to_second = json!([{"allow": ["/**"], "to": ["second"]}]);
    let long = "x".repeat(100_000);
    for (rules, of_a, text, code) in [
        (to_first(any.clone()), json!({}), "abc", None),
        (to_first(of_text.clone()), json!({}), "ab", None),
        (
            to_first(of_text.clone()),
            json!({}),
            "abc",
            Some(CallCode::Forbidden),
        ),
        (to_first(other), json!({}), "abc", None),
        // They would have to be parsed on the thread of other calls.
        (
            to_first(of_text),
            json!({}),
            &long,
            Some(CallCode::Overloaded),
        ),
        (denied, json!({}), "abc", Some(CallCode::PathNotFound)),
        (to_second, json!({}), "abc", Some(CallCode::PathNotFound)),
        (
            to_first(any.clone()),
            json!({"tool_filter": ["twin"]}),
            "abc",
            Some(CallCode::PathNotFound),
        ),
    ] {
        let broker = fixture_with(to_first(any.clone()));
        broker.matches(0);
        broker.matches(1);
        broker.sources[0].set(State::Starting, None);
        let caller = member_of(&["first"]);
        let args = json!({"text": text});
        let mut calling = pin!(call(&broker.core, &caller, "/a/echo", args.clone()));
        let waits = std::future::poll_fn(|cx| Poll::Ready(calling.as_mut().poll(cx).is_pending()));
        assert!(waits.await, "the source is starting");
        broker.takes(rules, of_a);
        broker.sources[0].answer(Ok("{}"));
        broker.sources[0].set(State::Ready, None);
        let called = calling.await;
        let seen = broker.sources[0].seen().len();
        assert_eq!(seen, usize::from(code.is_none()), "{called:?}");
        let Some(code) = code else {
            called.unwrap();
            continue;
        };
        let error = called.unwrap_err();
        assert_eq!((error.code, error.maybe_executed), (code, Some(false)));
        let now = call(&broker.core, &caller, "/a/echo", args).await;
        let now = now.unwrap_err();
        if code != CallCode::Overloaded {
            assert_eq!(
                error.message, now.message,
                "that of a call that arrives now"
            );
            assert_eq!(error.did_you_mean, now.did_you_mean);
            assert_eq!(error.details, now.details);
        }
    }
}

#[tokio::test]
async fn denial_is_shown_only_for_an_entry_that_the_config_does_not_hide() {
    let core = fixture_that_shows_denials().core;
    let outsider = member_of(&[]);
    for (path, code) in [
        ("/a/twin", CallCode::Forbidden),
        ("/a", CallCode::Forbidden),
        ("/a/echo", CallCode::PathNotFound),
        ("/a/deep", CallCode::PathNotFound),
        ("/a/deep/b", CallCode::PathNotFound),
        ("/a/nothing", CallCode::PathNotFound),
    ] {
        let refused = core.described(&outsider, Describe::One(path)).unwrap_err();
        assert_eq!(refused.code, code, "{path}");
    }
}
