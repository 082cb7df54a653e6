//! Tokens: which are accepted, what their claims mean, and why others are refused.

use serde_json::{Value, json};

use super::issuer::{AUDIENCE, Issuer, find, header, section};
use super::signer::{Signer, encode, hs256, message};
use super::*;
use crate::{AuthError, BlockingThreads, Offload, PrincipalSubject, TokenFault};

fn invalid(fault: TokenFault) -> AuthError {
    AuthError::TokenInvalid(fault)
}

#[tokio::test]
async fn token_identifies_its_caller_with_mapped_groups_and_chosen_claims() {
    let issuer = Issuer::start().await;
    let members = r#","subject":"email","groups_claim":"roles","map":{"eng":["b","a"],"ops":["a"]},"claims":["org","none"]"#;
    let (authenticator, clock) = issuer.authenticator(members);
    let mut claims = issuer.claims(&clock);
    claims["email"] = "u@example".into();
    claims["org"] = json!({"name": "acme"});
    claims["team"] = "x".into();
    claims["aud"] = json!(["other", AUDIENCE]);
    for (roles, groups) in [
        (json!(["ops", "eng", "unknown", 1]), &["a", "b"][..]),
        (json!("eng"), &["a", "b"]),
        (json!("eng ops"), &[]),
        (json!({"eng": true}), &[]),
        (Value::Null, &[]),
    ] {
        claims["roles"] = roles;
        let token = issuer.signer.token(&header("k1"), &claims);
        let caller = find(&authenticator, &token).await.unwrap();
        let (issuer, subject) = (issuer.url.clone(), "u@example".to_owned());
        assert_eq!(caller.subject, PrincipalSubject::Token { issuer, subject });
        assert_eq!(caller.groups, groups, "{}", claims["roles"]);
        assert_eq!(json!(caller.claims), json!({"org": {"name": "acme"}}));
        assert_eq!(caller.expires, Some(clock.now() + Duration::from_secs(660)));
    }
}

#[tokio::test]
async fn scope_is_a_list_of_words() {
    let issuer = Issuer::start().await;
    let members = r#","groups_claim":"scope","map":{"read":["reader"],"write":["writer"]}"#;
    let (authenticator, clock) = issuer.authenticator(members);
    let mut claims = issuer.claims(&clock);
    claims["scope"] = "openid write read:all".into();
    let token = issuer.signer.token(&header("k1"), &claims);
    assert_eq!(
        find(&authenticator, &token).await.unwrap().groups,
        ["writer"]
    );
}

