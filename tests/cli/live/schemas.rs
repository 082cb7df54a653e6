//! Schemas that `lock` refuses, and unusual ones that it accepts.

use harness::{Bench, contains, json_text};
use serde_json::{Value, json};

use super::bench::names;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({"items": inner}))
}

/// Hostile schemas: the name of the tool, the schema, the code of its refusal, and the place.
fn hostile() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    vec![
        (
            "ref_remote",
            json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}),
            "schema_ref",
            "/inputSchema/properties/a",
        ),
        (
            "ref_file",
            json!({"$ref": "file:///etc/passwd"}),
            "schema_ref",
            "/inputSchema",
        ),
        (
            "ref_nothing",
            json!({"$ref": "#/$defs/none"}),
            "schema_ref",
            "/inputSchema",
        ),
        (
            "cycle",
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            "schema_cycle",
            "/inputSchema",
        ),
        ("deep", nested(65), "schema_limit", "/inputSchema/items"),
        (
            "many",
            json!({"anyOf": vec![json!({}); 10_001]}),
            "schema_limit",
            "/inputSchema/anyOf",
        ),
        (
            "large",
            json!({"description": "x".repeat(300 << 10)}),
            "schema_limit",
            "/inputSchema",
        ),
        (
            "pattern",
            json!({"properties": {"p": {"pattern": "("}}}),
            "schema_pattern",
            "/inputSchema/properties/p",
        ),
        (
            "dialect",
            json!({"$schema": "https://example.com/mine"}),
            "schema_dialect",
            "/inputSchema/$schema",
        ),
        (
            "no_schema_at_all",
            json!({"type": "objekt"}),
            "schema_invalid",
            "/inputSchema/type",
        ),
    ]
}

#[test]
fn schema_that_is_hostile_is_refused_with_source_and_tool() {
    let bench = Bench::with_sources(&["a"]);
    let rows = hostile();
    let tools: Vec<_> = rows
        .iter()
        .map(|(name, schema, ..)| json!({"name": name, "inputSchema": schema}))
        .collect();
    let mut output =
        json!({"name": "output", "inputSchema": {}, "outputSchema": {"$ref": "other.json"}});
    output["description"] = "Only its answer is hostile.".into();
    let tools = [tools, vec![output]].concat();
    bench.script("a", &json!({"tools": tools}));
    let errors = bench.lock_fails(4);
    for (name, _, code, place) in &rows {
        let line = errors
            .lines()
            .find(|line| line.contains(&format!("the tool `{name}` of `/a` is refused")));
        let line = line.unwrap_or_else(|| panic!("{name}: {errors}"));
        assert!(line.starts_with(&format!("error[{code}]: ")), "{line}");
        assert!(line.contains(&format!(", at {place}")), "{line}");
        contains(
            &errors,
            &[&format!("add `\"!{name}\"` to the `tool_filter` of `/a`")],
        );
    }
    contains(
        &errors,
        &[
            "error[schema_ref]: the tool `output` of `/a` is refused",
            "at /outputSchema",
        ],
    );
    assert_eq!(errors.matches("error[").count(), rows.len() + 1, "{errors}");
}

#[test]
fn schema_of_a_hidden_tool_is_not_checked() {
    let bench = Bench::new();
    bench.configure([("a", json!({"tool_filter": ["good"]}))]);
    let rows = hostile();
    let tools = rows
        .iter()
        .map(|(name, schema, ..)| json!({"name": name, "inputSchema": schema}));
    let tools: Vec<_> = tools
        .chain([json!({"name": "good", "inputSchema": {"type": "object"}})])
        .collect();
    bench.script("a", &json!({"tools": tools}));
    bench.lock();
    let lock = bench.lock_json();
    assert_eq!(
        names(&lock["sources"][0]["exposed"], "upstream_name"),
        ["good"]
    );
    assert_eq!(
        names(&lock["sources"][0]["hidden"], "name").len(),
        rows.len()
    );
    assert!(
        !bench.lock_text().contains("passwd"),
        "of a hidden tool only name and digest are kept"
    );
    assert_eq!(bench.check().0, Some(0));
}

