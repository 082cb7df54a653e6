//! `lock` writes what is sound: the parts that it leaves out or keeps, what settles them, and what `verify`, `check` and
//! `serve` make of them.

use harness::{Bench, Output, contains};
use serde_json::{Value, json};

use super::bench::{names, tool};

/// A tool whose schema does not compile.
fn broken(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"n": {"type": "int"}}}})
}

/// `lock`, which must be partly done.
fn lock_partly(bench: &Bench) -> Output {
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    output
}

fn verify(bench: &Bench) -> Output {
    bench.verb(&["verify", "--offline"])
}

fn accept(bench: &Bench, args: &[&str]) -> Output {
    let base = ["accept", "--who", "A", "--left-out"];
    bench.verb(
        &base
            .into_iter()
            .chain(args.iter().copied())
            .collect::<Vec<_>>(),
    )
}

/// The lock has the same bytes after another run with the same outcome.
fn is_stable(bench: &Bench) {
    let before = bench.lock_state();
    let again = lock_partly(bench);
    contains(&again.stderr, &["c.lock.json is up to date"]);
    assert_eq!(bench.lock_state(), before);
}

#[test]
fn tool_with_an_invalid_schema_is_left_out_and_the_rest_locked() {
    let bench = Bench::with_sources(&["fine", "odd"]);
    bench.script("odd", &json!({"tools": [tool("good"), broken("int")]}));
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &["error[schema_invalid]: the tool `int` of `/odd`"],
    );
    let output = lock_partly(&bench);
    contains(
        &output.stderr,
        &[
            "/odd: 1 tool exposed, 0 hidden, 1 left out",
            "1 part left out (by check: schemas 1)",
            "`int` of `/odd`: schema_refused: ",
            "\"!int\"",
            "broker-gen accept --config c.json --source /odd --tool int --left-out",
        ],
    );
    let lock = bench.lock_json();
    assert_eq!(lock["lock_version"], 3);
    let odd = &lock["sources"][1];
    assert_eq!(names(&odd["exposed"], "upstream_name"), ["good"]);
    let record = &odd["left_out"][0];
    assert_eq!(
        (&record["name"], &record["code"], &record["place"]),
        (
            &json!("int"),
            &json!("schema_refused"),
            &json!("/inputSchema/properties/n/type")
        )
    );
    assert!(lock["sources"][0].get("left_out").is_none(), "{lock}");
    is_stable(&bench);

    // The config line of the table settles it, and the lock has its earlier format again.
    bench.configure([
        ("fine", json!({})),
        ("odd", json!({"tool_filter": ["!int"]})),
    ]);
    bench.lock();
    assert_eq!(bench.lock_json()["lock_version"], 2);
}

#[test]
fn source_that_does_not_start_keeps_its_locked_state() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.one_tool("a", tool("x"));
    bench.one_tool("b", tool("y"));
    bench.lock();
    let whole = bench.lock_text();
    bench.script(
        "b",
        &json!({"start_exit": 3, "stderr_lines": ["no network"]}),
    );
    let output = lock_partly(&bench);
    contains(
        &output.stderr,
        &[
            "warning[source_failed]: `/b` failed after",
            "no network",
            "1 source kept as it was locked",
            "the source `/b`, kept: not_started",
            "broker-gen doctor --config c.json --source /b",
        ],
    );
    let text = bench.lock_text();
    assert!(!text.contains("no network"), "{text}");
    let lock = bench.lock_json();
    assert_eq!(lock["sources"][1]["kept"], "not_started");
    assert_eq!(
        names(&lock["sources"][1]["exposed"], "upstream_name"),
        ["y"]
    );
    is_stable(&bench);

    let refused = verify(&bench);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["error[left_out_unaccepted]: the source `/b` is kept as it was locked"],
    );
    let generated = bench.verb(&["generate", "--out", "out"]);
    assert_eq!(generated.code, Some(5), "{}", generated.stderr);
    let same = bench.verb(&["check"]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    contains(&same.stderr, &["/b: not started, as when it was locked"]);

    bench.one_tool("b", tool("y"));
    let check = bench.verb(&["check"]);
    assert_eq!(check.code, Some(3), "{}", check.stderr);
    contains(&check.stdout, &["left-out-changed", "starts now"]);
    bench.lock();
    assert_eq!(bench.lock_text(), whole);
}

