//! Reports of drift where a secret is the same as a public name: the names of the lock are shown, and values are masked
//! all the same.

use harness::{Bench, Broker, Chaos, Run, binary, contains, node, wait_until};
use serde_json::{Value, json};

/// A secret of the source: the name of a tool, of a member, of the node and of a rule.
const SECRETS: [&str; 4] = ["slow", "text", "nodename", "input-property-removed"];
/// A secret that no name has.
const OTHER: &str = "canary-value-5f0e";

/// A text of the live server with every secret in it.
fn said() -> String {
    format!("Uses {OTHER} and {}", SECRETS.join(" and "))
}

/// The masked form of that text.
const MASKED: &str = "Uses •••• and •••• and •••• and •••• and ••••";

/// The drift of two tools.
fn drifted(generation: u64) -> Value {
    let mut tools = Chaos::tools();
    for tool in &mut tools {
        if tool["name"] == "echo" {
            let properties = tool["inputSchema"]["properties"].as_object_mut();
            properties.expect("it has arguments").remove("text");
            tool["inputSchema"]["required"] = json!([]);
            tool["inputSchema"]["additionalProperties"] = json!(false);
        }
        if tool["name"] == "slow" {
            tool["description"] = json!(said());
        }
    }
    json!({"tools": tools, "generation": generation})
}

/// A folder with a config of one source that gets the secrets, and its lock.
fn locked() -> Bench {
    let bench = Bench::new();
    let mut source = node("nodename", json!({}));
    for (name, _) in variables() {
        source["source"]["env"][name] = json!(format!("${{{name}}}"));
    }
    let config = json!({"on_text_drift": "withdraw", "types": false, "tree": [source]});
    bench.write("c.json", &config.to_string());
    let other = variables().map(|(name, _)| (name, "another-value"));
    let output = bench.verb_with(&["lock"], &other);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    bench
}

/// The variables with the secrets.
fn variables() -> [(&'static str, &'static str); 5] {
    let [tool, member, node, rule] = SECRETS;
    [
        ("A_TOKEN", tool),
        ("B_TOKEN", member),
        ("C_TOKEN", node),
        ("D_TOKEN", rule),
        ("E_TOKEN", OTHER),
    ]
}

/// Asserts that a report or a log shows the names, and no other secret.
fn shows_names(text: &str) {
    let names = ["/nodename/slow", "/nodename/echo", "input-property-removed"];
    contains(text, &names);
    assert!(
        !text.contains(OTHER) && !text.contains("Uses slow"),
        "{text}"
    );
}

#[test]
fn names_of_the_lock_are_shown_by_check_even_if_they_equal_secrets() {
    let bench = locked();
    bench.script("nodename", &drifted(1));
    for form in ["human", "json", "markdown", "github"] {
        let output = bench.verb_with(&["check", "--format", form], &variables());
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        shows_names(&output.stdout);
        let text = output.stdout.replace("&#96;", "`");
        contains(&text, &["the declared property `text` was removed"]);
    }
    let output = bench.verb_with(&["check", "--format", "json"], &variables());
    let report: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    let mut tools = report["tools"].as_array().expect("a list").iter();
    let slow = tools.find(|tool| tool["tool"] == "slow");
    assert_eq!(slow.expect("it differs")["findings"][0]["new"], MASKED);
    assert!(report.to_string().contains("/inputSchema/properties/text"));
}

#[test]
fn names_of_the_lock_are_shown_by_a_refused_start_even_if_they_equal_secrets() {
    let bench = locked();
    bench.script("nodename", &drifted(1));
    let config = bench.read("c.json");
    let refuse = config.replacen('{', r#"{"on_drift":"refuse","#, 1);
    bench.write("c.json", &refuse);
    for form in ["human", "json"] {
        let args = ["serve", "127.0.0.1:0", "--log-format", form];
        let output = bench.verb_with(&args, &variables());
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        shows_names(&output.stderr);
        contains(
            &output.stderr,
            &[MASKED, "`text` was removed", "/inputSchema/properties/text"],
        );
    }
    let output = bench.verb_with(&["doctor"], &variables());
    let names = [
        "/nodename",
        "`slow`",
        "`text` was removed",
        "[input-property-removed]",
        "/inputSchema/properties/text",
    ];
    contains(&output.stdout, &names);
    assert!(!output.stdout.contains(OTHER), "{}", output.stdout);
}

#[test]
fn names_of_the_lock_are_shown_by_a_running_broker_even_if_they_equal_secrets() {
    let bench = locked();
    for form in ["human", "json"] {
        bench.script("nodename", &json!({}));
        let args = [
            "serve",
            "127.0.0.1:0",
            "--config",
            "c.json",
            "--log-format",
            form,
        ];
        let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
        let path = std::env::var("PATH").unwrap_or_default();
        let program = binary("chaos-mcp");
        let beside = program.parent().expect("it lies in a folder").display();
        let run = run.args(args).env("PATH", format!("{beside}:{path}"));
        let run = variables()
            .iter()
            .fold(run, |run, (name, value)| run.env(name, value));
        let broker = Broker::start_ready(run);
        bench.script("nodename", &drifted(1));
        let text = || broker.stderr();
        wait_until("both tools are withdrawn", || {
            broker.source("/nodename")["withdrawn"] == 2
        });
        wait_until("the log says so", || {
            text().matches("tool withdrawn").count() == 2
        });
        let log = text();
        let lines = log.lines().filter(|line| line.contains("tool withdrawn"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        shows_names(&lines);
        contains(&lines, &["`text` was removed"]);
        // What is not about drift is masked as before.
        assert!(!log.contains(OTHER), "{log}");
    }
}
