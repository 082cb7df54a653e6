//! Expectations of operators: probes while servers start, `HEAD`, and files of a mounted folder that are swapped by a
//! symbolic link, as Kubernetes does with a ConfigMap.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;

use harness::{Broker, Chaos, send, wait_until};
use serde_json::{Value, json};

const CONFIG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/chaos-broker/config.json"
);

/// The status line and the rest of a reply to `HEAD`.
fn head(broker: &Broker, route: &str) -> (String, String) {
    let request = format!(
        "HEAD {route} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        broker.address()
    );
    let mut reply = String::new();
    let mut stream = send(broker.address(), request.as_bytes());
    stream.read_to_string(&mut reply).expect("a reply");
    let (status, rest) = reply.split_once("\r\n").expect("a status line");
    (status.to_owned(), rest.to_owned())
}

#[test]
fn healthz_answers_get_and_head_while_servers_start() {
    let chaos = Chaos::new();
    for source in ["a", "b", "optional"] {
        chaos.script(source, &json!({"start_delay_ms": 600_000}));
    }
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    assert_eq!(broker.get("/healthz").status, 200);
    assert_eq!(broker.get("/readyz").status, 503);
    assert_eq!(broker.source("/a")["state"], "starting");
    for (route, status) in [
        ("/healthz", "HTTP/1.1 200 OK"),
        ("/readyz", "HTTP/1.1 503 Service Unavailable"),
        ("/sources", "HTTP/1.1 200 OK"),
    ] {
        let (line, rest) = head(&broker, route);
        assert_eq!(line, status, "{route}");
        let (fields, body) = rest.split_once("\r\n\r\n").expect("the end of the head");
        assert_eq!(body, "", "{route}");
        assert!(
            fields.to_lowercase().contains("content-length: "),
            "{fields}"
        );
    }
}

#[test]
fn files_of_a_mounted_folder_are_taken_when_its_link_is_swapped() {
    let chaos = Chaos::new();
    let folder = chaos.path();
    let lock = || {
        let config = folder.join("given.json");
        let config = config.to_str().expect("the path is text");
        let locked = chaos
            .run("broker-gen", &["lock", "--config", config])
            .output();
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    };
    // Each version has a folder; `..data` names the current one, and the files are links through it.
    for (version, hides) in [("..1", false), ("..2", true)] {
        chaos.config(CONFIG, |config: &mut Value| {
            if hides {
                config["tree"][1]["source"]["tool_filter"] = json!(["!echo"]);
            }
        });
        lock();
        fs::create_dir(folder.join(version)).expect("writable");
        for name in ["given.json", "given.lock.json"] {
            fs::rename(folder.join(name), folder.join(version).join(name)).expect("renamed");
        }
    }
    let name_current = |version: &str| {
        symlink(version, folder.join("..new")).expect("a link");
        fs::rename(folder.join("..new"), folder.join("..data")).expect("renamed");
    };
    name_current("..1");
    for name in ["given.json", "given.lock.json"] {
        symlink(format!("..data/{name}"), folder.join(name)).expect("a link");
    }
    let config = folder.join("given.json");
    let config = config.to_str().expect("the path is text");
    let run = chaos.run("broker-gen", &["serve", "--config", config, "127.0.0.1:0"]);
    let broker = Broker::start_ready(run);
    broker.result("/b/echo", json!({"text": "x"}));
    for (version, status) in [("..2", 404), ("..1", 200)] {
        name_current(version);
        wait_until("the files of the other folder are served", || {
            broker.call("/b/echo", json!({"text": "x"})).status == status
        });
    }
    broker.result("/a/echo", json!({"text": "x"}));
}
