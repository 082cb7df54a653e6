//! The secret of the API: required on a public address, and what a caller without it may see.

use harness::{Broker, Chaos, get, named, refusal, request, wait_until};
use serde_json::{Value, json};

use crate::heads::{HEALTH, JSON, post};
use crate::replies::paths;

#[test]
fn secret_missing_or_wrong_is_refused() {
    const SECRET: &str = "s3cret-for-tests";
    let chaos = Chaos::new();
    let file = chaos.file("secret", "s3cret-for-tests\n");
    let file = file.to_str().expect("the path is text");
    let run = |args: &[&str]| chaos.run("chaos-broker", args);
    let config = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    for run in [
        run(&["127.0.0.1:0"]).env("MCP_BROKER_SECRET", SECRET),
        run(&["127.0.0.1:0", "--secret-file", file]),
        run(&["127.0.0.1:0", config, SECRET]),
    ] {
        let broker = Broker::start(run);
        let ask = |headers: &[(&str, &str)]| {
            post(&broker, "/meta_tree", &[&[JSON], headers].concat(), b"{}")
        };
        for wrong in [
            &[][..],
            &[("Authorization", "Bearer wrong")],
            &[("Authorization", "Bearer s3cret-for-test")],
            &[("Authorization", "Bearer s3cret-for-tests2")],
            &[("Authorization", "s3cret-for-tests")],
            &[("Authorization", "Basic czNjcmV0LWZvci10ZXN0cw==")],
            &[("X-API-Key", "S3CRET-FOR-TESTS")],
            &[("Cookie", "secret=s3cret-for-tests")],
        ] {
            let response = ask(wrong);
            refusal(&response, 401, "unauthorized");
            // RFC 6750, section 3.1: an error code only if the request has a token.
            let has_token = wrong.iter().any(|(_, value)| value.starts_with("Bearer "));
            let challenge = match has_token {
                true => "Bearer error=\"invalid_token\"",
                false => "Bearer",
            };
            assert_eq!(response.header("www-authenticate"), Some(challenge));
            assert!(!response.text().contains(SECRET));
        }
        assert_eq!(
            ask(&[("Authorization", "Bearer s3cret-for-tests")]).status,
            200
        );
        assert_eq!(
            ask(&[("Authorization", "bearer s3cret-for-tests")]).status,
            200
        );
        assert_eq!(ask(&[("X-API-Key", SECRET)]).status, 200);
        for query in ["token", "api_key", "access_token", "secret"] {
            let route = format!("/meta_tree?{query}={SECRET}");
            let response = post(&broker, &route, &[JSON, ("X-API-Key", SECRET)], b"{}");
            refusal(&response, 400, "header_invalid");
        }
        assert!(
            HEALTH
                .iter()
                .all(|route| matches!(broker.get(route).status, 200 | 503)),
            "health needs no secret"
        );
        named(&broker.get("/healthz"));
    }
}

#[test]
fn public_address_without_a_secret_is_refused_or_shows_states_only() {
    let chaos = Chaos::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = chaos
            .run("chaos-broker", &[address, "--log-format", "json"])
            .output();
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (Some(2), ""),
            "{}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains(r#""code":"bind_open""#),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(
        chaos.journal("a"),
        Vec::<Value>::new(),
        "nothing was started"
    );
    let open = chaos.run("chaos-broker", &["0.0.0.0:0", "--allow-unauthenticated"]);
    let open = Broker::start(open);
    let port = open.address().rsplit_once(':').expect("it has a port").1;
    assert_eq!(
        get(&format!("127.0.0.1:{port}"), "/healthz").json(),
        json!({"status": "ok"})
    );
}

#[test]
fn health_routes_without_the_secret_show_states_only() {
    let chaos = Chaos::new();
    for host in ["0.0.0.0", "127.0.0.1"] {
        let run = chaos
            .run("chaos-broker", &[&format!("{host}:0")])
            .env("MCP_BROKER_SECRET", "s3cret-for-tests");
        let broker = Broker::start(run);
        let port = broker.address().rsplit_once(':').expect("it has a port").1;
        let address = format!("127.0.0.1:{port}");
        let ready = json!({"ready": true});
        wait_until("every source is ready", || {
            get(&address, "/readyz").json() == ready
        });
        assert_eq!(get(&address, "/healthz").json(), json!({"status": "ok"}));
        let states =
            json!({"sources": [{"state": "ready"}, {"state": "ready"}, {"state": "ready"}]});
        wait_until("all sources are up", || {
            get(&address, "/sources").json() == states
        });
        let wrong = [("Authorization", "Bearer another")];
        assert_eq!(
            request(&address, "GET", "/sources", &wrong, b"").json(),
            states
        );
        let known = [("Authorization", "Bearer s3cret-for-tests")];
        let whole = request(&address, "GET", "/readyz", &known, b"").json();
        assert_eq!(paths(&whole["sources"]), ["/a", "/b", "/optional"]);
    }
}