#[tokio::test]
async fn token_of_each_algorithm_is_accepted_with_its_kind_of_key_only() {
    let issuer = Issuer::start().await;
    let signers = [
        ("rsa", Signer::rsa()),
        ("p256", Signer::p256()),
        ("p384", Signer::p384()),
        ("ed", Signer::ed25519()),
    ];
    let keys: Vec<_> = signers.iter().map(|(kid, key)| key.public(kid)).collect();
    issuer.publish(&keys);
    let all = r#""RS256","RS384","RS512","PS256","PS384","PS512","ES256","ES384","EdDSA""#;
    let entry = issuer.entry("");
    let entry = entry.replace(r#""ES256","RS256","EdDSA""#, all);
    let (authenticator, clock) = authenticator(&section(&[entry]));
    for (algs, at) in [
        (
            &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"][..],
            0,
        ),
        (&["ES256"], 1),
        (&["ES384"], 2),
        (&["EdDSA"], 3),
    ] {
        for alg in algs {
            let (kid, signer) = &signers[at];
            let header = json!({"alg": alg, "kid": kid});
            let token = signer.token(&header, &issuer.claims(&clock));
            assert!(find(&authenticator, &token).await.is_ok(), "{alg}");
            let other = signers[(at + 1) % 4].0;
            let header = json!({"alg": alg, "kid": other});
            let token = signer.token(&header, &issuer.claims(&clock));
            let refused = find(&authenticator, &token).await.unwrap_err();
            assert_eq!(refused, invalid(TokenFault::Key), "{alg} {other}");
        }
    }
}

#[tokio::test]
async fn token_that_breaks_one_rule_is_refused_before_its_signature() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let (now, pool) = (clock.seconds(), CountingPool::default());
    let good = issuer.claims(&clock);
    let changed = |name: &str, value: Value| {
        let mut claims = good.clone();
        match value {
            Value::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims
                .as_object_mut()
                .unwrap()
                .insert(name.to_owned(), value),
        };
        (header("k1"), claims)
    };
    let with_header = |header: Value| (header, good.clone());
    let cases = [
        (
            changed("iss", json!("https://other.example")),
            TokenFault::Issuer,
        ),
        (changed("iss", json!([issuer.url])), TokenFault::Issuer),
        (changed("iss", Value::Null), TokenFault::Issuer),
        (changed("aud", json!("client-1")), TokenFault::Audience),
        (changed("aud", json!([])), TokenFault::Audience),
        (changed("aud", Value::Null), TokenFault::Audience),
        (changed("exp", Value::Null), TokenFault::NoExpiry),
        (changed("exp", json!("soon")), TokenFault::NoExpiry),
        (changed("exp", json!(u64::MAX)), TokenFault::NoExpiry),
        (changed("exp", json!(-1)), TokenFault::NoExpiry),
        (changed("exp", json!(now - 60)), TokenFault::Expired),
        (changed("nbf", json!(now + 61)), TokenFault::NotYetValid),
        (changed("iat", json!(now + 61)), TokenFault::NotYetValid),
        (changed("iat", json!("now")), TokenFault::Malformed),
        (changed("sub", Value::Null), TokenFault::Subject),
        (changed("sub", json!("")), TokenFault::Subject),
        (changed("sub", json!(1)), TokenFault::Subject),
        (changed("sub", json!("s".repeat(257))), TokenFault::Subject),
        (
            with_header(json!({"alg": "ES256", "kid": "k1", "typ": "dpop+jwt"})),
            TokenFault::Type,
        ),
        (
            with_header(json!({"alg": "ES256", "kid": "k1", "typ": null})),
            TokenFault::Type,
        ),
        (
            with_header(json!({"alg": "ES256", "kid": "k1", "typ": 1})),
            TokenFault::Malformed,
        ),
        (
            with_header(json!({"alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": false})),
            TokenFault::Critical,
        ),
        (
            with_header(json!({"alg": "ES256", "kid": "k1", "crit": []})),
            TokenFault::Critical,
        ),
        (
            with_header(json!({"alg": "ES256", "kid": "k".repeat(257)})),
            TokenFault::Malformed,
        ),
        (
            with_header(json!({"alg": "ES256", "kid": "k2"})),
            TokenFault::Key,
        ),
    ];
    for ((header, claims), fault) in cases {
        let token = issuer.signer.token(&header, &claims);
        let refused = authenticator.authenticate(&token, PEER, &pool).await;
        assert_eq!(refused.unwrap_err(), invalid(fault), "{header} {claims}");
    }
    assert_eq!(pool.jobs(), 0, "no signature was verified");
    for (name, value) in [
        ("exp", json!(now - 59)),
        ("exp", json!(now as f64 + 0.5)),
        ("nbf", json!(now + 60)),
        ("iat", json!(now + 60)),
        ("iat", Value::Null),
        ("sub", json!("s".repeat(256))),
    ] {
        let (header, claims) = changed(name, value);
        let token = issuer.signer.token(&header, &claims);
        assert!(find(&authenticator, &token).await.is_ok(), "{claims}");
    }
    for typ in ["JWT", "jwt", "AT+JWT", "application/at+jwt"] {
        let token = issuer
            .signer
            .token(&json!({"alg": "ES256", "kid": "k1", "typ": typ}), &good);
        assert!(find(&authenticator, &token).await.is_ok(), "{typ}");
    }
}

