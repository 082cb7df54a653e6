//! The list of attacks against every bind of the broker, and through nginx and Caddy: no hidden request is executed, no
//! caller gets the answer of another one, and each difference is a row of `docs/proxies.md`.

mod list;
mod namespace;
mod page;
mod proxies;

use harness::faults::config_args;
use harness::{Broker, Chaos, read, wait_until};
use serde_json::{Value, json};

use list::{HIDDEN, SECRET, WHOLE, attacks, echo};

/// A broker with a secret, under attack.
struct Target {
    chaos: Chaos,
    broker: Broker,
}

/// The name of each attack, and the statuses of its answers, in bold if its call was executed.
type Outcomes = Vec<(&'static str, String)>;

impl Target {
    /// Starts the broker on this address.
    fn on(address: &str) -> Self {
        let chaos = Chaos::new();
        chaos.script("a", &json!({}));
        let mut args = config_args(&chaos, |_| {});
        address.clone_into(&mut args[0]);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let run = chaos.run("chaos-broker", &args);
        let broker = Broker::start_ready(run.env("MCP_BROKER_SECRET", SECRET));
        Self { chaos, broker }
    }

    /// Runs every attack without a proxy.
    fn attack(&self) -> Outcomes {
        self.attack_through(self.broker.address(), |_| {})
    }

    /// Runs every attack through an address; returns the outcome of each. After each one, two callers get their
    /// answers, and a condition is checked.
    fn attack_through(&self, address: &str, mut check: impl FnMut(&str)) -> Outcomes {
        let mut outcomes = Vec::new();
        let mut executed = self.executed();
        for (at, attack) in attacks(address).into_iter().enumerate() {
            let statuses = attack.send(address);
            for caller in 0..2 {
                let text = format!("caller {caller} after {at}");
                let reply = call(address, &text);
                let content = &reply["result"]["content"][0]["text"];
                assert!(
                    content
                        .as_str()
                        .is_some_and(|content| content.contains(&text)),
                    "{text} ({}): {reply}",
                    attack.name
                );
            }
            check(attack.name);
            let before = std::mem::replace(&mut executed, self.executed());
            assert!(executed - before <= 1, "{}: executed twice", attack.name);
            let outcome = match executed > before {
                true => format!("**{statuses}**"),
                false => statuses,
            };
            outcomes.push((attack.name, outcome));
        }
        let seen = self.chaos.raw_journal("a");
        assert!(
            !seen.contains(&format!("\"{HIDDEN}\"")),
            "a hidden call was executed"
        );
        let log = self.broker.stderr();
        assert!(!log.contains("panic"), "{log}");
        outcomes
    }

    /// The number of calls of attacks that the server has executed.
    fn executed(&self) -> usize {
        let text = format!("\"{WHOLE}\"");
        self.chaos.raw_journal("a").matches(&text).count()
    }
}

/// The reply to a call through an address.
fn call(address: &str, text: &str) -> Value {
    let body = echo(text);
    let request = format!(
        "POST /meta_call HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {SECRET}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut reply = Value::Null;
    wait_until("the caller gets an answer", || {
        let response = read(harness::send(address, request.as_bytes()));
        reply = serde_json::from_slice(&response.body).unwrap_or_else(|_| json!(response.text()));
        // A caller that is asked to wait asks again.
        response.status != 429
    });
    reply
}

#[test]
fn attacks_on_ipv6_loopback_have_the_outcomes_of_ipv4() {
    let four = Target::on("127.0.0.1:0").attack();
    let six = Target::on("[::1]:0").attack();
    assert!(four[0].1 == "**200**", "a sound call is executed: {four:?}");
    assert_eq!(four, six);
}
