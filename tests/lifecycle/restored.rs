//! A config and a lock beside the broker that are not those of its build: the broker says so and serves what was built.

use std::fs;
use std::path::Path;

use harness::{Broker, Chaos, Run, contains};
use serde_json::{Value, json};

/// The folder of the compiled-in config.
fn built() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chaos-broker"))
}

/// A folder with copies of the compiled-in config and its lock.
fn copies() -> Chaos {
    let chaos = Chaos::new();
    for name in ["config.json", "config.lock.json"] {
        fs::copy(built().join(name), chaos.path().join(name)).expect("copied");
    }
    chaos
}

/// Writes a file of the folder with a change.
fn change(chaos: &Chaos, name: &str, change: impl FnOnce(&mut Value)) {
    let text = fs::read_to_string(chaos.path().join(name)).expect("it is there");
    let mut value: Value = serde_json::from_str(&text).expect("it is JSON");
    change(&mut value);
    chaos.file(name, &value.to_string());
}

fn run(chaos: &Chaos, args: &[&str]) -> Run {
    let args = [&["127.0.0.1:0"], args].concat();
    chaos.run("chaos-broker", &args).folder(chaos.path())
}

/// The log of a start.
fn log(chaos: &Chaos, args: &[&str]) -> String {
    let broker = Broker::start_ready(run(chaos, args));
    broker.result("/a/echo", json!({"text": "x"}));
    broker.terminate().1
}

#[test]
fn lock_beside_the_broker_that_is_not_compiled_in_is_named_at_the_start() {
    let chaos = copies();
    for args in [&[][..], &["config.json"]] {
        let said = log(&chaos, args);
        assert!(!said.contains("lock_mismatch"), "{said}");
    }
    let other = "sha256/1:00000000000000000000000000000000000000000000000000000000000000ff";
    change(&chaos, "config.lock.json", |lock| {
        lock["root_digest"] = json!(other)
    });
    let help = "touch config.json config.lock.json && cargo build";
    for args in [&[][..], &["config.json"]] {
        contains(
            &log(&chaos, args),
            &["lock_mismatch", other, "the lock", help],
        );
    }
    // The lock is compared at a reload too.
    fs::copy(
        built().join("config.lock.json"),
        chaos.path().join("config.lock.json"),
    )
    .expect("copied");
    let broker = Broker::start_ready(run(&chaos, &["config.json"]));
    assert!(!broker.stderr().contains("lock_mismatch"));
    change(&chaos, "config.lock.json", |lock| {
        lock["root_digest"] = json!(other)
    });
    broker.signal("HUP");
    harness::wait_until("the reload is over", || {
        broker.stderr().contains("reloaded")
    });
    contains(&broker.stderr(), &["lock_mismatch", other]);
}

#[test]
fn config_beside_the_broker_that_is_not_compiled_in_is_named_at_the_start() {
    let chaos = copies();
    // The lock does not cover it.
    change(&chaos, "config.json", |config| {
        config["limits"]["body_bytes"] = json!(2000)
    });
    contains(&log(&chaos, &[]), &["lock_mismatch", "the config"]);
    // A config that is given is in force.
    let said = log(&chaos, &["config.json"]);
    assert!(!said.contains("lock_mismatch"), "{said}");
    // Files of other programs have these names too.
    for lock in ["{}", "[1", r#"{"lock_version": "x"}"#] {
        chaos.file("config.lock.json", lock);
        let said = log(&chaos, &[]);
        assert!(!said.contains("lock_mismatch"), "{said}");
    }
    fs::remove_file(chaos.path().join("config.lock.json")).expect("removed");
    let said = log(&chaos, &[]);
    assert!(!said.contains("lock_mismatch"), "{said}");
}