#[tokio::test]
async fn token_without_a_real_signature_is_refused() {
    let issuer = Issuer::start().await;
    let rsa = Signer::rsa();
    let public = rsa.public("rsa");
    issuer.publish(&[issuer.signer.public("k1"), public.clone()]);
    let (authenticator, clock) = issuer.authenticator("");
    let claims = issuer.claims(&clock);
    for alg in ["none", "None", "NONE"] {
        let unsigned = message(&json!({"alg": alg, "kid": "k1"}), &claims);
        for token in [format!("{unsigned}."), format!("{unsigned}.AAAA")] {
            let refused = find(&authenticator, &token).await.unwrap_err();
            assert_eq!(refused, invalid(TokenFault::Algorithm), "{alg}");
        }
    }
    let modulus = public["n"].as_str().unwrap();
    for (alg, secret) in [("HS256", modulus.to_owned()), ("HS256", public.to_string())] {
        let token = hs256(
            &json!({"alg": alg, "kid": "rsa"}),
            &claims,
            secret.as_bytes(),
        );
        let refused = find(&authenticator, &token).await.unwrap_err();
        assert_eq!(refused, invalid(TokenFault::Algorithm));
    }
    // The header claims RSA, and the signature is that of a shared secret.
    let token = hs256(
        &json!({"alg": "RS256", "kid": "rsa"}),
        &claims,
        modulus.as_bytes(),
    );
    let refused = find(&authenticator, &token).await.unwrap_err();
    assert_eq!(refused, invalid(TokenFault::Signature));
    let right = issuer.token(&clock, "u1");
    let (start, signature) = right.rsplit_once('.').unwrap();
    let mut other_claims = claims.clone();
    other_claims["sub"] = "admin".into();
    for wrong in [
        format!("{start}.{}", encode(&[0; 64])),
        format!("{start}.{}", encode(b"short")),
        format!("{}.{signature}", message(&header("k1"), &other_claims)),
        Signer::p256().token(&header("k1"), &claims),
    ] {
        let refused = find(&authenticator, &wrong).await.unwrap_err();
        assert_eq!(refused, invalid(TokenFault::Signature));
    }
    assert!(find(&authenticator, &right).await.is_ok());
}

