//! Other settings: which rights of tokens end, and which are kept.

use super::issuer::{Issuer, find, header, section};
use super::*;

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
