//! Key sets: rotation, unknown keys, issuers that cannot be reached, and sets that are refused.

use std::io;

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::issuer::{Issuer, find, header, section};
use super::signer::{Signer, encode};
use super::*;
use crate::{AuthError, TokenFault};

/// The place of the document of OpenID Connect Discovery.
const OPENID: &str = "/.well-known/openid-configuration";
const UNKNOWN_KEY: AuthError = AuthError::TokenInvalid(TokenFault::Key);

#[tokio::test]
async fn rotated_set_is_fetched_for_a_new_key_and_ends_tokens_of_a_lost_one() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let old = issuer.token(&clock, "u1");
    let caller = find(&authenticator, &old).await.unwrap();
    let next = Signer::ed25519();
    let head = json!({"alg": "EdDSA", "kid": "k2"});
    let new = next.token(&head, &issuer.claims(&clock));
    issuer.publish(&[next.public("k2"), issuer.signer.public("k1")]);
    assert_eq!(find(&authenticator, &new).await.unwrap_err(), UNKNOWN_KEY);
    clock.advance(Duration::from_secs(30));
    assert!(find(&authenticator, &new).await.is_ok());
    assert!(!caller.grant.has_ended() && find(&authenticator, &old).await.is_ok());
    issuer.publish(&[next.public("k2")]);
    clock.advance(Duration::from_secs(30));
    let unknown = issuer.signer.token(&header("k3"), &issuer.claims(&clock));
    assert_eq!(
        find(&authenticator, &unknown).await.unwrap_err(),
        UNKNOWN_KEY
    );
    assert!(caller.grant.has_ended());
    assert_eq!(find(&authenticator, &old).await.unwrap_err(), UNKNOWN_KEY);
    assert!(find(&authenticator, &new).await.is_ok());
}

#[tokio::test]
async fn unknown_keys_fetch_the_set_at_most_once_in_30_seconds() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    find(&authenticator, &issuer.token(&clock, "u1"))
        .await
        .unwrap();
    assert_eq!(issuer.sets_sent(), 1);
    let claims = issuer.claims(&clock);
    let signature = encode(&[0; 64]);
    for n in 0..10_000 {
        let message = super::signer::message(&header(&format!("unknown-{n}")), &claims);
        let refused = find(&authenticator, &format!("{message}.{signature}")).await;
        assert_eq!(refused.unwrap_err(), UNKNOWN_KEY);
        if n == 5000 {
            assert_eq!(issuer.sets_sent(), 1);
            clock.advance(Duration::from_secs(30));
        }
    }
    assert_eq!(issuer.sets_sent(), 2);
}

#[tokio::test]
async fn callers_that_wait_for_a_set_share_one_fetch() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let authenticator = Arc::new(authenticator);
    let waiting: Vec<_> = (0..30)
        .map(|n| {
            let token = issuer.token(&clock, &format!("u{n}"));
            let authenticator = authenticator.clone();
            tokio::spawn(async move { find(&authenticator, &token).await })
        })
        .collect();
    for outcome in waiting {
        outcome.await.unwrap().unwrap();
    }
    assert_eq!(issuer.sets_sent(), 1);
}

#[tokio::test]
async fn set_is_used_for_a_day_after_the_last_fetch() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let mut claims = issuer.claims(&clock);
    claims["exp"] = (clock.seconds() + 200_000).into();
    let cached = issuer.signer.token(&header("k1"), &claims);
    find(&authenticator, &cached).await.unwrap();
    issuer.set_down(true);
    clock.advance(Duration::from_secs(24 * 3600 - 1));
    assert!(
        find(&authenticator, &issuer.token(&clock, "u2"))
            .await
            .is_ok()
    );
    clock.advance(Duration::from_secs(1));
    let other = issuer.token(&clock, "u3");
    for token in [&cached, &other] {
        assert_eq!(
            find(&authenticator, token).await.unwrap_err(),
            AuthError::Unavailable
        );
    }
    issuer.set_down(false);
    clock.advance(Duration::from_secs(30));
    assert!(find(&authenticator, &other).await.is_ok());
    assert!(find(&authenticator, &cached).await.is_ok());
}

#[tokio::test]
async fn issuer_without_a_set_since_the_start_is_unavailable_for_its_tokens_only() {
    let (down, up) = (Issuer::start().await, Issuer::start().await);
    down.set_down(true);
    let (authenticator, clock) = authenticator(&section(&[down.entry(""), up.entry("")]));
    assert!(find(&authenticator, &up.token(&clock, "u1")).await.is_ok());
    let token = down.token(&clock, "u1");
    assert_eq!(
        find(&authenticator, &token).await.unwrap_err(),
        AuthError::Unavailable
    );
    // A token whose header or claims are wrong is refused before the keys of its issuer are asked for.
    let late = down.signer.token(&header("k1"), &json!({"iss": down.url}));
    let fault = AuthError::TokenInvalid(TokenFault::Audience);
    assert_eq!(find(&authenticator, &late).await.unwrap_err(), fault);
    down.set_down(false);
    assert_eq!(
        find(&authenticator, &token).await.unwrap_err(),
        AuthError::Unavailable
    );
    clock.advance(Duration::from_secs(30));
    assert!(find(&authenticator, &token).await.is_ok());
}

