//! The events of a job over WebSocket: in their order, once each, to the owner only.

use std::io::Write as _;

use harness::mcp_http::without_chunks;
use harness::websocket::WebSocketClient;
use harness::{Broker, Response, contains};
use serde_json::{Value, json};
use tungstenite::Message;

use crate::stage::{Caller, KEYS, bench, serve};

/// The frames of a connection up to its end, and the code with which it ends.
fn frames(mut client: WebSocketClient) -> (Vec<Value>, u16) {
    let mut frames = Vec::new();
    loop {
        match client
            .socket
            .read()
            .expect("the connection is closed with a code")
        {
            Message::Text(text) => {
                frames.push(serde_json::from_str(&text).expect("a frame is one event"));
            }
            Message::Close(frame) => return (frames, frame.expect("a code").code.into()),
            _ => {}
        }
    }
}

/// The events of a job as its stream of Server-Sent Events has them.
fn sent_events(caller: Caller<'_>, id: &str) -> Vec<Value> {
    let text = without_chunks(&caller.get(&format!("/jobs/{id}/events")).body);
    let events = text.split("\n\n").filter(|event| event.starts_with("id: "));
    let member = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name));
        line.expect("a member").to_owned()
    };
    events
        .map(|event| {
            json!({
                "seq": member(event, "id: ").parse::<u64>().expect("a number"),
                "kind": member(event, "event: "),
                "data": serde_json::from_str::<Value>(&member(event, "data: ")).expect("JSON"),
            })
        })
        .collect()
}

fn refused(broker: &Broker, target: &str, headers: &[(&str, &str)]) -> Response {
    match WebSocketClient::try_connect(broker.address(), target, headers) {
        Ok(_) => panic!("{target} was upgraded"),
        Err(refused) => refused,
    }
}

#[test]
fn socket_has_each_event_once_and_ends_with_the_job() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let id = caller.make("steps", json!({"n": 1}));
    let connect = |target: &str| WebSocketClient::connect(broker.address(), target);
    // Opened while the job runs.
    let (all, code) = frames(connect(&format!(
        "/ws/jobs/{id}?stream=stdout,stderr,progress"
    )));
    assert_eq!(code, 1000);
    assert_eq!(all, sent_events(caller, &id));
    assert_eq!(
        all.last().expect("events")["data"],
        json!({"status": "succeeded"})
    );
    // Opened after its end, and behind each event.
    for after in 0..=all.len() {
        let (rest, code) = frames(connect(&format!("/v1/ws/jobs/{id}?after={after}")));
        assert_eq!((&rest[..], code), (&all[after..], 1000));
    }
    let of = |stream: &str| frames(connect(&format!("/ws/jobs/{id}?stream={stream}"))).0;
    let kinds = |frames: &[Value]| -> Vec<String> {
        let kinds = frames
            .iter()
            .map(|frame| frame["kind"].as_str().expect("a kind").to_owned());
        kinds.collect()
    };
    assert!(kinds(&all).contains(&"progress".to_owned()));
    assert_eq!(kinds(&of("stdout")), ["status"; 3]);
    assert_eq!(of("progress"), all);
    let wrong = refused(&broker, &format!("/ws/jobs/{id}?stream=stdin"), &[]);
    assert_eq!(
        (wrong.status, wrong.code().as_str()),
        (400, "field_invalid")
    );
    let wrong = refused(&broker, &format!("/ws/jobs/{id}?after=x"), &[]);
    assert_eq!(
        (wrong.status, wrong.code().as_str()),
        (400, "field_invalid")
    );
    // A request that asks for no upgrade.
    let plain = caller.get(&format!("/ws/jobs/{id}"));
    assert_eq!(
        (plain.status, plain.header("upgrade")),
        (426, Some("websocket"))
    );
}