#[test]
fn source_that_does_not_start_with_another_config_is_left_out() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.lock();
    bench.configure([("a", json!({})), ("b", json!({"tool_filter": ["*", "!z"]}))]);
    bench.script("b", &json!({"start_exit": 3}));
    lock_partly(&bench);
    let lock = bench.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/a"]);
    let left_out = &lock["left_out"][0];
    assert_eq!(
        (&left_out["path"], &left_out["code"]),
        (&json!("/b"), &json!("not_started"))
    );
    is_stable(&bench);
    assert_eq!(verify(&bench).code, Some(5));
    assert_eq!(bench.verb(&["check"]).code, Some(0));

    bench.script("b", &json!({"tools": [tool("y")]}));
    let check = bench.verb(&["check"]);
    assert_eq!(check.code, Some(3), "{}", check.stderr);
    contains(&check.stdout, &["the source `/b`", "is sound now"]);
}

#[test]
fn accepted_part_fails_neither_lock_nor_verify_nor_build() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.script(
        "a",
        &json!({"tools": [tool("good"), broken("int"), broken("other")]}),
    );
    bench.script("b", &json!({"start_exit": 3}));
    lock_partly(&bench);
    let unknown = accept(&bench, &["--source", "/a", "--tool", "good"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    assert_eq!(
        accept(&bench, &["--source", "/a", "--tool", "int"]).code,
        Some(0)
    );
    assert_eq!(lock_partly(&bench).code, Some(8));
    assert_eq!(accept(&bench, &["--source", "/a"]).code, Some(0));
    assert_eq!(accept(&bench, &["--source", "/b"]).code, Some(0));
    let audits = bench.read("c.audits.toml");
    assert_eq!(audits.matches("[[left_out]]").count(), 3, "{audits}");
    contains(
        &audits,
        &["reason = \"not_started\"", "tool = \"int\"", "who = \"A\""],
    );
    let output = bench.lock();
    contains(&output.stderr, &["3 parts left out", "3 accepted"]);
    assert_eq!(verify(&bench).code, Some(0), "{}", verify(&bench).stderr);
    assert_eq!(bench.verb(&["generate", "--out", "out"]).code, Some(0));

    // Other bytes need another decision.
    let mut changed = broken("int");
    changed["description"] = "Another.".into();
    bench.script(
        "a",
        &json!({"tools": [tool("good"), changed, broken("other")]}),
    );
    let check = bench.verb(&["check"]);
    assert_eq!(check.code, Some(3), "{}", check.stderr);
    contains(&check.stdout, &["`int`", "has changed"]);
    let output = lock_partly(&bench);
    contains(&output.stderr, &["`int` of `/a`"]);
    assert!(!output.stderr.contains("`other` of"), "{}", output.stderr);
    assert_eq!(verify(&bench).code, Some(5));
}

#[test]
fn disabled_source_is_not_started_and_not_in_the_lock() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.lock();
    bench.configure([("a", json!({})), ("b", json!({"disabled": true}))]);
    bench.script("b", &json!({"start_exit": 3}));
    let stale = verify(&bench);
    assert_eq!(stale.code, Some(5), "{}", stale.stderr);
    contains(
        &stale.stderr,
        &["the lock has the source `/b`, which is disabled"],
    );
    bench.lock();
    let lock = bench.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/a"]);
    assert_eq!(lock["lock_version"], 2);
    assert_eq!(verify(&bench).code, Some(0));
    let tree = bench.verb(&["tree"]);
    assert!(!tree.stdout.contains("/b"), "{}", tree.stdout);
}

#[test]
fn unstable_tool_is_left_out_and_two_runs_agree() {
    let write = r#"printf '{"tools":[{"name":"t","description":"launch %s","inputSchema":{}},{"name":"still","inputSchema":{}}]}'"#;
    let command = format!(
        "n=$(wc -l < launches); echo x >> launches; {write} $n > now.json; exec chaos-mcp --script now.json"
    );
    let bench = Bench::new();
    bench.configure([
        ("a", json!({"command": command, "cwd": "."})),
        ("b", json!({})),
    ]);
    bench.write("launches", "");
    let output = lock_partly(&bench);
    contains(
        &output.stderr,
        &["`t` of `/a`: unstable: ", "Name them in `volatile` of `/a`"],
    );
    let lock = bench.lock_json();
    assert_eq!(
        names(&lock["sources"][0]["exposed"], "upstream_name"),
        ["still"]
    );
    assert_eq!(names(&lock["sources"][0]["left_out"], "code"), ["unstable"]);
    is_stable(&bench);
    // One launch does not show that it is stable.
    assert_eq!(bench.verb(&["check"]).code, Some(0));
}

