//! A new key of the issuer. A broker fetches keys for a token with an unknown one, at most every 30 seconds, so that
//! each test waits for one fetch.

use harness::wait_until;
use serde_json::json;

use super::{Issuer, stage, status};

#[test]
fn new_key_beside_the_old_one_makes_tokens_of_both_valid() {
    let issuer = Issuer::start();
    let (stage, _) = stage(&issuer.entry(&json!({})));
    let (old, unseen) = (issuer.token("ci"), issuer.token("ci"));
    assert_eq!(status(&stage, &old), 200);
    issuer.rotate(true);
    let new = issuer.token("ci");
    wait_until("tokens of the new key are accepted", || {
        status(&stage, &new) == 200
    });
    for token in [&old, &unseen, &issuer.token("ci")] {
        assert_eq!(status(&stage, token), 200);
    }
}

#[test]
fn new_key_in_place_of_the_old_one_ends_tokens_of_the_old_one() {
    let issuer = Issuer::start();
    let (stage, _) = stage(&issuer.entry(&json!({})));
    let (old, unseen) = (issuer.token("ci"), issuer.token("ci"));
    assert_eq!(status(&stage, &old), 200);
    issuer.rotate(false);
    let new = issuer.token("ci");
    // Until its next fetch, the broker knows the old key only.
    assert_eq!(status(&stage, &old), 200);
    wait_until("tokens of the new key are accepted", || {
        status(&stage, &new) == 200
    });
    for token in [&old, &unseen] {
        assert_eq!(status(&stage, token), 401);
    }
}
