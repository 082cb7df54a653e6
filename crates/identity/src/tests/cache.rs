//! The bound of the cache of verified tokens.

use super::issuer::{Issuer, header};
use super::*;

const MAX_TOKENS: u64 = crate::jwt::cache::MAX_TOKENS as u64;

#[tokio::test]
async fn full_cache_removes_the_unused_token_that_expires_first() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let pool = CountingPool::default();
    let end = clock.seconds() + 10_000;
    let token = |n: u64| {
        let mut claims = issuer.claims(&clock);
        // Not in the order of their ends.
        claims["exp"] = (end + (n + 2000) % MAX_TOKENS).into();
        claims["sub"] = format!("u{n}").into();
        issuer.signer.token(&header("k1"), &claims)
    };
    let first = MAX_TOKENS - 2000;
    let find = async |token: &str| {
        let before = pool.jobs();
        let caller = authenticator
            .authenticate(token, PEER, &pool)
            .await
            .unwrap();
        (caller, pool.jobs() > before)
    };
    let tokens: Vec<_> = (0..MAX_TOKENS).map(token).collect();
    let mut held = Vec::new();
    for token in &tokens {
        held.push(Some(find(token).await.0));
    }
    assert!(!find(&tokens[first as usize]).await.1, "all are kept");
    // The first and second one to expire are in use, the third one is not.
    held[first as usize + 2] = None;
    assert!(find(&token(2 * MAX_TOKENS)).await.1);
    for (index, is_verified_again) in [(0, false), (1, false)] {
        let (_, verified) = find(&tokens[first as usize + index]).await;
        assert_eq!(verified, is_verified_again, "{index}");
    }
    assert!(
        held.iter()
            .flatten()
            .all(|caller| !caller.grant.has_ended())
    );
    // The new one is not in use either; with it held, every token is.
    let _new = find(&token(2 * MAX_TOKENS)).await.0;
    assert!(find(&tokens[first as usize + 2]).await.1, "it was removed");
    // The right of a token in use ends with its removal, since a change of the settings could not end it later.
    let ended = held
        .iter()
        .flatten()
        .filter(|caller| caller.grant.has_ended());
    assert_eq!(ended.count(), 1);
    assert!(held[first as usize].as_ref().unwrap().grant.has_ended());
}