#[test]
fn source_that_is_unstable_as_a_whole_is_left_out_alone() {
    let write = r#"printf '{"server_info":{"name":"s","version":"launch %s"},"tools":[{"name":"t","inputSchema":{}}]}'"#;
    let command = format!(
        "n=$(wc -l < launches); echo x >> launches; {write} $n > now.json; exec chaos-mcp --script now.json"
    );
    let bench = Bench::new();
    bench.configure([
        ("a", json!({})),
        ("b", json!({"command": command, "cwd": "."})),
        ("d", json!({})),
    ]);
    bench.write("launches", "");
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &[
            "error[source_unstable]: two launches of `/b` gave different answers at `/server_info/version`",
        ],
    );
    let output = lock_partly(&bench);
    contains(
        &output.stderr,
        &[
            "two launches of `/b` gave different answers at `/server_info/version`",
            "1 part left out (by check: start 1)",
            "the source `/b`: unstable: Two launches gave different values\n    Make the server return the same values at every start",
            "broker-gen accept --config c.json --source /b --left-out",
        ],
    );
    let lock = bench.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/a", "/d"]);
    assert_eq!(names(&lock["left_out"], "path"), ["/b"]);
    assert_eq!(names(&lock["left_out"], "code"), ["unstable"]);
    is_stable(&bench);
}

#[test]
fn of_many_left_out_tools_a_thousand_are_recorded_and_the_rest_counted() {
    let many = |from: usize, to: usize| (from..to).map(|at| broken(&format!("odd_{at:04}")));
    let bench = Bench::with_sources(&["a", "b"]);
    let script = |tools: Vec<Value>| bench.script("a", &json!({"tools": tools}));
    script([tool("good")].into_iter().chain(many(0, 1_203)).collect());
    let output = lock_partly(&bench);
    contains(
        &output.stderr,
        &["/a: 1 tool exposed, 0 hidden, 1203 left out"],
    );
    let lock = bench.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/a", "/b"]);
    let a = &lock["sources"][0];
    assert_eq!(names(&a["exposed"], "upstream_name"), ["good"]);
    assert_eq!(names(&a["left_out"], "name").len(), 1_000);
    assert_eq!(a["more_left_out"]["count"], 203);
    let check = bench.verb(&["check"]);
    assert_eq!(check.code, Some(0), "{}{}", check.stdout, check.stderr);
    is_stable(&bench);

    // Another order of the server changes nothing.
    let mut reversed: Vec<Value> = many(0, 1_203).chain([tool("good")]).collect();
    reversed.reverse();
    script(reversed);
    is_stable(&bench);
    assert_eq!(bench.verb(&["check"]).code, Some(0));

    // A change of a part that is only counted is noticed as well.
    let mut changed = broken("odd_1202");
    changed["description"] = "Another.".into();
    let last = many(0, 1_202).chain([changed, tool("good")]);
    script(last.collect());
    let check = bench.verb(&["check"]);
    assert_eq!(check.code, Some(3), "{}{}", check.stdout, check.stderr);
    contains(&check.stdout, &["left-out-changed"]);

    // The decision on them holds for their count and digests.
    lock_partly(&bench);
    assert_eq!(accept(&bench, &["--source", "/a"]).code, Some(0));
    bench.lock();
    assert_eq!(verify(&bench).code, Some(0));
}

#[test]
fn clash_of_names_leaves_out_every_side_in_any_order() {
    let locked = |sources: [(&str, Value); 2]| {
        let bench = Bench::new();
        let nodes = sources.map(|(path, tools)| {
            let name = path.trim_start_matches('/').replace('/', "_");
            bench.script(&name, &json!({"tools": tools}));
            let mut node = harness::node(&name, json!({}));
            node["path"] = path.into();
            node
        });
        bench.write("c.json", &json!({"tree": nodes}).to_string());
        let output = lock_partly(&bench);
        contains(&output.stderr, &["path_clash", "name, `a-b-c`"]);
        is_stable(&bench);
        bench.lock_json()
    };
    let (one, other) = (
        ("/a", json!([tool("b-c"), tool("x")])),
        ("/a-b", json!([tool("c"), tool("y")])),
    );
    let lock = locked([one.clone(), other.clone()]);
    for (source, exposed, left_out) in [(0, "x", "b-c"), (1, "y", "c")] {
        let source = &lock["sources"][source];
        assert_eq!(names(&source["exposed"], "upstream_name"), [exposed]);
        assert_eq!(names(&source["left_out"], "name"), [left_out]);
    }
    assert_eq!(locked([other, one])["sources"], lock["sources"]);
}

