//! API keys: who has one, and when its right ends.

use std::time::Duration;

use broker_model::redact::Secret;

use super::*;
use crate::{AuthError, BlockingThreads, PrincipalSubject, key};

/// The section with keys of these names and further members.
fn section(keys: &[(&str, &Secret, &str)]) -> String {
    let keys = keys.iter().map(|(name, key, members)| {
        let digest = key::digest(key.expose());
        format!(r#"{{"name":"{name}","sha256":"{digest}"{members}}}"#)
    });
    format!(r#"{{"keys":[{}]}}"#, keys.collect::<Vec<_>>().join(","))
}

async fn find(
    authenticator: &Authenticator,
    key: &Secret,
) -> Result<Arc<crate::Principal>, AuthError> {
    let pool = BlockingThreads;
    authenticator.authenticate(key.expose(), PEER, &pool).await
}

#[tokio::test]
async fn key_identifies_its_caller_with_sorted_groups() {
    let key = key::generate().unwrap();
    let (authenticator, _) = authenticator(&section(&[("ci", &key, r#","groups":["b","a"]"#)]));
    let caller = find(&authenticator, &key).await.unwrap();
    let name = "ci".to_owned();
    assert_eq!(caller.subject, PrincipalSubject::Key { name });
    assert_eq!(caller.groups, ["a", "b"]);
    assert!(caller.expires.is_none() && caller.claims.is_empty());
    let again = find(&authenticator, &key).await.unwrap();
    assert!(Arc::ptr_eq(&caller.grant, &again.grant) && !caller.grant.has_ended());
}

#[tokio::test]
async fn text_that_is_not_a_known_key_is_unknown() {
    let key = key::generate().unwrap();
    let (authenticator, _) = authenticator(&section(&[("ci", &key, "")]));
    let longer = format!("{}a", key.expose());
    let upper = key.expose().to_uppercase();
    let large = format!("mbk_{}", "a".repeat(1 << 20));
    let other = key::generate().unwrap();
    for text in [
        "",
        "secret",
        "mbk_",
        &longer,
        &upper,
        &large,
        other.expose(),
    ] {
        let outcome = find(&authenticator, &Secret::new(text)).await;
        assert_eq!(outcome.unwrap_err(), AuthError::Unknown);
    }
}

#[tokio::test]
async fn key_that_expires_is_refused_and_its_right_ends() {
    let key = key::generate().unwrap();
    let end = r#","not_after":"2026-11-23T17:00:00Z""#;
    let (authenticator, clock) = authenticator(&section(&[("ci", &key, end)]));
    clock.advance(Duration::from_secs(3599));
    let caller = find(&authenticator, &key).await.unwrap();
    assert_eq!(caller.expires, Some(clock.now() + Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    let outcome = find(&authenticator, &key).await;
    assert_eq!(outcome.unwrap_err(), AuthError::KeyExpired);
    assert!(caller.grant.has_ended());
}

#[tokio::test]
async fn key_whose_expiry_is_moved_after_it_expired_has_a_new_right() {
    let key = key::generate().unwrap();
    let end = |year: u64| format!(r#","not_after":"{year}-11-23T17:00:00Z""#);
    let (authenticator, clock) = authenticator(&section(&[("ci", &key, &end(2026))]));
    let before = find(&authenticator, &key).await.unwrap();
    clock.advance(Duration::from_secs(7200));
    assert!(find(&authenticator, &key).await.is_err() && before.grant.has_ended());
    authenticator.replace(&settings(&section(&[("ci", &key, &end(2027))])));
    let after = find(&authenticator, &key).await.unwrap();
    assert!(!after.grant.has_ended());
}

#[tokio::test]
async fn next_expiry_is_the_first_of_the_keys_that_are_valid() {
    let (one, other) = (key::generate().unwrap(), key::generate().unwrap());
    let end = |year: u64| format!(r#","not_after":"{year}-11-23T17:00:00Z""#);
    let both = section(&[("a", &one, &end(2026)), ("b", &other, &end(2027))]);
    let (authenticator, clock) = authenticator(&both);
    let caller = find(&authenticator, &one).await.unwrap();
    let last = find(&authenticator, &other).await.unwrap();
    assert_eq!(authenticator.next_key_expiry(), caller.expires);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(authenticator.next_key_expiry(), last.expires);
    authenticator.replace(&settings(&section(&[("a", &one, "")])));
    assert_eq!(authenticator.next_key_expiry(), None);
}

/// The clock of the paused runtime.
struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_449_600) + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn key_that_no_request_uses_ends_by_itself_at_its_expiry() {
    let (one, other) = (key::generate().unwrap(), key::generate().unwrap());
    let end = |time: &str| format!(r#","not_after":"2026-11-23T{time}Z""#);
    let both = |time: &str| {
        settings(&section(&[
            ("a", &one, &end(time)),
            ("b", &other, &end("18:00:00")),
        ]))
    };
    let begin = tokio::time::Instant::now();
    let authenticator = Authenticator::new(&both("17:00:00"), Arc::new(PausedClock(begin)));
    let (caller, longer) = (
        find(&authenticator, &one).await.unwrap(),
        find(&authenticator, &other).await.unwrap(),
    );
    // The expiry may be moved while the key is used.
    authenticator.replace(&both("16:10:00"));
    caller.grant.ended().cancelled().await;
    assert_eq!(begin.elapsed().as_secs(), 600);
    longer.grant.ended().cancelled().await;
    assert_eq!(begin.elapsed().as_secs(), 7200);
}

#[tokio::test]
async fn right_of_a_key_ends_if_it_is_removed_renamed_or_has_other_groups() {
    let (key, other) = (key::generate().unwrap(), key::generate().unwrap());
    let groups = r#","groups":["a","b"]"#;
    let before = section(&[("ci", &key, groups), ("other", &other, "")]);
    for (after, kept) in [
        (vec![("ci", &key, groups)], true),
        (vec![("ci", &key, r#","groups":["b","a"]"#)], true),
        (
            vec![(
                "ci",
                &key,
                r#","groups":["a","b"],"not_after":"2030-01-01T00:00:00Z""#,
            )],
            true,
        ),
        (vec![("ci", &key, r#","groups":["a"]"#)], false),
        (vec![("ci", &key, r#","groups":["a","b","c"]"#)], false),
        (vec![("renamed", &key, groups)], false),
        (vec![("other", &other, "")], false),
        (vec![], false),
    ] {
        let (authenticator, _) = authenticator(&before);
        let caller = find(&authenticator, &key).await.unwrap();
        let unchanged = find(&authenticator, &other).await.unwrap();
        let has_other = after.iter().any(|(name, ..)| *name == "other");
        authenticator.replace(&settings(&section(&after)));
        assert_eq!(caller.grant.has_ended(), !kept, "{:?}", after.len());
        assert_eq!(unchanged.grant.has_ended(), !has_other);
        let now = find(&authenticator, &key).await;
        if let Ok(now) = now {
            assert_eq!(Arc::ptr_eq(&now.grant, &caller.grant), kept);
            assert!(!now.grant.has_ended());
        }
    }
}

#[tokio::test]
async fn key_in_no_error_and_no_debug() {
    let key = key::generate().unwrap();
    let (authenticator, _) = authenticator(&section(&[("ci", &key, "")]));
    let caller = find(&authenticator, &key).await.unwrap();
    let error = find(&authenticator, &key::generate().unwrap())
        .await
        .unwrap_err();
    let shown = format!("{authenticator:?} {caller:?} {key:?} {error:?} {error}");
    assert!(!shown.contains("mbk_"), "{shown}");
}
