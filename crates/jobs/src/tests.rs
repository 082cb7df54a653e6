//! Tests of what the store keeps of callers and errors.

use std::time::{Duration, SystemTime};

use broker_core::{CallCode, Claims, Core, CoreError, Identity, Subject, catalog};
use serde_json::{Value, json};

use crate::caller::{NoCaller, from_text, owner, to_text};
use crate::run::error_text;

fn token(issuer: &str, subject: &str) -> Identity {
    let claims = Claims::from([("org".to_owned(), json!("a"))]);
    Identity::token(issuer, subject, vec!["reader".to_owned()], claims)
}

#[test]
fn owners_differ_and_a_caller_without_a_credential_owns_nothing() {
    assert_eq!(owner(&Identity::anonymous()), None);
    let mut owners = vec![
        owner(&Identity::secret()),
        owner(&Identity::local()),
        owner(&Identity::key("secret", Vec::new())),
        owner(&Identity::key("local", Vec::new())),
        owner(&token("a:b", "c")),
        owner(&token("a", "b:c")),
    ];
    let count = owners.len();
    owners.sort();
    owners.dedup();
    assert_eq!(owners.len(), count, "{owners:?}");
    assert!(owners.iter().all(Option::is_some));
}

#[tokio::test]
async fn caller_is_restored_with_the_rights_that_it_has_now() {
    let core = Core::builder(&catalog::NONE)
        .build()
        .expect("it can be used");
    let no_key = |_: &str| None;
    let end = SystemTime::now() + Duration::from_secs(3600);
    let text = to_text(&token("issuer", "subject").expiring(end));
    let restored = from_text(&text, &core, &no_key).expect("a token that is valid");
    assert!(matches!(restored.subject(), Subject::Token { .. }));
    assert_eq!(restored.groups(), ["reader"]);
    assert_eq!(restored.claims()["org"], "a");
    assert!(restored.expires().is_some());

    let past = SystemTime::now() - Duration::from_secs(2);
    let text = to_text(&token("issuer", "subject").expiring(past));
    assert_eq!(
        from_text(&text, &core, &no_key).unwrap_err(),
        NoCaller::Ended
    );
    assert_eq!(
        from_text("{}", &core, &no_key).unwrap_err(),
        NoCaller::Unreadable
    );

    // A key has the groups of the config in force, and none once it was removed.
    let text = to_text(&Identity::key("ci", vec!["old".to_owned()]));
    assert_eq!(
        from_text(&text, &core, &no_key).unwrap_err(),
        NoCaller::Ended
    );
    let find = |name: &str| (name == "ci").then(|| Identity::key("ci", vec!["new".to_owned()]));
    let restored = from_text(&text, &core, &find).expect("the key is there");
    assert_eq!(restored.groups(), ["new"]);
    core_closed(core).await;
}

async fn core_closed(core: Core) {
    broker_core::Broker::close(&core).await;
}

#[test]
fn error_is_shortened_to_what_the_store_keeps() {
    let error = CoreError::new(CallCode::SourceError, "x".repeat(10_000))
        .path("/a/t")
        .details(json!({"more": "y".repeat(10_000)}))
        .maybe_executed(true);
    let text = error_text(&error);
    assert!(
        text.len() <= broker_store::MAX_ERROR_BYTES,
        "{}",
        text.len()
    );
    let read: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (&read["code"], &read["path"]),
        (&json!("source_error"), &json!("/a/t"))
    );
    assert_eq!(read["maybe_executed"], true);
}
