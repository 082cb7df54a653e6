//! `broker-gen lock` with secrets in variables, in texts of servers and in their errors.

use harness::{Bench, contains};
use serde_json::json;

#[test]
fn lock_with_a_secret_is_refused_and_with_another_value_warns() {
    let bench = Bench::new();
    let write = r#"printf '{"instructions":"Use %s","tools":[]}'"#;
    let configure = |name: &str, value: &str| {
        let command = format!("{write} \"${name}\" > now.json; exec chaos-mcp --script now.json");
        let source = json!({"command": command, "cwd": ".", "env": {name: value}});
        let node = json!({"path": "/a", "type": "node", "source": source});
        bench.write("c.json", &json!({"tree": [node]}).to_string());
    };
    configure("A_TOKEN", "hush-and-more");
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &["error[source_secret]: `/a` put the value of `A_TOKEN` into its instructions"],
    );
    assert!(!errors.contains("hush"), "{errors}");
    assert!(bench.lock_state().is_none());
    configure("A_PLACE", "${A_PLACE}");
    let locked = bench.verb_with(&["lock"], &[("A_PLACE", "Atlantis")]);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    contains(
        &locked.stderr,
        &["warning[machine_text]: `/a` put the value of `A_PLACE` into its instructions"],
    );
    // No report shows the value of a variable.
    let drifted = bench.verb_with(&["check"], &[("A_PLACE", "Shangri-La")]);
    assert_eq!(drifted.code, Some(3), "{}", drifted.stderr);
    let text = drifted.stdout + &drifted.stderr;
    assert!(!text.contains("Shangri-La"), "{text}");
    contains(
        &text,
        &["run `broker-gen lock --config c.json --source /a`"],
    );
}

#[test]
fn lock_contains_the_command_as_written_and_no_variable_value() {
    let bench = Bench::new();
    let command = json!(["chaos-mcp", "--script", "a.json", "arg-${TOKEN_A}"]);
    let env =
        json!({"API_TOKEN": "${TOKEN_B}", "OTHER_SECRET": "literal-xyzzy", "PLAIN": "plain-plugh"});
    bench.configure([("a", json!({"command": command, "env": env}))]);
    let variables = [("TOKEN_A", "value-of-a-123"), ("TOKEN_B", "value-of-b-456")];
    let output = bench.verb_with(&["lock"], &variables);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &["warning[literal_secret]", "OTHER_SECRET", "c.json:1:"],
    );
    let lock = bench.lock_text();
    for value in [
        "value-of-a-123",
        "value-of-b-456",
        "literal-xyzzy",
        "plain-plugh",
    ] {
        assert!(!lock.contains(value), "{value} is in the lock");
        assert!(
            !output.stderr.contains(value),
            "{value} is printed: {}",
            output.stderr
        );
    }
    contains(&lock, &["\"--script\"", "\"arg-${TOKEN_A}\""]);
    assert!(!output.stderr.contains("--script"), "{}", output.stderr);
    let (digest, changed) = (
        bench.lock_json()["config_digest"].clone(),
        [("TOKEN_A", "x"), ("TOKEN_B", "y")],
    );
    let output = bench.verb_with(&["lock"], &changed);
    contains(&output.stderr, &["is up to date"]);
    assert_eq!(bench.lock_json()["config_digest"], digest);
}

#[test]
fn lock_error_masks_a_secret_of_stderr() {
    let bench = Bench::new();
    let command = "echo \"bad token $T\" >&2; exit 7";
    bench.configure([("a", json!({"command": command, "env": {"T": "${TOKEN}"}}))]);
    let output = bench.verb_with(&["lock"], &[("TOKEN", "s3cret-value-789")]);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    contains(&output.stderr, &["code 7", "bad token "]);
    assert!(
        !output.stderr.contains("s3cret-value-789"),
        "{}",
        output.stderr
    );
}

#[test]
fn lock_refused_for_a_secret_does_not_print_it() {
    let bench = Bench::new();
    bench.configure([("a", json!({"env": {"API_TOKEN": "${API_TOKEN}"}}))]);
    let tool = json!({
        "name": "add",
        "description": "Adds\u{200b} two numbers, with a-very-secret-value-that-is-long now.",
        "inputSchema": {"type": "object"},
    });
    bench.one_tool("a", tool);
    let output = bench.verb_with(
        &["lock", "--all-or-nothing"],
        &[("API_TOKEN", "a-very-secret-value-that-is-long")],
    );
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    contains(&output.stderr, &["error[source_secret]"]);
    assert!(!output.stderr.contains("a-very"), "{}", output.stderr);
}
