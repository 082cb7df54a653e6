//! Streams of a job that are cut at random points and resumed: each event is read once.

use std::io::Read as _;
use std::path::Path;

use harness::websocket::WebSocketClient;
use harness::{Broker, Run, binary, send, wait_until};
use serde_json::{Value, json};
use tungstenite::Message;

use crate::relay::Relay;
use crate::stage::{Caller, bench, serve};

/// The streams of each kind that are read to their end.
const ROUNDS: u64 = 12;
/// The bytes behind the head of a reply after which a connection is cut, at most.
const MAX_CUT: u64 = 900;
/// The maximum bytes of the head of a reply to a request for an upgrade.
const HEAD_BYTES: usize = 450;

/// Numbers that look random; the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % below) as usize
    }
}

/// A broker with a tool `steps` that reports progress and log messages, with pauses.
fn start() -> (harness::Bench, Broker) {
    let bench = bench(&json!({}), &json!({}));
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    let steps = |from: u64| -> Value {
        let steps = (from..from + 10).map(|step| json!({"progress": step, "total": 50}));
        json!(steps.collect::<Vec<_>>())
    };
    let pause = |then: Value| json!({"delay_ms": 300, "then": then});
    let mut play = json!({"progress": steps(41), "then": {"delay_ms": 100}});
    for from in [31, 21, 11] {
        play = json!({"progress": steps(from), "then": pause(play)});
    }
    let log = json!([{"level": "info", "data": "ü".repeat(300)}]);
    script["on_call"]["steps"] =
        json!({"log": log, "then": {"progress": steps(1), "then": pause(play)}});
    bench.script("a", &script);
    let broker = serve(&bench);
    (bench, broker)
}

/// The whole events in the bytes of a stream of Server-Sent Events.
fn whole_events(bytes: &[u8]) -> Vec<(u64, Value)> {
    let text = String::from_utf8_lossy(bytes);
    let Some((_, body)) = text.split_once("\r\n\r\n") else {
        return Vec::new();
    };
    // The lines of chunks are between events.
    let mut events = Vec::new();
    for event in body
        .split_inclusive("\n\n")
        .filter(|part| part.ends_with("\n\n"))
    {
        let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(id), Some(data)) = (line("id: "), line("data: ")) {
            let number = id.parse().expect("a number");
            events.push((number, serde_json::from_str(data).expect("JSON")));
        }
    }
    events
}

/// Reads the events of a stream until the connection ends.
fn read_stream(address: &str, id: &str, after: u64) -> Vec<(u64, Value)> {
    let head = format!(
        "GET /jobs/{id}/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {after}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = send(address, head.as_bytes());
    let mut bytes = Vec::new();
    // A cut may be an error of the connection.
    let _ = stream.read_to_end(&mut bytes);
    whole_events(&bytes)
}

/// Reads the events of a WebSocket until the connection ends.
fn read_socket(address: &str, id: &str, after: u64) -> Vec<(u64, Value)> {
    let mut client = WebSocketClient::connect(address, &format!("/v1/ws/jobs/{id}?after={after}"));
    let mut events = Vec::new();
    while let Ok(message) = client.socket.read() {
        match message {
            Message::Text(text) => {
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                events.push((
                    frame["seq"].as_u64().expect("a number"),
                    frame["data"].clone(),
                ));
            }
            Message::Close(_) => break,
            _ => {}
        }
    }
    events
}

#[test]
fn streams_cut_at_random_points_miss_no_event_and_double_none() {
    let (_bench, broker) = start();
    let caller = Caller::of(&broker);
    let mut cuts = 0;
    for seed in 0..ROUNDS {
        let id = caller.make("steps", json!({"n": seed}));
        let relay = Relay::start(broker.address(), Vec::new());
        let mut numbers = Numbers(seed);
        let mut read_all = |read: fn(&str, &str, u64) -> Vec<(u64, Value)>| {
            let mut all: Vec<(u64, Value)> = Vec::new();
            while all
                .last()
                .is_none_or(|(_, data)| data["status"] != "succeeded")
            {
                relay.cut_next(HEAD_BYTES + numbers.next(MAX_CUT));
                let after = all.last().map_or(0, |(number, _)| *number);
                all.extend(read(relay.address(), &id, after));
            }
            all
        };
        // The first one is read while the job runs.
        let (streamed, framed) = match seed % 2 {
            0 => {
                let streamed = read_all(read_stream);
                (streamed, read_all(read_socket))
            }
            _ => {
                let framed = read_all(read_socket);
                (read_all(read_stream), framed)
            }
        };
        let numbers: Vec<u64> = streamed.iter().map(|(number, _)| *number).collect();
        let last = caller.job(&id)["last_event"].as_u64().expect("a number");
        assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(streamed, framed, "seed {seed}");
        cuts += relay.cut_connections();
    }
    assert!(cuts >= 8 * ROUNDS as usize, "{cuts} cuts");
}

#[test]
fn events_verb_goes_on_behind_a_cut_and_prints_each_event_once() {
    let (_bench, broker) = start();
    let caller = Caller::of(&broker);
    let id = caller.make("steps", json!({"n": 1}));
    let events = |address: &str, args: &[&str]| {
        Run::new(&binary("mcp-broker"))
            .args(["jobs", "events", &id, "--format", "json"])
            .args(args)
            .args(["--url", address])
            .folder(Path::new("/"))
            .output()
    };
    // While the job runs.
    let relay = Relay::start(broker.address(), vec![700, 2_000]);
    let cut = events(relay.address(), &[]);
    assert_eq!(cut.code, Some(0), "{}", cut.stderr);
    assert_eq!(relay.cut_connections(), 2);
    let whole = events(broker.address(), &[]);
    assert_eq!((whole.code, &whole.stdout), (Some(0), &cut.stdout));
    let lines: Vec<Value> = whole
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let numbers: Vec<_> = lines
        .iter()
        .map(|event| event["seq"].as_u64().expect("a number"))
        .collect();
    let last = caller.job(&id)["last_event"].as_u64().expect("a number");
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
    let rest = events(broker.address(), &["--after", &(last - 1).to_string()]);
    assert_eq!(rest.stdout.lines().count(), 1, "{}", rest.stdout);
    // An end without success, and a job that does not exist.
    let long = caller.make("long", json!({"n": 2}));
    wait_until("it runs", || caller.job(&long)["status"] == "running");
    caller.send("DELETE", &format!("/jobs/{long}"), &[], "");
    let of = |id: &str| {
        Run::new(&binary("mcp-broker"))
            .args(["jobs", "events", id, "--url", broker.address()])
            .output()
    };
    let cancelled = of(&long);
    assert_eq!(cancelled.code, Some(15));
    harness::contains(
        &cancelled.stdout,
        &["    1  status    {\"status\":\"queued\"}\n", "canceled"],
    );
    let unknown = of("j_abc");
    assert_eq!(unknown.code, Some(1));
    harness::contains(&unknown.stderr, &["answered 404"]);
}
