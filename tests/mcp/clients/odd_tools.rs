//! Lists of odd tools, read by the official clients: no tool hides another one.

use std::io::Write as _;

use super::*;

/// The number of generated tools.
const ODD_TOOLS: usize = 200;

/// Schemas of arguments, each with whether clients can read a form of it.
fn inputs() -> Vec<(Value, bool)> {
    let object = json!({"type": "object"});
    vec![
        (object.clone(), true),
        (json!({}), true),
        (
            json!({"anyOf": [object, {"type": "object", "required": ["a"]}]}),
            true,
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            true,
        ),
        (json!({"$ref": "#/$defs/A", "$defs": {"A": object}}), true),
        (
            json!({"type": "object", "properties": {"data": true, "none": false}}),
            true,
        ),
        (json!({"type": ["object", "null"]}), true),
        (
            json!({"properties": {"a": {"type": "text"}, "b": {"properties": {"c": true}}}}),
            true,
        ),
        (
            json!({"type": "object", "properties": {"a": {"pattern": "^(?P<id>[0-9]+)$"}}}),
            true,
        ),
        (
            json!({"type": "object", "required": [], "additionalProperties": false}),
            true,
        ),
        (json!({"type": "object", "properties": {"a": null}}), false),
        (json!({"type": "object", "properties": []}), false),
        (json!({"type": "object", "required": "a"}), false),
        (json!({"type": "object", "required": [1]}), false),
        (json!({"type": "object", "$schema": 7}), false),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "nullable": null}}}),
            true,
        ),
        (
            json!({"type": "object", "title": null, "description": 7, "examples": {}}),
            true,
        ),
    ]
}

/// Schemas of results, each with whether clients can compile it.
fn outputs() -> Vec<(Value, bool)> {
    let of = |property: Value| json!({"type": "object", "properties": {"w": property}});
    vec![
        (of(json!({"type": "string"})), true),
        (json!({"type": "array", "items": {"type": "string"}}), false),
        (of(json!(true)), true),
        (
            of(json!({"type": "string", "pattern": "^(?P<id>[0-9]+)$"})),
            false,
        ),
        (
            of(json!({"type": "string", "pattern": "^https\\:\\/\\/"})),
            false,
        ),
        (of(json!({"nullable": true})), false),
        (of(json!({"type": "string", "nullable": true})), true),
        (json!({}), false),
        (
            json!({"anyOf": [{"type": "object"}, {"$ref": "#/$defs/A"}], "$defs": {"A": {"type": "object"}}}),
            true,
        ),
        (of(json!({"minimum": 1, "exclusiveMinimum": true})), false),
        (of(json!({"type": "text"})), false),
        (of(json!({"enum": []})), false),
        (of(json!({"id": "x"})), false),
        (of(json!({"$id": "x"})), false),
        (of(json!({"$ref": "#/$defs/none"})), false),
        (of(json!({"items": [{"type": "string"}]})), false),
        (
            of(json!({"format": "unknown", "unknown": {"type": 1}})),
            true,
        ),
        (
            json!({"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"}),
            false,
        ),
        (json!({"type": "object", "required": "w"}), false),
    ]
}

fn annotations() -> [Value; 7] {
    [
        json!({}),
        json!({"title": null, "readOnlyHint": null}),
        json!({"readOnlyHint": "true"}),
        json!({"title": 7, "destructiveHint": 0, "unknown": [null]}),
        json!({"idempotentHint": [], "openWorldHint": false}),
        json!("read only"),
        json!(null),
    ]
}

/// The tools, and what a list of each must have: its name, and whether with the schema of its results.
fn odd_tools() -> (Vec<Value>, Vec<Value>) {
    let (inputs, outputs, annotations) = (inputs(), outputs(), annotations());
    let (mut tools, mut listed) = (Vec::new(), Vec::new());
    for at in 0..ODD_TOOLS {
        let (input, is_listed) = &inputs[at % inputs.len()];
        let (output, has_output) = &outputs[at % outputs.len()];
        let name = format!("odd_{at:03}");
        let mut tool = json!({
            "name": name, "description": null, "inputSchema": input, "outputSchema": output,
            "annotations": annotations[at % annotations.len()],
        });
        // One root in ten has an `$id`, by which a client would take the first schema for all of them.
        let mut has_output = *has_output;
        if at % 10 == 0 && has_output {
            tool["outputSchema"]["$id"] = json!("https://example.com/result");
            has_output = listed.iter().all(|entry: &Value| entry["id"] != true);
            if *is_listed {
                listed
                    .push(json!({"name": format!("odd-{name}"), "output": has_output, "id": true}));
            }
        } else if *is_listed {
            listed.push(json!({"name": format!("odd-{name}"), "output": has_output}));
        }
        tools.push(tool);
    }
    for entry in &mut listed {
        entry.as_object_mut().expect("an object").remove("id");
    }
    (tools, listed)
}