#[test]
fn schema_that_is_odd_is_locked_unchanged() {
    let bench = Bench::with_sources(&["a"]);
    let schemas = [
        ("b_empty", Some(json!({}))),
        ("c_array", Some(json!({"type": "array"}))),
        (
            "d_recursive",
            Some(json!({"type": "object", "properties": {"child": {"$ref": "#"}}})),
        ),
        ("e_deep", Some(nested(60))),
        (
            "f_slow_pattern",
            Some(json!({"properties": {"p": {"pattern": "(a+)+$"}, "q": {"pattern": "^(?=a)"}}})),
        ),
        (
            "g_draft_4",
            Some(
                json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"n": {"maximum": 3, "exclusiveMaximum": true}}}),
            ),
        ),
        (
            "h_formats",
            Some(
                json!({"properties": {"n": {"format": "uint"}, "d": {"format": "date-time", "default": "never"}}}),
            ),
        ),
        ("i_many", Some(json!({"anyOf": vec![json!({}); 9_000]}))),
        ("j_missing", None),
    ];
    let tools: Vec<_> = schemas
        .iter()
        .map(|(name, schema)| match schema {
            Some(schema) => json!({"name": name, "inputSchema": schema}),
            None => json!({"name": name}),
        })
        .collect();
    bench.script("a", &json!({"tools": tools}));
    bench.lock();
    let lock = bench.lock_json();
    for (index, (name, schema)) in schemas.iter().enumerate() {
        let raw = &lock["sources"][0]["exposed"][index]["raw"];
        assert_eq!(
            (&raw["name"], raw.get("inputSchema")),
            (&json!(name), schema.as_ref())
        );
    }
    assert_eq!(bench.check().0, Some(0));
}

