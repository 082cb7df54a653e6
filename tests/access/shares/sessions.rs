//! The table of sessions, and requests that wait for the keys of an issuer.

use std::net::{TcpListener, TcpStream};

use data_encoding::BASE64URL_NOPAD;
use harness::{read, wait_until};
use serde_json::{Value, json};

use crate::caller::{Caller, Key};
use crate::stage::{Stage, scripted};

/// The resource that tokens are for.
const AUDIENCE: &str = "https://broker.example/mcp";
/// As many sessions as the broker has, and as one caller has.
const ALL: usize = 10_000;
const OWN: usize = 1_000;

#[test]
fn full_table_of_sessions_ends_an_idle_one_of_the_caller_with_the_most() {
    // Every caller may have a tenth: ten fill the table, and the eleventh gets a place.
    let keys: Vec<Key> = (0..=ALL / OWN)
        .map(|number| Key::new(&format!("key-{number}"), &["all"]))
        .collect();
    let access = json!({"groups": ["all"], "rules": [{"allow": ["/**"], "to": ["all"]}]});
    let stage = Stage::new(access, &keys.iter().collect::<Vec<_>>());
    let callers: Vec<Caller> = keys.iter().map(|key| stage.caller(key)).collect();
    let (last, fillers) = callers.split_last().expect("there are callers");
    let first = std::thread::scope(|scope| {
        let threads: Vec<_> = fillers
            .iter()
            .map(|caller| {
                scope.spawn(move || {
                    let first = caller.session("/mcp");
                    (1..OWN).for_each(|_| drop(caller.session("/mcp")));
                    first
                })
            })
            .collect();
        let joined = threads.into_iter().map(|one| one.join().expect("sessions"));
        joined.collect::<Vec<_>>()
    });
    let own = last.session("/mcp");
    assert_eq!(
        own.ask("ping", &json!({})).status,
        200,
        "the table was full"
    );
    let gone = first
        .iter()
        .filter(|session| session.ask("ping", &json!({})).status == 404);
    assert!(gone.count() <= 1, "one session ended for it");
}

#[test]
fn few_requests_wait_for_the_keys_of_an_issuer() {
    // An issuer that accepts connections and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let issuer = format!("http://{}", silent.local_addr().expect("an address"));
    let mut config = scripted(json!({
        "groups": ["all"],
        "rules": [{"allow": ["/**"], "to": ["all"]}],
    }));
    config["identities"]["issuers"] = json!([{
        "issuer": issuer,
        "audience": [AUDIENCE],
        "jwks": format!("{issuer}/jwks"),
        "algorithms": ["RS256"],
        "groups_claim": "groups",
        "map": {"all": ["all"]},
    }]);
    config["public_url"] = json!(AUDIENCE);
    config["trusted_proxies"] = json!(["127.0.0.1"]);
    let key = Key::new("ada", &["all"]);
    let stage = Stage::with(config, &[&key], |run| run);
    let token = token(&issuer);
    let ask = |client: &str| {
        let credential = [
            ("Authorization", format!("Bearer {token}")),
            ("X-Forwarded-For", client.to_owned()),
        ];
        let credential = credential
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        Caller::with(stage.broker.address(), &credential)
            .begin_call("/a/echo", &json!({"text": "x"}))
    };
    let answered =
        |streams: &[TcpStream]| streams.iter().filter(|stream| is_answered(stream)).count();
    // Four of one address wait, the others are refused at once.
    let of_one: Vec<_> = (0..6).map(|_| ask("192.0.2.1")).collect();
    wait_until("two are refused", || answered(&of_one) == 2);
    // Of other addresses more wait, up to 32 in all.
    let of_others: Vec<_> = (2..11)
        .flat_map(|network| (0..4).map(move |_| format!("192.0.2.{network}")))
        .map(|client| ask(&client))
        .collect();
    wait_until("eight are refused", || answered(&of_others) == 8);
    assert_eq!(answered(&of_one), 2, "the others still wait");
    for stream in of_one.into_iter().chain(of_others).filter(is_answered) {
        assert_eq!(read(stream).status, 503);
    }
    assert_eq!(
        stage
            .caller(&key)
            .call("/a/echo", &json!({"text": "x"}))
            .status,
        200
    );
}

/// Whether an answer has arrived; does not wait.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("it can be asked");
    let answered = stream.peek(&mut [0]).is_ok();
    stream.set_nonblocking(false).expect("it can be asked");
    answered
}

/// A token of this issuer whose signature nothing verifies.
fn token(issuer: &str) -> String {
    let part = |value: Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let header = part(json!({"alg": "RS256", "typ": "at+jwt", "kid": "k"}));
    let claims = part(json!({
        "iss": issuer,
        "aud": AUDIENCE,
        "sub": "ada",
        "exp": 4_102_444_800_u64,
    }));
    format!("{header}.{claims}.{}", BASE64URL_NOPAD.encode(&[0; 256]))
}
