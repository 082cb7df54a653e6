//! Tokens of the issuer: whose tools they call, and which are refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use harness::figure::Watch;
use harness::{refusal, wait_until};
use serde_json::{Value, json};

use super::{AUDIENCE, Issuer, bearer, call, stage, status};
use crate::caller::until_end;

#[test]
fn token_of_a_client_calls_the_tools_of_its_groups_only() {
    let issuer = Issuer::start();
    let (stage, admin) = stage(&issuer.entry(&json!({})));
    let client = bearer(&stage, &issuer.token("ci"));
    let reply = call(&client);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let text = json!({"text": "x"});
    refusal(&client.call("/b/echo", &text), 404, "path_not_found");
    let tree = client.tree("/", 1).json();
    let children = tree["children"].as_array().expect("a list");
    assert_eq!((children.len(), &children[0]["path"]), (1, &json!("/a")));
    assert_eq!(admin.call("/b/echo", &text).status, 200);
    // The groups of this client are none of the broker's.
    let guest = bearer(&stage, &issuer.token("guest"));
    refusal(&call(&guest), 404, "path_not_found");
}

#[test]
fn new_token_waits_for_no_arguments_of_another_caller() {
    let _machine = harness::whole_machine();
    let issuer = Issuer::start();
    let (stage, admin) = stage(&issuer.entry(&json!({})));
    assert_eq!(
        status(&stage, &issuer.token("ci")),
        200,
        "the keys are there"
    );
    let tokens: Vec<_> = (0..5).map(|_| issuer.token("ci")).collect();
    let items: Vec<_> = (0..20_000).map(|number| json!({"": number})).collect();
    let costly = json!({"path": "/b/echo", "args": {"text": "x", "more": items}}).to_string();
    let ask = || {
        let headers = [("Content-Type", "application/json")];
        admin
            .request("POST", "/meta_call", &headers, &costly)
            .status
    };
    let is_over = AtomicBool::new(false);
    let statuses: Vec<_> = thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    ask();
                }
            });
        }
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until("the queue for long work is full", || ask() == 429);
            let asked = tokens.iter().map(|token| status(&stage, token));
            asked.collect()
        }));
        is_over.store(true, Ordering::Relaxed);
        asked.expect("they are asked")
    });
    assert_eq!(statuses, [200; 5]);
}

#[test]
fn id_token_is_refused_in_place_of_an_access_token() {
    let issuer = Issuer::start();
    let form = [
        ("grant_type", "authorization_code"),
        ("code", "any"),
        ("resource", AUDIENCE),
    ];
    let tokens = issuer.post("/token", "ci", &form);
    let of = |name: &str| tokens[name].as_str().expect("it is text").to_owned();
    let (access, id) = (of("access_token"), of("id_token"));
    let strict = json!({"audience": [AUDIENCE, "ci"], "require_typ": "at+jwt"});
    for (members, is_strict) in [(json!({}), false), (strict, true)] {
        let (stage, _) = stage(&issuer.entry(&members));
        assert_eq!(status(&stage, &access), 200, "{members}");
        let error = refusal(&call(&bearer(&stage, &id)), 401, "unauthorized");
        // Its audience is the client, which only the strict config accepts.
        let reason = if is_strict { "type" } else { "audience" };
        let message = error["message"].as_str().expect("a text");
        assert!(message.contains(reason), "{message}");
        // A token that says nothing of its kind is accepted by its audience, if the config permits it.
        let plain = issuer.token_with("ci", &[("resource", AUDIENCE), ("typ", "JWT")]);
        let expected = if is_strict { 401 } else { 200 };
        assert_eq!(status(&stage, &plain), expected, "{members}");
    }
}

#[test]
fn token_that_is_expired_or_for_another_audience_is_refused() {
    let issuer = Issuer::start();
    let (stage, _) = stage(&issuer.entry(&json!({"leeway_s": 60})));
    let expired = |seconds| [("resource", AUDIENCE), ("expires_in", seconds)];
    let other_host = [("resource", "https://other.example/mcp")];
    let other_path = [("resource", "https://broker.example/mcp/")];
    let none: [(&str, &str); 0] = [];
    for (form, expected) in [
        (&expired("-10")[..], 200),
        (&expired("-70"), 401),
        (&other_host, 401),
        (&other_path, 401),
        (&none, 401),
        (&expired("3600"), 200),
    ] {
        let reply = call(&bearer(&stage, &issuer.token_with("ci", form)));
        assert_eq!(reply.status, expected, "{form:?}: {}", reply.text());
    }
}

#[test]
fn stream_ends_with_its_token_and_a_new_one_uses_the_same_session() {
    let issuer = Issuer::start();
    let (stage, _) = stage(&issuer.entry(&json!({"leeway_s": 0})));
    const LIFE: u64 = 6;
    let life = LIFE.to_string();
    let watch = Watch::start();
    let short = issuer.token_with("ci", &[("resource", AUDIENCE), ("expires_in", &life)]);
    let caller = bearer(&stage, &short);
    let session = caller.session("/mcp/direct");
    let streams = [session.stream(), caller.subscription()];
    for stream in streams {
        assert!(until_end(stream).is_empty());
    }
    // The times of a token are whole seconds.
    let (least, most) = (LIFE - 1, LIFE + 1);
    let passed = watch.passed();
    assert!((least..=most).contains(&passed.as_secs()), "{passed:?}");
    wait_until("the token has expired", || {
        session.ask("ping", &json!({})).status == 401
    });
    let renewed = session.by(&bearer(&stage, &issuer.token("ci")));
    assert_eq!(renewed.result("ping", &json!({})), json!({}));
    let of_other = session.by(&bearer(&stage, &issuer.token("guest")));
    assert_eq!(of_other.ask("ping", &json!({})).status, 404);
}

#[test]
fn issuer_that_stops_after_the_first_fetch_is_not_needed_again() {
    let issuer = Issuer::start();
    let (stage, admin) = stage(&issuer.entry(&json!({})));
    assert_eq!(status(&stage, &issuer.token("ci")), 200);
    let unseen = issuer.token("ci");
    drop(issuer);
    assert_eq!(status(&stage, &unseen), 200);
    assert_eq!(call(&admin).status, 200);
}

#[test]
fn issuer_that_is_down_from_the_start_disturbs_tokens_only() {
    let issuer = Issuer::start();
    let (token, entry) = (issuer.token("ci"), issuer.entry(&json!({})));
    drop(issuer);
    let (stage, admin) = stage(&entry);
    let client = bearer(&stage, &token);
    let error = refusal(&call(&client), 503, "identity_unavailable");
    assert_eq!(error["retryable"], true, "{error}");
    let session = client.try_session("/mcp").expect_err("it is refused");
    assert_eq!(session.status, 503, "{}", session.text());
    assert_eq!(call(&admin).status, 200);
    assert!(
        admin
            .session("/mcp")
            .result("ping", &Value::Null)
            .is_object()
    );
    refusal(&call(&bearer(&stage, "mbk_wrong")), 401, "unauthorized");
}
