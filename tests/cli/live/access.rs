//! `lock` and `check` with rules of access and with hints that claim more safety.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::tool;

fn write(bench: &Bench, access: Option<&Value>, overrides: &Value) {
    bench.configure([("a", json!({"tool_overrides": overrides}))]);
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("JSON");
    if let Some(access) = access {
        config["access"] = access.clone();
    }
    bench.write("c.json", &config.to_string());
}

#[test]
fn lock_and_check_name_who_gains_a_new_tool() {
    let bench = Bench::new();
    let access =
        json!({"groups": ["reader"], "rules": [{"allow": ["/a/get_*"], "to": ["reader"]}]});
    write(&bench, Some(&access), &json!({}));
    bench.script("a", &json!({"tools": [tool("get_a")]}));
    let output = bench.lock();
    assert!(!output.stderr.contains("gains"), "{}", output.stderr);
    bench.script("a", &json!({"tools": [tool("get_a"), tool("get_b")]}));

    // A new tool is not exposed yet, so a check succeeds.
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["access"][0]["path"]),
        (Some(0), &json!("/a/get_b"))
    );
    let gains = "group `reader` gains /a/get_b by access.rules[0]";
    let text = bench.verb(&["check"]).stdout;
    contains(
        &text,
        &[
            "access: who gains or loses what, if what the servers offer now is locked\n",
            gains,
        ],
    );

    let text = bench.verb(&["lock", "--dry-run"]).stdout;
    contains(&text, &[gains, "access-widened"]);
    contains(&bench.lock().stderr, &[&format!("access: {gains}")]);
    assert!(!bench.lock().stderr.contains("gains"));
}

#[test]
fn lock_needs_an_entry_for_a_hint_that_claims_more_safety() {
    let bench = Bench::new();
    write(
        &bench,
        None,
        &json!({"x": {"annotations": {"readOnlyHint": true}}}),
    );
    bench.script("a", &json!({"tools": [tool("x")]}));
    let message = bench.lock_fails(5);
    contains(
        &message,
        &["hint_unaudited", "`/a/x`", "`readOnlyHint` is true"],
    );
    let command = message.split('`');
    let mut command = command.filter_map(|part| part.strip_prefix("broker-gen accept "));
    let command = command.next_back().expect("it names the command");
    let args = ["accept", "--who", "A"].into_iter();
    bench.fine(&args.chain(command.split(' ')).collect::<Vec<_>>());
    bench.lock();
    assert_eq!(bench.check().0, Some(0));

    // The server changes the tool: the lock of the new definition needs another entry.
    let mut changed = tool("x");
    changed["description"] = "Does something else.".into();
    bench.script("a", &json!({"tools": [changed]}));
    contains(
        &bench.lock_fails(5),
        &["the tool has changed since the audit of A"],
    );
}