#[test]
fn lint_error_and_secret_leave_out_only_their_tool() {
    let bench = Bench::new();
    let env = json!({"env": {"API_TOKEN": "canary-0f1e2d3c4b5a"}});
    bench.configure([("a", env), ("b", json!({}))]);
    let mut hidden = tool("hidden");
    hidden["description"] = "Reads.\u{202e}".into();
    let mut secret = tool("secret");
    secret["description"] = "With canary-0f1e2d3c4b5a here.".into();
    bench.script("a", &json!({"tools": [tool("good"), hidden, secret]}));
    let output = lock_partly(&bench);
    assert!(!output.stderr.contains("canary"), "{}", output.stderr);
    let text = bench.lock_text();
    assert!(!text.contains("canary-0f1e2d3c4b5a"), "{text}");
    let a = &bench.lock_json()["sources"][0];
    assert_eq!(names(&a["exposed"], "upstream_name"), ["good"]);
    assert_eq!(
        names(&a["left_out"], "code"),
        ["lint_refused", "secret_listed"]
    );
    is_stable(&bench);
}

#[test]
fn instructions_with_a_lint_error_leave_out_their_source() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.script(
        "a",
        &json!({"tools": [tool("x")], "instructions": "Do\u{202e} this."}),
    );
    lock_partly(&bench);
    let lock = bench.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/b"]);
    assert_eq!(names(&lock["left_out"], "code"), ["lint_refused"]);
    is_stable(&bench);
}

#[test]
fn keys_and_rules_that_name_only_left_out_parts_are_warnings() {
    let bench = Bench::new();
    let a = harness::node(
        "a",
        json!({"path_aliases": {"int": "number"}, "tool_overrides": {"int": {"summary": "s"}}, "tool_filter": ["good", "int"]}),
    );
    let access = json!({
        "groups": ["g"], "local": ["g"],
        "rules": [
            {"allow": ["/a/good"], "to": ["g"]},
            {"deny": ["/a/number"], "to": ["g"]},
            {"deny": ["/b/**"], "to": ["g"]},
        ],
    });
    let config = json!({"tree": [a, harness::node("b", json!({}))], "access": access});
    bench.write("c.json", &config.to_string());
    bench.script("a", &json!({"tools": [tool("good"), broken("int")]}));
    bench.script("b", &json!({"start_exit": 3}));
    let output = lock_partly(&bench);
    contains(
        &output.stderr,
        &[
            "warning[override_unknown]: `path_aliases` names `int` of `/a`, which the lock leaves out",
            "warning[access_no_match]: the rule matches only parts that the lock leaves out",
        ],
    );
    // The denied source is not allowed when it returns.
    bench.script("b", &json!({"tools": [tool("y")]}));
    lock_partly(&bench);
    let shown = bench.verb(&["access"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    // An error of `access` itself refuses the lock.
    let mut config = config;
    config["access"]["rules"][0]["allow"] = json!(["/a/nothing"]);
    bench.write("c.json", &config.to_string());
    let refused = bench.verb(&["lock"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let message = "the rule matches no tool of the lock: `/a/nothing`";
    contains(&refused.stderr, &[message]);
}

#[test]
fn lock_of_one_source_begins_a_lock() {
    let bench = Bench::with_sources(&["a", "b"]);
    let first = bench.verb(&["lock", "--source", "/a"]);
    assert_eq!(first.code, Some(8), "{}", first.stderr);
    contains(
        &first.stderr,
        &[
            "the source `/b`: not_locked",
            "broker-gen lock --config c.json --source /b",
        ],
    );
    assert!(bench.journal("b", "list").is_empty(), "`/b` was started");
    let lock = bench.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/a"]);
    assert_eq!(names(&lock["left_out"], "code"), ["not_locked"]);
    assert_eq!(verify(&bench).code, Some(5));
    assert_eq!(bench.verb(&["check"]).code, Some(0));
    let second = bench.verb(&["lock", "--source", "/b"]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    let by_parts = bench.lock_text();
    bench.lock();
    assert_eq!(bench.lock_text(), by_parts);
}

#[test]
fn eight_servers_of_which_two_are_broken_give_a_client_six() {
    let bench = Bench::new();
    let sources: Vec<String> = (1..=8).map(|at| format!("s{at}")).collect();
    bench.configure(sources.iter().map(|name| (name.as_str(), json!({}))));
    for name in &sources {
        bench.one_tool(name, tool("t"));
    }
    bench.script("s3", &json!({"start_exit": 3}));
    bench.script("s6", &json!({"list_error": true}));
    lock_partly(&bench);
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "meta_tree", "arguments": {"depth": 2}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let input = format!("{initialize}\n{ready}\n{call}\n");
    let served = bench.run_with_input(&["serve", "stdio", "--config", "c.json"], &input);
    for (name, is_served) in sources
        .iter()
        .zip([true, true, false, true, true, false, true, true])
    {
        let path = format!("/{name}/t");
        assert_eq!(
            served.stdout.contains(&path),
            is_served,
            "{path}: {}{}",
            served.stdout,
            served.stderr
        );
    }
    contains(
        &served.stderr,
        &[
            "left_out_unaccepted",
            "the source `/s3` is left out of the lock",
        ],
    );
}