#[tokio::test]
async fn text_without_the_form_of_a_token_is_unknown_or_malformed() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let token = issuer.token(&clock, "u1");
    let parts: Vec<_> = token.split('.').collect();
    let object = encode(br#"{"alg":"ES256"}"#);
    let twice = encode(br#"{"iss":"a","iss":"b"}"#);
    let of_bytes = |length: usize| format!("{object}.b.{}", "A".repeat(length - object.len() - 3));
    for (text, error) in [
        (of_bytes(8192), invalid(TokenFault::Malformed)),
        (of_bytes(8193), invalid(TokenFault::TooLong)),
        (String::new(), AuthError::Unknown),
        ("secret".to_owned(), AuthError::Unknown),
        ("a.b.c".to_owned(), AuthError::Unknown),
        (format!("{token}.x"), AuthError::Unknown),
        (format!("{token}.x.y"), AuthError::Unknown),
        (format!("{}.b.c", encode(b"[]")), AuthError::Unknown),
        ("a".repeat(1 << 20), AuthError::Unknown),
        (format!("{}.b.c", "a".repeat(1 << 20)), AuthError::Unknown),
        (format!("{object}.b.c"), invalid(TokenFault::Malformed)),
        (
            format!("{object}.{twice}.AAAA"),
            invalid(TokenFault::Malformed),
        ),
        (
            format!("{}.{}.=", parts[0], parts[1]),
            invalid(TokenFault::Malformed),
        ),
        (
            format!("{}.{}.", parts[0], parts[1]),
            invalid(TokenFault::Malformed),
        ),
        (
            format!("{token}{}", "A".repeat(1 << 20)),
            invalid(TokenFault::TooLong),
        ),
        (
            format!("{token}{}", "A".repeat(8192)),
            invalid(TokenFault::TooLong),
        ),
    ] {
        let refused = find(&authenticator, &text).await.unwrap_err();
        assert_eq!(refused, error, "{} bytes", text.len());
    }
    // Without an issuer, a secret may have the form of a token.
    authenticator.replace(&settings("{}"));
    assert_eq!(
        find(&authenticator, &token).await.unwrap_err(),
        AuthError::Unknown
    );
}

#[tokio::test]
async fn id_token_is_refused_by_its_audience_or_the_strict_type() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let header = json!({"alg": "ES256", "typ": "JWT", "kid": "k1"});
    let mut claims = issuer.claims(&clock);
    claims["nonce"] = "n".into();
    claims["at_hash"] = "h".into();
    claims["aud"] = "client-1".into();
    let token = issuer.signer.token(&header, &claims);
    let refused = find(&authenticator, &token).await.unwrap_err();
    assert_eq!(refused, invalid(TokenFault::Audience));
    authenticator.replace(&settings(&section(&[
        issuer.entry(r#","require_typ":"at+jwt""#)
    ])));
    claims["aud"] = AUDIENCE.into();
    for typ in [json!("JWT"), Value::Null] {
        let mut header = header.clone();
        header["typ"] = typ;
        let token = issuer.signer.token(&header, &claims);
        let refused = find(&authenticator, &token).await.unwrap_err();
        assert_eq!(refused, invalid(TokenFault::Type));
    }
    assert!(
        find(&authenticator, &issuer.token(&clock, "u1"))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn token_is_verified_once_until_it_expires() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let (token, pool) = (issuer.token(&clock, "u1"), CountingPool::default());
    let find = || authenticator.authenticate(&token, PEER, &pool);
    let (first, other) = tokio::join!(find(), find());
    let (first, other) = (first.unwrap(), other.unwrap());
    assert!(
        Arc::ptr_eq(&first.grant, &other.grant),
        "one right for each token"
    );
    let verified = pool.jobs();
    clock.advance(Duration::from_secs(659));
    assert!(Arc::ptr_eq(&first.grant, &find().await.unwrap().grant));
    assert_eq!(pool.jobs(), verified);
    clock.advance(Duration::from_secs(1));
    assert_eq!(find().await.unwrap_err(), invalid(TokenFault::Expired));
    assert!(!first.grant.has_ended(), "its end was known");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_wrong_signatures_does_not_slow_another_address() {
    /// A pool with one thread, whose jobs wait for each other.
    #[derive(Clone)]
    struct OneThread(Arc<tokio::sync::Semaphore>);
    impl Offload for OneThread {
        async fn run<T: Send + 'static>(
            &self,
            job: impl FnOnce() -> T + Send + 'static,
        ) -> Option<T> {
            let _thread = self.0.acquire().await.ok()?;
            let outcome = BlockingThreads.run(job).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            outcome
        }
    }
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let authenticator = Arc::new(authenticator);
    let pool = OneThread(Arc::new(tokio::sync::Semaphore::new(1)));
    let cached = issuer.token(&clock, "cached");
    authenticator
        .authenticate(&cached, PEER, &pool)
        .await
        .unwrap();
    let wrong = Signer::p256();
    let flood: Vec<_> = (0..2000)
        .map(|n| {
            let mut claims = issuer.claims(&clock);
            claims["sub"] = format!("x{n}").into();
            let token = wrong.token(&header("k1"), &claims);
            let (authenticator, pool) = (authenticator.clone(), pool.clone());
            tokio::spawn(async move { authenticator.authenticate(&token, PEER, &pool).await })
        })
        .collect();
    while !flood.iter().any(tokio::task::JoinHandle::is_finished) {
        tokio::task::yield_now().await;
    }
    let begin = tokio::time::Instant::now();
    let other = "192.0.2.7".parse().unwrap();
    let token = issuer.token(&clock, "other");
    assert!(
        authenticator
            .authenticate(&token, other, &pool)
            .await
            .is_ok()
    );
    assert!(
        authenticator
            .authenticate(&cached, PEER, &pool)
            .await
            .is_ok()
    );
    // At most 18 jobs of the flood are before it, 5 ms each; the whole flood would take 10 s.
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    let mut refused = 0;
    for outcome in flood {
        match outcome.await.unwrap().unwrap_err() {
            AuthError::TooManyFailures => refused += 1,
            error => assert_eq!(error, invalid(TokenFault::Signature)),
        }
    }
    assert!(refused > 1000, "{refused}");
}
