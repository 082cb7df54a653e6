//! Configs that let callers without a credential in: a start and a reload refuse them in the same way.

use harness::{Broker, Chaos, Run, contains, wait_until};
use serde_json::{Value, json};

use crate::caller::{Caller, Key};
use crate::stage::{Stage, locked, scripted, serve};

/// The secret of a broker.
const SECRET: &str = "a-secret-of-a-broker-for-tests";

/// Rules with a group that may call everything, and these groups of callers without a credential.
fn rules(anonymous: &[&str]) -> Value {
    json!({
        "groups": ["reader"],
        "rules": [{"allow": ["/**"], "to": ["reader"]}],
        "anonymous": anonymous,
    })
}

/// A broker with a compiled-in catalog without rules, and the file of its config.
struct Compiled {
    chaos: Chaos,
    file: String,
}

impl Compiled {
    fn new(change: impl FnOnce(&mut Value)) -> Self {
        let mut compiled = Self {
            chaos: Chaos::new(),
            file: String::new(),
        };
        compiled.write(change);
        compiled
    }

    /// Writes the compiled-in config with a change.
    fn write(&mut self, change: impl FnOnce(&mut Value)) {
        let text = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/chaos-broker/config.json"
        ));
        let text = text.expect("the config is there");
        let mut config: Value = serde_json::from_str(&text).expect("it is JSON");
        change(&mut config);
        let file = self.chaos.file("given.json", &config.to_string());
        self.file = file.to_str().expect("the path is text").to_owned();
    }

    fn run(&self, address: &str, args: &[&str]) -> Run {
        let args = [&[address, &self.file], args].concat();
        self.chaos.run("chaos-broker", &args)
    }
}

/// Sends SIGHUP and returns the log from then on, up to the outcome.
fn reloaded(broker: &Broker) -> String {
    let before = broker.stderr().len();
    broker.signal("HUP");
    let said = || broker.stderr()[before..].to_owned();
    wait_until("the outcome of the reload", || {
        said().contains("not reloaded") || said().contains(" reloaded")
    });
    said()
}

/// The status of a request without a credential.
fn status(address: &str) -> u16 {
    Caller::with(address, &[]).tree("/", 1).status
}

/// Waits until the broker on every address is ready; the address on this machine.
fn started(run: Run) -> (Broker, String) {
    let broker = Broker::start(run);
    let port = broker.address().rsplit_once(':').expect("it has a port").1;
    let address = format!("127.0.0.1:{port}");
    wait_until("it is ready", || {
        harness::get(&address, "/readyz").status == 200
    });
    (broker, address)
}

#[test]
fn config_that_lets_callers_without_a_credential_in_is_wider() {
    let key = Key::new("ada", &["reader"]);
    let open = |config: &mut Value| config["access"] = rules(&["reader"]);
    let mut of_secret = Compiled::new(|_| {});
    let run = of_secret
        .run("127.0.0.1:0", &[])
        .env("MCP_BROKER_SECRET", SECRET);
    let (broker, address) = started(run);
    of_secret.write(open);
    let said = reloaded(&broker);
    contains(&said, &["error[lock_widen]", "not reloaded"]);
    assert_eq!(status(&address), 401, "{said}");
    of_secret.write(|config| config["access"] = rules(&[]));
    let said = reloaded(&broker);
    assert!(!said.contains("not reloaded"), "{said}");
    assert_eq!(status(&address), 401);
    drop(broker);

    // Identities that were in force count, though the new config has none.
    let mut with_keys = Compiled::new(|config| {
        config["access"] = rules(&[]);
        config["identities"] = json!({"keys": [key.entry]});
    });
    let (broker, address) = started(with_keys.run("127.0.0.1:0", &[]));
    with_keys.write(open);
    let said = reloaded(&broker);
    contains(&said, &["error[lock_widen]", "not reloaded"]);
    assert_eq!(status(&address), 401, "{said}");
    assert_eq!(key.at(&address).tree("/", 1).status, 200);
    drop(broker);

    of_secret.write(open);
    with_keys.write(|config| {
        open(config);
        config["identities"] = json!({"keys": [key.entry]});
    });
    for run in [
        of_secret
            .run("127.0.0.1:0", &[])
            .env("MCP_BROKER_SECRET", SECRET),
        with_keys.run("127.0.0.1:0", &[]),
    ] {
        let output = run.output();
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        contains(&output.stderr, &["error[lock_widen]", "`access.anonymous`"]);
    }
    // Without a credential, every caller could call every tool before.
    let broker = Broker::start_ready(of_secret.run("127.0.0.1:0", &[]));
    assert_eq!(status(broker.address()), 200);
}

#[test]
fn config_beside_a_lock_that_lets_callers_without_a_credential_in_is_wider() {
    let mut config = scripted(rules(&[]));
    config.as_object_mut().expect("an object").remove("access");
    let bench = locked(&config);
    let run = serve(&bench).env("MCP_BROKER_SECRET", SECRET);
    let stage = Stage {
        broker: Broker::start_ready(run),
        bench,
    };
    let address = stage.broker.address();
    assert_eq!(status(address), 401);
    config["access"] = rules(&["reader"]);
    stage.bench.write("c.json", &config.to_string());
    let said = reloaded(&stage.broker);
    contains(&said, &["error[lock_widen]", "not reloaded"]);
    assert_eq!(status(address), 401, "{said}");
    // A lock of the same config is a review of these rules.
    stage.bench.lock();
    let said = reloaded(&stage.broker);
    assert!(!said.contains("error["), "{said}");
    wait_until("the rules of the new lock are in force", || {
        status(address) == 200
    });
}

#[test]
fn reload_without_identities_is_refused_on_an_open_address() {
    let key = Key::new("ada", &[]);
    let closed = |config: &mut Value| config["identities"] = json!({"keys": [key.entry]});
    let mut compiled = Compiled::new(closed);
    let (broker, address) = started(compiled.run("0.0.0.0:0", &[]));
    assert_eq!(status(&address), 401);
    compiled.write(|_| {});
    let said = reloaded(&broker);
    contains(&said, &["error[bind_open]", "not reloaded"]);
    assert_eq!(status(&address), 401, "{said}");
    assert_eq!(key.at(&address).tree("/", 1).status, 200);
    drop(broker);

    // Where the start would allow it, so does a reload: with a secret, on this machine, or by the option.
    for (at, args, secret) in [
        ("0.0.0.0:0", &[][..], Some(SECRET)),
        ("127.0.0.1:0", &[], None),
        ("0.0.0.0:0", &["--allow-unauthenticated"], None),
    ] {
        compiled.write(closed);
        let run = compiled.run(at, args);
        let run = match secret {
            Some(secret) => run.env("MCP_BROKER_SECRET", secret),
            None => run,
        };
        let (broker, address) = started(run);
        compiled.write(|_| {});
        let said = reloaded(&broker);
        assert!(!said.contains("not reloaded"), "{said}");
        // A running broker asks for a credential as before.
        assert_eq!(status(&address), 401, "{said}");
    }
}