/// The list in each client over HTTP and, of the odd tools, over `/v1/mcp`.
fn lists(broker: &Broker, route: &str) -> Vec<Value> {
    let url = format!("http://{}{route}", broker.address());
    let list = |(program, script, mode, _): (&str, &str, &str, Option<&str>)| {
        let rest = [OsStr::new("--list"), OsStr::new(&url)];
        let seen = client(program, script, mode, &rest);
        // The version says for which client the list was read.
        let version = seen["version"].as_str().expect("a version");
        writeln!(std::io::stdout(), "{script} {mode}: {version}").expect("it is printed");
        seen["tools"].clone()
    };
    CLIENTS.map(list).into()
}

#[test]
fn no_odd_tool_hides_another_one_in_any_client() {
    let (tools, listed) = odd_tools();
    let bench = Bench::new();
    bench.configure([("odd", json!({"schema": "as_is"}))]);
    bench.script("odd", &json!({"tools": tools}));
    // Some of the schemas are not valid: they are served as they are, which has to be accepted.
    let locked = bench.run(&["lock", "--config", "c.json"]);
    assert_eq!(locked.code, Some(8), "{}", locked.stderr);
    assert!(
        locked.stderr.contains("schema_unlisted"),
        "{}",
        locked.stderr
    );
    let accept = [
        "accept",
        "--config",
        "c.json",
        "--source",
        "/odd",
        "--left-out",
    ];
    bench.fine(
        &[
            &accept[..],
            &["--who", "A <a@example.com>", "--reason", "odd"],
        ]
        .concat(),
    );
    let tree = bench.fine(&["tree", "--config", "c.json"]);
    let meta_only = tree.matches("is listed in the mode `meta` only").count();
    assert_eq!(meta_only, ODD_TOOLS - listed.len(), "{tree}");
    let broker = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let serve = ["serve", "0", "--config", "c.json"];
    let broker = Broker::start_ready(broker.args(serve));
    for route in ["/mcp/direct", "/v1/mcp"] {
        for seen in lists(&broker, route) {
            assert_eq!(seen, Value::from(listed.clone()));
        }
    }
}

#[test]
fn every_recorded_tool_is_listed_by_every_client() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus-broker"));
    let broker = Run::new(&binary("broker-gen")).folder(folder);
    let broker = Broker::start_ready(broker.args(["serve", "0", "--config", "config.json"]));
    for seen in lists(&broker, "/mcp/direct") {
        let tools = seen.as_array().expect("a list");
        assert_eq!(tools.len(), 1455);
    }
}

/// A report of the field: a property with the schema `true`, and the parts of a tool that hid the tools of every other
/// server as well.
#[test]
fn one_odd_tool_of_a_server_hides_no_tool_of_another() {
    let variants: Vec<Value> =
        serde_json::from_str(include_str!("data/odd_variants.json")).expect("a list");
    let names: Vec<_> = (0..variants.len()).map(|at| format!("v{at}")).collect();
    let bench = Bench::new();
    let all = ["odd", "fine"]
        .into_iter()
        .chain(names.iter().map(String::as_str));
    bench.configure(all.map(|name| (name, json!({}))));
    let object = json!({"type": "object"});
    let odd = json!({"type": "object", "properties": {"data": true}});
    let good = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let tools = json!([
        {"name": "good", "description": "A good tool.", "inputSchema": good},
        {"name": "bool_prop", "description": "d", "inputSchema": odd},
    ]);
    bench.script("odd", &json!({ "tools": tools }));
    bench.one_tool(
        "fine",
        json!({"name": "ping_me", "description": "Fine.", "inputSchema": object}),
    );
    for (name, variant) in names.iter().zip(&variants) {
        let mut tool = json!({"name": "odd_one", "inputSchema": object});
        for (member, value) in variant.as_object().expect("members") {
            tool[member] = value.clone();
        }
        bench.one_tool(name, tool);
    }
    bench.lock();
    let broker = Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let broker = Broker::start_ready(broker.args(["serve", "0", "--config", "c.json"]));
    let mut expected = vec![
        "fine-ping_me".to_owned(),
        "odd-bool_prop".to_owned(),
        "odd-good".to_owned(),
    ];
    expected.extend(names.iter().map(|name| format!("{name}-odd_one")));
    expected.sort();
    for seen in lists(&broker, "/mcp/direct") {
        let tools = seen.as_array().expect("a list").iter();
        let mut listed: Vec<_> = tools
            .map(|tool| tool["name"].as_str().expect("a name"))
            .collect();
        listed.sort_unstable();
        assert_eq!(listed, expected);
    }
}