#[test]
fn socket_is_refused_before_the_upgrade() {
    let keys = KEYS
        .iter()
        .map(|(name, _, digest)| json!({"name": name, "sha256": digest, "groups": [name]}));
    let identities = json!({
        "identities": {"keys": keys.collect::<Vec<_>>()},
        "access": {
            "groups": ["one", "two"],
            "rules": [{"allow": ["/**"], "to": ["one", "two"]}],
            "operators": ["two"],
        },
    });
    let bench = bench(&json!({}), &identities);
    let broker = serve(&bench);
    let one = Caller {
        broker: &broker,
        key: Some(KEYS[0].1),
    };
    let id = one.make("quick", json!({"n": 1}));
    one.end(&id);
    let owner = ("X-API-Key", KEYS[0].1);
    let operator = ("X-API-Key", KEYS[1].1);
    for base in ["/ws/jobs", "/v1/ws/jobs"] {
        let target = format!("{base}/{id}");
        let code_of = |target: &str, headers: &[(&str, &str)]| {
            let refused = refused(&broker, target, headers);
            (refused.status, refused.code())
        };
        let unknown = (404, "job_not_found".to_owned());
        assert_eq!(code_of(&target, &[operator]), unknown);
        for other in ["j_aaaaaaaaaaaaaaaaaaaaaaaaaa", "x", "%2e%2e"] {
            assert_eq!(code_of(&format!("{base}/{other}"), &[owner]), unknown);
        }
        assert_eq!(code_of(&target, &[]), (401, "unauthorized".to_owned()));
        let evil = ("Origin", "https://evil.example");
        assert_eq!(
            code_of(&target, &[owner, evil]),
            (403, "origin_forbidden".to_owned())
        );
        // Its credential is where the other WebSocket takes it.
        let encoded = data_encoding::BASE64URL_NOPAD.encode(KEYS[0].1.as_bytes());
        let protocols = format!("mcp, key.{encoded}");
        for (target, header) in [
            (target.clone(), owner),
            (
                target.clone(),
                ("Sec-WebSocket-Protocol", protocols.as_str()),
            ),
            (format!("{target}?api_key={}", KEYS[0].1), ("Accept", "*/*")),
        ] {
            let client = WebSocketClient::try_connect(broker.address(), &target, &[header]);
            let (all, code) = frames(client.unwrap_or_else(|refused| panic!("{}", refused.text())));
            assert_eq!((all.len(), code), (3, 1000), "{all:?}");
        }
    }
    assert!(!broker.stderr().contains(KEYS[0].1));
}

#[test]
fn socket_of_jobs_that_are_off_is_refused_by_name() {
    let bench = bench(&json!(null), &json!({}));
    let broker = serve(&bench);
    let refused = refused(&broker, "/ws/jobs/j_aaaaaaaaaaaaaaaaaaaaaaaaaa", &[]);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (404, "route_not_found")
    );
    contains(&refused.text(), &["jobs are off: the config has no `jobs`"]);
}

#[test]
fn frames_of_a_client_of_a_socket_are_bounded() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let caller = Caller::of(&broker);
    let id = caller.make("long", json!({"n": 1}));
    let after = |act: &dyn Fn(&mut WebSocketClient)| {
        let target = format!("/ws/jobs/{id}");
        let mut client = WebSocketClient::connect(broker.address(), &target);
        act(&mut client);
        client.close_code().0
    };
    let binary = after(&|client| {
        client
            .socket
            .send(Message::binary(b"{}".to_vec()))
            .expect("it is open");
    });
    assert_eq!(binary, 1003);
    let announced = [&[0x81, 0xff][..], &(5_000_u64).to_be_bytes(), &[0; 4]].concat();
    let long = after(&|client| {
        client
            .socket
            .get_mut()
            .write_all(&announced)
            .expect("it is open");
    });
    assert_eq!(long, 1009);
    // The broker ends it when it ends.
    let mut client = WebSocketClient::connect(broker.address(), &format!("/ws/jobs/{id}"));
    client.next_message();
    caller.send("DELETE", &format!("/jobs/{id}"), &[], "");
    let (rest, code) = frames(client);
    assert_eq!(code, 1000);
    assert_eq!(rest.last().expect("events")["data"]["status"], "canceled");
}
