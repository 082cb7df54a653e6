//! Outcomes of a call of a tool with an output schema. The official clients compare `structuredContent` with the
//! schema and throw if it is missing or does not match, so no change by the broker may look like such a result.

use std::ffi::OsStr;

use harness::{Bench, Broker, binary};
use serde_json::{Value, json};

use super::{CLIENTS, client, start_direct, tool, without_server_info};

/// The tool `name`, which takes a number and promises a text.
fn report(name: &str) -> Value {
    let schema = |name: &str, kind: &str| {
        json!({
            "type": "object",
            "properties": {name: {"type": kind}},
            "required": [name],
            "additionalProperties": false,
        })
    };
    json!({
        "name": name,
        "description": "Reports",
        "inputSchema": schema("n", "integer"),
        "outputSchema": schema("text", "string"),
    })
}

fn script(names: &[&str], generation: u64) -> Value {
    let answer = |text: &str| {
        let content = json!({ "text": text });
        let block = json!({"type": "text", "text": content.to_string()});
        json!({"result": {"content": [block], "structuredContent": content}})
    };
    let fails = json!({"content": [{"type": "text", "text": "planned"}], "isError": true});
    json!({
        "tools": names.iter().map(|name| report(name)).collect::<Vec<_>>(),
        "generation": generation,
        "on_call": {
            "works": answer("\u{fc}n\u{ef}\u{2028}"),
            "fails": {"result": fails},
            "is_cut": answer(&"long ".repeat(400)),
            "goes": answer("here"),
            "breaks": {"result": {"content": []}},
        },
    })
}

/// A broker whose server lists `/s/goes` until `later.json` replaces its script.
fn broker() -> (Bench, Broker) {
    let bench = Bench::new();
    let all = ["works", "fails", "is_cut", "goes", "breaks"];
    let rest: Vec<_> = all.into_iter().filter(|name| *name != "goes").collect();
    bench.write("s.json", &script(&all, 0).to_string());
    bench.write("later.json", &script(&rest, 1).to_string());
    let source = json!({
        "command": [binary("chaos-mcp"), "--script", bench.path("s.json")],
        "tool_overrides": {"is_cut": {"max_output_chars": 600}},
    });
    let broker = start_direct(&bench, "/s", &source);
    (bench, broker)
}

/// The code of the broker's error in a result.
fn refusal(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let error: Value = serde_json::from_str(text).expect("an error object");
    error["code"].as_str().expect("a code").to_owned()
}

#[test]
fn clients_accept_every_outcome_of_a_tool_with_an_output_schema() {
    for (program, script, mode, protocol) in CLIENTS {
        let (bench, broker) = broker();
        let url = format!("http://{}/mcp", broker.address());
        let make = |steps: &Value, server: &[&OsStr]| {
            let steps = steps.to_string();
            let rest = [OsStr::new("--steps"), OsStr::new(&steps)];
            client(program, script, mode, &[&rest[..], server].concat())
        };
        let step = |name: &str, n: Value| json!({"name": name, "arguments": {"n": n}});
        let file = bench.path("s.json");
        let server = binary("chaos-mcp");
        let server = [server.as_os_str(), OsStr::new("--script"), file.as_os_str()];
        let names = ["works", "fails", "goes", "breaks"];
        let direct: Vec<_> = names.iter().map(|name| step(name, json!(1))).collect();
        let direct = make(&json!(direct), &server);

        let flat = names.map(|name| step(&format!("s-{name}"), json!(1)));
        let mut steps = flat.to_vec();
        steps.push(step("s-is_cut", json!(1)));
        steps.push(step("s-works", json!("one")));
        let mut withdrawn = step("s-goes", json!(1));
        withdrawn["rename"] = json!([bench.path("later.json"), file]);
        steps.push(withdrawn);
        steps.push(step("s-works", json!(1)));
        let seen = make(&json!(steps), &[OsStr::new(&url)]);
        assert_eq!(seen["protocol"].as_str(), protocol, "{script}");
        let calls = seen["calls"].as_array().expect("a list");
        let [works, fails, goes, breaks, cut, refused, withdrawn, after] = &calls[..] else {
            panic!("{script} {mode}: {seen}");
        };

        let same = |result: &Value, at: usize| {
            let direct = without_server_info(&direct["calls"][at]);
            assert_eq!(without_server_info(result), direct, "{script} {mode}");
        };
        same(works, 0);
        same(fails, 1);
        same(goes, 2);
        same(after, 0);
        assert_eq!(fails["isError"], true);
        // The schema is in use: the client itself refuses a result without structured content, as it does directly.
        let complaint = breaks["thrown"].as_str().expect("the client throws");
        let direct_complaint = direct["calls"][3]["thrown"].as_str();
        let without_path = complaint.replace("s-breaks", "breaks");
        assert_eq!(Some(&*without_path), direct_complaint, "{script} {mode}");

        assert!(tool(&seen, "s-works")["outputSchema"].is_object());
        // A result that was cut has no structured content. As an error it is accepted by every client, with its text.
        assert!(tool(&seen, "s-is_cut")["outputSchema"].is_object());
        assert_eq!(cut["isError"], true, "{script} {mode}: {cut}");
        assert!(cut.get("structuredContent").is_none());
        let text = cut["content"][0]["text"].as_str().expect("a text");
        assert!(
            text.contains("long long") && text.contains("The broker cut this result"),
            "{text}"
        );
        let limit = &cut["_meta"]["dev.mcp-broker/truncated"]["limit"];
        assert_eq!(limit, 600, "{script} {mode}: {cut}");
        assert_eq!(refusal(refused), "args_invalid");
        assert!(tool(&seen, "s-goes")["outputSchema"].is_object());
        assert_eq!(refusal(withdrawn), "tool_withdrawn");
    }
}