#[tokio::test]
async fn discovery_of_either_standard_finds_the_set_also_below_a_path() {
    for path in ["", "/tenant/"] {
        let issuer = Issuer::with_path(path).await;
        let (authenticator, clock) = issuer.authenticator("");
        let place = path.trim_end_matches('/');
        let origin = issuer.url.strip_suffix(path).unwrap().to_owned();
        let document = json!({"issuer": issuer.url, "jwks_uri": format!("{origin}/keys")});
        issuer.describe(&[(
            &format!("{place}/.well-known/openid-configuration"),
            document.clone(),
        )]);
        assert!(
            find(&authenticator, &issuer.token(&clock, "u1"))
                .await
                .is_ok(),
            "{path}"
        );
        issuer.describe(&[(
            &format!("/.well-known/oauth-authorization-server{place}"),
            document,
        )]);
        let (authenticator, clock) = issuer.authenticator("");
        assert!(
            find(&authenticator, &issuer.token(&clock, "u1"))
                .await
                .is_ok(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn set_at_a_configured_place_needs_no_discovery() {
    let issuer = Issuer::start().await;
    issuer.describe(&[]);
    let place = format!(r#","jwks":"{}/keys""#, issuer.url);
    let (authenticator, clock) = issuer.authenticator(&place);
    assert!(
        find(&authenticator, &issuer.token(&clock, "u1"))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn set_or_document_that_is_refused_makes_the_issuer_unavailable() {
    let cases: [fn(&Issuer); 8] = [
        |issuer| issuer.redirect(),
        |issuer| {
            // A set that only its size makes unusable.
            let keys = json!({"keys": [issuer.signer.public("k1")]});
            issuer.publish_text(format!("{keys}{}", " ".repeat(256 << 10)));
        },
        |issuer| issuer.publish_text("not JSON".to_owned()),
        |issuer| issuer.publish_text(r#"{"keys":{}}"#.to_owned()),
        |issuer| issuer.describe(&[]),
        |issuer| {
            let keys = format!("{}/keys", issuer.url);
            let document = json!({"issuer": "https://other.example", "jwks_uri": keys});
            issuer.describe(&[(OPENID, document)]);
        },
        |issuer| {
            let document = json!({"issuer": format!("{}/", issuer.url), "jwks_uri": format!("{}/keys", issuer.url)});
            issuer.describe(&[(OPENID, document)]);
        },
        |issuer| {
            let document = json!({"issuer": issuer.url, "jwks_uri": "http://idp.example/keys"});
            issuer.describe(&[(OPENID, document)]);
        },
    ];
    for (index, spoil) in cases.into_iter().enumerate() {
        let issuer = Issuer::start().await;
        spoil(&issuer);
        let (authenticator, clock) = issuer.authenticator("");
        let refused = find(&authenticator, &issuer.token(&clock, "u1")).await;
        assert_eq!(refused.unwrap_err(), AuthError::Unavailable, "case {index}");
    }
}

#[tokio::test]
async fn token_without_a_key_name_needs_a_set_with_one_usable_key() {
    let issuer = Issuer::start().await;
    let (authenticator, clock) = issuer.authenticator("");
    let token = issuer
        .signer
        .token(&json!({"alg": "ES256"}), &issuer.claims(&clock));
    issuer.publish(&[issuer.signer.public("k1"), Signer::ed25519().public("k2")]);
    assert!(
        find(&authenticator, &token).await.is_ok(),
        "one key for the algorithm"
    );
    issuer.publish(&[issuer.signer.public("k1"), Signer::p256().public("k2")]);
    let (authenticator, _) = issuer.authenticator("");
    assert_eq!(find(&authenticator, &token).await.unwrap_err(), UNKNOWN_KEY);
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn failed_fetches_are_logged_once_a_minute_and_no_token_is_shown() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(log.clone())
        .finish();
    let _log = tracing::subscriber::set_default(subscriber);
    let issuer = Issuer::start().await;
    let found = json!({"issuer": "evil\n\u{1b}[31m", "jwks_uri": ""});
    issuer.describe(&[(OPENID, found)]);
    let (authenticator, clock) = issuer.authenticator("");
    let token = issuer.token(&clock, "u1");
    let mut shown = String::new();
    // Fetches at 0, 30, 60, 90 and 120 s.
    for _ in 0..5 {
        let error = find(&authenticator, &token).await.unwrap_err();
        shown.push_str(&format!("{error} {error:?} {authenticator:?}"));
        clock.advance(Duration::from_secs(30));
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(
        logged.matches("the key set of an issuer").count(),
        3,
        "{logged}"
    );
    assert!(
        logged.contains("which is not the configured one"),
        "{logged}"
    );
    assert!(
        !logged.contains("\u{1b}[31m") && logged.lines().count() == 3,
        "{logged}"
    );
    issuer.describe(&[(
        OPENID,
        json!({"issuer": issuer.url, "jwks_uri": format!("{}/keys", issuer.url)}),
    )]);
    let caller = find(&authenticator, &token).await.unwrap();
    shown.push_str(&format!("{caller:?} {authenticator:?}"));
    for part in token.split('.') {
        assert!(!shown.contains(part) && !logged.contains(part));
    }
}
