//! Other settings: which rights of tokens end, and which are kept.

use super::issuer::{Issuer, find, header, section};
use super::*;
use crate::{AuthError, TokenFault};

#[tokio::test]
async fn right_of_a_token_ends_if_its_caller_groups_or_claims_change() {
    let issuer = Issuer::start().await;
    let mapped = |groups: &str, others: &str| {
        format!(r#","groups_claim":"roles","map":{{"eng":[{groups}]{others}}},"claims":["org"]"#)
    };
    let base = mapped(r#""a","b""#, "");
    let place = format!(r#"{base},"jwks":"{}/keys""#, issuer.url);
    for (after, kept) in [
        (issuer.entry(&base), true),
        (issuer.entry(&mapped(r#""b","a""#, r#","ops":["c"]"#)), true),
        (issuer.entry(&format!(r#"{base},"leeway_s":10"#)), true),
        (
            issuer.entry(&format!(r#"{base},"require_typ":"at+jwt""#)),
            true,
        ),
        (issuer.entry(&mapped(r#""a""#, "")), false),
        (issuer.entry(&mapped(r#""a","b","c""#, "")), false),
        (issuer.entry(&base.replace("org", "team")), false),
        (issuer.entry(&base.replace("roles", "groups")), false),
        (issuer.entry(&format!(r#"{base},"subject":"email""#)), false),
        (
            issuer
                .entry(&base)
                .replace("https://broker.example", "https://other.example"),
            false,
        ),
        (issuer.entry(&base).replace(r#""ES256","#, ""), false),
        (issuer.entry(&place), false),
    ] {
        let (authenticator, clock) = issuer.authenticator(&base);
        let mut claims = issuer.claims(&clock);
        claims["roles"] = "eng".into();
        claims["org"] = "acme".into();
        claims["email"] = "u@example".into();
        let token = issuer.signer.token(&header("k1"), &claims);
        let caller = find(&authenticator, &token).await.unwrap();
        let fetched = issuer.sets_sent();
        authenticator.replace(&settings(&section(std::slice::from_ref(&after))));
        assert_eq!(caller.grant.has_ended(), !kept, "{after}");
        if kept {
            let again = find(&authenticator, &token).await.unwrap();
            assert!(Arc::ptr_eq(&again.grant, &caller.grant), "{after}");
            assert_eq!(issuer.sets_sent(), fetched, "the set is kept");
        } else if let Ok(again) = find(&authenticator, &token).await {
            assert!(!again.grant.has_ended(), "{after}");
        }
    }
}

#[tokio::test]
async fn right_of_a_token_ends_if_its_issuer_is_removed() {
    let (one, other) = (Issuer::start().await, Issuer::start().await);
    let (authenticator, clock) = authenticator(&section(&[one.entry(""), other.entry("")]));
    let first = find(&authenticator, &one.token(&clock, "u1"))
        .await
        .unwrap();
    let second = find(&authenticator, &other.token(&clock, "u1"))
        .await
        .unwrap();
    authenticator.replace(&settings(&section(&[other.entry("")])));
    assert!(first.grant.has_ended() && !second.grant.has_ended());
    authenticator.replace(&settings("{}"));
    assert!(second.grant.has_ended());
}

#[tokio::test]
async fn replaced_settings_have_the_end_of_a_token_with_the_new_leeway() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let token = issuer.token(&clock, "u1");
    let before = find(&authenticator, &token).await.unwrap();
    authenticator.replace(&settings(&section(&[issuer.entry(r#","leeway_s":0"#)])));
    let after = find(&authenticator, &token).await.unwrap();
    assert_eq!(
        before.expires,
        after.expires.map(|end| end + Duration::from_secs(60))
    );
    clock.advance(Duration::from_secs(600));
    assert!(find(&authenticator, &token).await.is_err());
}

/// A pool that does something when the signature was verified, before the caller is known.
struct Meanwhile<F>(F);

impl<F: Fn() -> W + Send + Sync, W: Future<Output = ()> + Send> Offload for Meanwhile<F> {
    async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let outcome = BlockingThreads.run(job).await;
        (self.0)().await;
        outcome
    }
}

#[tokio::test]
async fn settings_replaced_during_a_verification_apply_to_its_token() {
    let issuer = Issuer::start().await;
    let mapped = |group: &str| {
        issuer.entry(&format!(
            r#","groups_claim":"sub","map":{{"u1":["{group}"]}}"#
        ))
    };
    let (authenticator, clock) = authenticator(&section(&[mapped("before")]));
    let other = settings(&section(&[mapped("after")]));
    let was_replaced = std::sync::atomic::AtomicBool::new(false);
    let pool = Meanwhile(|| async {
        if !was_replaced.swap(true, Ordering::Relaxed) {
            authenticator.replace(&other);
        }
    });
    let token = issuer.token(&clock, "u1");
    let caller = authenticator
        .authenticate(&token, PEER, &pool)
        .await
        .unwrap();
    assert_eq!(caller.groups, ["after"]);
    assert!(!caller.grant.has_ended());
    let none = settings("{}");
    let pool = Meanwhile(|| async { authenticator.replace(&none) });
    let token = issuer.token(&clock, "u2");
    let refused = authenticator.authenticate(&token, PEER, &pool).await;
    assert_eq!(
        refused.unwrap_err(),
        AuthError::TokenInvalid(TokenFault::Issuer)
    );
}

#[tokio::test]
async fn token_whose_key_is_lost_during_its_verification_is_refused() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    find(&authenticator, &issuer.token(&clock, "u1"))
        .await
        .unwrap();
    let unknown = issuer.signer.token(&header("k2"), &issuer.claims(&clock));
    let pool = Meanwhile(|| async {
        issuer.publish(&[]);
        clock.advance(Duration::from_secs(30));
        find(&authenticator, &unknown).await.unwrap_err();
    });
    let token = issuer.token(&clock, "u2");
    let refused = authenticator.authenticate(&token, PEER, &pool).await;
    assert_eq!(
        refused.unwrap_err(),
        AuthError::TokenInvalid(TokenFault::Key)
    );
}

#[tokio::test]
async fn authenticator_that_is_dropped_leaves_no_task() {
    let (issuer, down) = (Issuer::start().await, Issuer::start().await);
    down.set_down(true);
    let (authenticator, clock) = authenticator(&section(&[issuer.entry(""), down.entry("")]));
    find(&authenticator, &issuer.token(&clock, "u1"))
        .await
        .unwrap();
    authenticator.replace(&settings(&section(&[issuer.entry("")])));
    // Every task has the clock, and so have the authenticator and the source that is left.
    owners_become(&clock, 3).await;
    drop(authenticator);
    owners_become(&clock, 1).await;
}

async fn owners_become(clock: &Arc<ManualClock>, count: usize) {
    let end = async {
        while Arc::strong_count(clock) > count {
            tokio::task::yield_now().await;
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(10), end).await;
    assert!(end.is_ok(), "{} owners", Arc::strong_count(clock));
}
