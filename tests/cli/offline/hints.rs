//! Hints of the config that claim more safety than the server's: `verify`, `accept --hints` and `access`.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};

const VERIFY: [&str; 3] = ["verify", "--config", "c.json"];

/// A config that sets these hints for `x`, and its lock, in which the server gives these ones.
fn bench(set: &Value, server: &Value) -> Bench {
    let bench = Bench::new();
    write(&bench, set, server);
    bench
}

fn write(bench: &Bench, set: &Value, server: &Value) {
    let mut x = tool("x");
    x["annotations"] = server.clone();
    let members = json!({"tool_overrides": {"x": {"annotations": set}}});
    write_lock(bench, "c", &config(members), &[x, tool("y")]);
}

fn refused(bench: &Bench) -> String {
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(5), "{}{}", output.stdout, output.stderr);
    contains(&output.stderr, &["error[hint_unaudited]"]);
    output.stderr
}

/// Runs the command that a message names.
fn run_command_of(bench: &Bench, message: &str) {
    let command = message.split('`');
    let mut command = command.filter_map(|part| part.strip_prefix("broker-gen accept "));
    let command = command.next_back().expect("it names the command");
    let args = ["accept", "--who", "A"].into_iter();
    bench.fine(&args.chain(command.split(' ')).collect::<Vec<_>>());
}

#[test]
fn hint_that_claims_more_safety_needs_an_entry() {
    let set = json!({"readOnlyHint": true, "openWorldHint": false, "destructiveHint": false});
    let bench = bench(&set, &json!({"openWorldHint": true}));
    let message = refused(&bench);
    contains(
        &message,
        &[
            "`/a/x`",
            "`readOnlyHint` is true and the server does not say it, which is false",
            "`openWorldHint` is false and the server says true",
            "it was never audited",
        ],
    );
    // For a read-only tool it has no meaning.
    assert!(!message.contains("destructiveHint"), "{message}");
    run_command_of(&bench, &message);
    contains(
        &bench.read("c.audits.toml"),
        &["values = { readOnlyHint = true, destructiveHint = false, openWorldHint = false }\n"],
    );
    bench.fine(&VERIFY);
    let again = bench.run(&[
        "accept", "--config", "c.json", "--source", "/a", "--tool", "x", "--hints", "--who", "A",
    ]);
    contains(&again.stderr, &["nothing to do"]);

    // Other hints of the config.
    write(
        &bench,
        &json!({"readOnlyHint": true, "openWorldHint": false}),
        &json!({"openWorldHint": true}),
    );
    contains(
        &refused(&bench),
        &["the hints of the config have changed since the audit of A on 2"],
    );
    // Another definition of the tool.
    write(&bench, &set, &json!({"openWorldHint": true, "title": "X"}));
    let message = refused(&bench);
    contains(
        &message,
        &["the tool has changed since the audit of A on 2"],
    );
    run_command_of(&bench, &message);
    bench.fine(&VERIFY);
}

#[test]
fn hint_that_claims_no_more_safety_needs_no_entry() {
    for (set, server) in [
        (
            json!({"readOnlyHint": false, "destructiveHint": true}),
            json!({"readOnlyHint": true}),
        ),
        (json!({"readOnlyHint": true}), json!({"readOnlyHint": true})),
        (
            json!({"destructiveHint": false, "idempotentHint": true}),
            json!({"readOnlyHint": true}),
        ),
        (json!({}), json!({})),
    ] {
        let output = bench(&set, &server).run(&VERIFY);
        assert_eq!(output.code, Some(0), "{set}: {}", output.stderr);
    }
    for set in [
        json!({"destructiveHint": false}),
        json!({"idempotentHint": true}),
    ] {
        contains(&refused(&bench(&set, &json!({}))), &["`/a/x`"]);
    }
}

#[test]
fn build_commands_refuse_hints_without_an_entry() {
    let bench = bench(&json!({"readOnlyHint": true}), &json!({}));
    for args in [
        &["generate", "--config", "c.json", "--out", "out"][..],
        &["check", "--config", "c.json"],
        &["serve", "stdio", "--config", "c.json"],
    ] {
        let output = bench.run(args);
        assert_ne!(output.code, Some(0), "{args:?}");
        contains(
            &output.stderr,
            &[
                "hint_unaudited",
                "accept --config c.json --source /a --tool x --hints --digest sha256/1:",
            ],
        );
    }
}

#[test]
fn access_shows_whether_hints_are_audited() {
    let bench = bench(
        &json!({"readOnlyHint": true, "idempotentHint": false}),
        &json!({}),
    );
    let shown = || bench.fine(&["access", "--config", "c.json"]);
    contains(
        &shown(),
        &[
            "readOnlyHint true (config, not audited)",
            "idempotentHint false (config)",
        ],
    );
    run_command_of(&bench, &refused(&bench));
    contains(&shown(), &["readOnlyHint true (config, audited)"]);
    let json: Value =
        serde_json::from_str(&bench.fine(&["access", "--config", "c.json", "--json"]))
            .expect("JSON");
    let hints = &json["tools"][0]["hints"];
    assert_eq!(
        hints["readOnlyHint"],
        json!({"value": true, "from": "config", "audited": true})
    );
    assert_eq!(
        hints["idempotentHint"],
        json!({"value": false, "from": "config"})
    );
}

#[test]
fn entry_with_an_unknown_hint_or_a_wrong_day_is_refused() {
    let bench = bench(&json!({"readOnlyHint": true}), &json!({}));
    run_command_of(&bench, &refused(&bench));
    let good = bench.read("c.audits.toml");
    let day = good
        .lines()
        .find(|line| line.starts_with("date"))
        .expect("a date");
    for (bad, code) in [
        (
            good.replace("readOnlyHint", "readonlyHint"),
            "audits_unknown_key",
        ),
        (good.replace(day, "date = \"2026-02-30\""), "audits_value"),
    ] {
        bench.write("c.audits.toml", &bad);
        for args in [
            &VERIFY[..],
            &["generate", "--config", "c.json", "--out", "out"],
        ] {
            let output = bench.run(args);
            assert_eq!(output.code, Some(2), "{}", output.stderr);
            assert_eq!(output.stderr.matches(code).count(), 1, "{}", output.stderr);
        }
    }
}

#[test]
fn hints_of_a_tool_with_control_characters_are_shown_safely() {
    let name = "x\n\u{1b}[31m\u{202e}";
    let bench = Bench::new();
    let members = json!({
        "path_aliases": {name: "safe"},
        "tool_overrides": {name: {"annotations": {"readOnlyHint": true}}},
    });
    write_lock(&bench, "c", &config(members), &[tool(name)]);
    let message = refused(&bench);
    assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message}");
    contains(&message, &["--tool safe --hints"]);
    run_command_of(&bench, &message);
    bench.fine(&VERIFY);
}
