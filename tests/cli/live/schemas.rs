//! Schemas that `lock` refuses, and unusual ones that it accepts.

use harness::{Bench, contains};
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
        ("a_true", Some(json!(true))),
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
    for number in ["1e400", "1180591620717411303424", "-1e999"] {
        let bench = Bench::with_sources(&["a"]);
        bench.write("a.json", &format!(r#"{{"tools":[{{"name":"wide","inputSchema":{{"properties":{{"n":{{"default":{number}}}}}}}}}]}}"#));
        let errors = bench.lock_fails(4);
        contains(
            &errors,
            &[
                "error[source_failed]: `/a`",
                "list_invalid: tool `wide`",
                &format!("the number `{number}`"),
            ],
        );
    }
    let bench = Bench::with_sources(&["a"]);
    let exact = r#"{"const":9223372036854775807,"default":18446744073709551615,"minimum":-9223372036854775808,"maximum":1e300,"x":0.1}"#;
    bench.write(
        "a.json",
        &format!(
            r#"{{"tools":[{{"name":"wide","inputSchema":{{"properties":{{"n":{exact}}}}}}}]}}"#
        ),
    );
    bench.lock();
    let locked =
        &bench.lock_json()["sources"][0]["exposed"][0]["raw"]["inputSchema"]["properties"]["n"];
    assert_eq!(locked, &serde_json::from_str::<Value>(exact).expect("JSON"));
    contains(
        &bench.lock_text(),
        &["9223372036854775807", "18446744073709551615"],
    );
}

#[test]
fn tool_that_violates_the_protocol_is_refused_by_name() {
    for (tools, part) in [
        (
            r#"[{"name":"a"},{"name":"a"}]"#,
            "tool `a`: it is listed twice",
        ),
        (r#"[{"name":"a","name":"b"}]"#, "tool `b`: "),
        (r#"[{"name":"a"},{"title":"x"}]"#, "tool number 2: "),
        (
            r#"[{"name":"a","description":7}]"#,
            "tool `a`: `description` is not a string",
        ),
    ] {
        let bench = Bench::with_sources(&["a"]);
        bench.write("a.json", &format!(r#"{{"tools":{tools}}}"#));
        contains(
            &bench.lock_fails(4),
            &["error[source_failed]: `/a`", "list_invalid: ", part],
        );
    }
}