#[test]
fn schema_number_is_exact_or_refused() {
    for number in ["1e10001", "-1E-10001", &"7".repeat(1001)] {
        let bench = Bench::with_sources(&["a"]);
        bench.write("a.json", &format!(r#"{{"tools":[{{"name":"wide","inputSchema":{{"properties":{{"n":{{"default":{number}}}}}}}}}]}}"#));
        let errors = bench.lock_fails(4);
        contains(
            &errors,
            &[
                "error[source_failed]",
                "`wide` of `/a` is left out",
                &format!("the number `{}`", &number[..number.len().min(40)]),
            ],
        );
    }
    let bench = Bench::with_sources(&["a"]);
    let exact = r#"{"multipleOf":1e-400,"exclusiveMaximum":1180591620717411303424,"const":9223372036854775807,"default":18446744073709551615,"minimum":-9223372036854775808,"maximum":1e300,"x":0.1}"#;
    bench.write(
        "a.json",
        &format!(
            r#"{{"tools":[{{"name":"wide","inputSchema":{{"properties":{{"n":{exact}}}}}}}]}}"#
        ),
    );
    bench.lock();
    let text = bench.lock_text();
    let lock = broker_model::json::parse(&text).expect("JSON");
    let locked = &lock["sources"][0]["exposed"][0]["raw"]["inputSchema"]["properties"]["n"];
    assert_eq!(locked, &broker_model::json::parse(exact).expect("JSON"));
    contains(&text, &["1180591620717411303424", "1e-400", "\"sha256/2:"]);
    contains(
        &bench.lock_text(),
        &["9223372036854775807", "18446744073709551615"],
    );
}

#[test]
fn tool_that_violates_the_protocol_is_left_out_alone() {
    for (odd, sound) in [
        (r#"{"name":"a"},{"name":"a","title":"A"}"#, &["b"][..]),
        (r#"{"name":"a","name":"c"}"#, &["b"]),
        (r#"{"title":"x"}"#, &["b"]),
        (r#"{"name":"a","description":7}"#, &["b"]),
        (r#"{"name":"a","description":null}"#, &["a", "b"]),
        (r#"{"name":"a"},{"name":"a"}"#, &["a", "b"]),
    ] {
        let bench = Bench::with_sources(&["a"]);
        bench.write("a.json", &format!(r#"{{"tools":[{odd},{{"name":"b"}}]}}"#));
        bench.verb(&["lock", "--once"]);
        let lock = bench.lock_json();
        let exposed = lock["sources"][0]["exposed"].as_array().expect("a list");
        let names: Vec<_> = exposed.iter().map(|tool| &tool["upstream_name"]).collect();
        assert_eq!(names, sound, "{odd}");
    }
}

/// The configured source `odd` with these members, locked beside `fine`.
fn bench_of_odd(members: Value) -> Bench {
    let bench = Bench::with_sources(&["fine", "odd"]);
    bench.configure([("fine", json!({})), ("odd", members)]);
    bench.script("odd", &json!({"tools": found_in_servers()}));
    bench
}

#[test]
fn invalid_schema_is_served_as_it_is_once_a_person_accepts_it() {
    let bench = bench_of_odd(json!({"schema": "as_is"}));
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "5 tools served unvalidated",
            "`type_int` of `/odd`",
            "unvalidated",
        ],
    );
    let lock = bench.lock_json();
    let odd = &lock["sources"][1];
    assert_eq!(lock["lock_version"], 3);
    assert_eq!(odd["exposed"].as_array().map(Vec::len), Some(10));
    let marked = odd["exposed"].as_array().into_iter().flatten();
    let marked = marked.filter(|tool| tool["unvalidated"] == true).count();
    assert_eq!(marked, 5);
    let text = bench.lock_text();
    assert_eq!(bench.verb(&["lock"]).code, Some(8));
    assert_eq!(bench.lock_text(), text);

    let refused = bench.verb(&["verify"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &[
            "error[left_out_unaccepted]: `type_int` of `/odd` is served unvalidated",
            "--source /odd --tool type_int --left-out",
        ],
    );
    let accepted = bench.verb(&["accept", "--who", "A", "--left-out", "--source", "/odd"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    bench.lock();
    assert_eq!(bench.lock_text(), text);
    assert_eq!(bench.verb(&["verify"]).code, Some(0));
    assert_eq!(bench.verb(&["check"]).code, Some(0));
    contains(
        &bench.fine(&["tree", "--config", "c.json"]),
        &["`type_int` of `/odd` is served unvalidated"],
    );

    // The part that is valid is enforced, and any object is needed.
    let call = |id: u64, name: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let lines = [
        initialize,
        ready,
        call(2, "meta_desc", json!({"path": "/odd/type_int"})),
        call(
            3,
            "meta_call",
            json!({"path": "/odd/req_bool", "args": {"q": 7}}),
        ),
        call(
            4,
            "meta_call",
            json!({"path": "/odd/type_int", "args": {"n": "any"}}),
        ),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let served = bench.run_with_input(&["serve", "stdio", "--config", "c.json"], &input);
    let reply = |id: u64| {
        let replies = served.stdout.lines();
        let mut replies = replies.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let reply = replies.find(|reply| reply["id"] == id);
        reply.unwrap_or_else(|| panic!("{}{}", served.stdout, served.stderr))["result"].clone()
    };
    assert_eq!(json_text(&reply(2))["unvalidated"], true);
    assert_eq!(reply(3)["isError"], true);
    contains(&reply(3).to_string(), &["args_invalid", "/q", "string"]);
    assert_ne!(reply(4)["isError"], true, "{}", reply(4));
}

#[test]
fn only_the_named_tool_is_served_as_it_is_and_none_over_a_bound() {
    let members = json!({"tool_overrides": {
        "type_int": {"schema": "as_is"}, "good": {"schema": "as_is"}, "deep": {"schema": "as_is"},
    }});
    let bench = bench_of_odd(members);
    let mut tools = found_in_servers();
    let deep = json!({"name": "deep", "inputSchema": nested(65)});
    tools.as_array_mut().expect("a list").push(deep);
    bench.script("odd", &json!({"tools": tools}));
    assert_eq!(bench.verb(&["lock"]).code, Some(8));
    let lock = bench.lock_json();
    let odd = &lock["sources"][1];
    let exposed = odd["exposed"].as_array().into_iter().flatten();
    let unvalidated: Vec<_> = exposed
        .filter(|tool| tool["unvalidated"] == true)
        .map(|tool| tool["upstream_name"].clone())
        .collect();
    assert_eq!(unvalidated, ["type_int"]);
    let mut left_out = names(&odd["left_out"], "name");
    left_out.sort_unstable();
    let others = [
        "dangling_out",
        "deep",
        "php_noargs",
        "req_bool",
        "req_inside",
    ];
    assert_eq!(left_out, others);
}

#[test]
fn args_of_a_rule_of_access_on_an_unvalidated_tool_are_refused() {
    let bench = bench_of_odd(json!({"schema": "as_is"}));
    let mut config: Value = serde_json::from_str(&bench.read("c.json")).expect("JSON");
    config["access"] = json!({"groups": ["ops"], "rules": [
        {"allow": ["/**"], "to": ["ops"]},
        {"allow": ["/odd/type_int"], "to": ["ops"], "args": {"properties": {"n": {"const": 1}}}},
    ]});
    bench.write("c.json", &config.to_string());
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &["error[access_args_invalid]: `/odd/type_int` is served unvalidated"],
    );
}

/// A listing of tools as they were found in servers: five have a schema that is invalid, five one that is valid or has
/// one meaning.
fn found_in_servers() -> Value {
    let tool = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let with = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}});
    let self_ref = json!({"$id": "https://example.com/s.json", "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object", "properties": {"a": {"$ref": "https://example.com/s.json#/definitions/A"}},
        "definitions": {"A": {"type": "string"}}});
    let mut dangling = tool("dangling_out", json!({"type": "object"}));
    dangling["outputSchema"] = with("v", json!({"$ref": "#/$defs/Screen"}));
    let required_inside = json!({"type": "object", "properties": {"symbol": {"type": "string"}, "required": ["symbol"]}});
    json!([
        tool("good", with("q", json!({"type": "string"}))),
        tool("php_noargs", json!({"type": "object", "properties": []})),
        tool(
            "req_bool",
            with("q", json!({"type": "string", "required": false}))
        ),
        tool("req_inside", required_inside),
        tool(
            "openapi30",
            with(
                "ttl",
                json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true})
            )
        ),
        tool("type_int", with("n", json!({"type": "int"}))),
        tool(
            "tuple",
            with(
                "box",
                json!({"type": "array", "items": [{"type": "number"}, {"type": "number"}]})
            )
        ),
        dangling,
        tool("self_ref", self_ref),
        tool(
            "js_regex",
            with("u", json!({"type": "string", "pattern": "^[^]*$"}))
        ),
    ])
}

#[test]
fn schemas_with_one_meaning_lock_beside_invalid_ones() {
    let bench = Bench::with_sources(&["fine", "odd"]);
    bench.script("odd", &json!({"tools": found_in_servers()}));
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "warning[schema_read]: schemas of `/odd` have at 1 place `true` of draft 4: the limit itself is not allowed; the first is /inputSchema/properties/ttl/exclusiveMinimum of `openapi30`",
            "a list of draft 4: the schemas of the first items; the first is /inputSchema/properties/box/items of `tuple`",
        ],
    );
    let lock = bench.lock_json();
    let odd = &lock["sources"][1];
    let mut locked = names(&odd["exposed"], "upstream_name");
    locked.sort_unstable();
    assert_eq!(
        locked,
        ["good", "js_regex", "openapi30", "self_ref", "tuple"]
    );
    let mut left_out = names(&odd["left_out"], "name");
    left_out.sort_unstable();
    assert_eq!(
        left_out,
        [
            "dangling_out",
            "php_noargs",
            "req_bool",
            "req_inside",
            "type_int"
        ]
    );
    // The lock has the text of the server.
    let mut tools = odd["exposed"].as_array().into_iter().flatten();
    let tuple = tools.find(|tool| tool["upstream_name"] == "tuple");
    assert!(
        tuple.is_some_and(
            |tool| tool["raw"]["inputSchema"]["properties"]["box"]["items"].is_array()
        )
    );
}
