//! The drift report for people.

use broker_config::Config;
use broker_drift::{Report, classify, unchecked};
use broker_model::codes::SourceCause;
use broker_model::path::NodePath;
use broker_model::snapshot::Snapshot;
use broker_model::trust::{Exposure, TrustLevel};
use serde_json::{Value, json};

use super::{change, report_text};

fn snapshot(tools: Value) -> Snapshot {
    let tools = tools.as_array().unwrap().iter();
    Snapshot {
        tools: tools
            .map(|tool| tool.as_object().unwrap().clone().into())
            .collect(),
        ..Snapshot::empty()
    }
}

fn check(old: Value, new: Value) -> Report {
    let document =
        json!({"tree": [{"path": "/s", "type": "node", "source": {"command": "server"}}]});
    let config = Config::parse("c.json", document.to_string().as_bytes());
    let config = config.unwrap().config;
    let source = config.sources().next().unwrap();
    let locked = source.to_locked(&snapshot(old));
    let exposure = Exposure::new(Default::default(), TrustLevel::Trusted, Default::default());
    classify(&locked, &snapshot(new), &exposure)
}

#[test]
fn tools_with_equal_findings_share_a_block_and_a_command() {
    let names = ["b", "c", "d"];
    let of = |kind: &str| -> Value {
        let tools = names.map(
            |name| json!({"name": name, "inputSchema": {"properties": {"x": {"type": kind}}}}),
        );
        tools.to_vec().into()
    };
    let mut new = of("number");
    let more = (0..30).map(|at| json!({"name": format!("new{at:02}")}));
    new.as_array_mut().unwrap().extend(more);
    let mut report = check(of("string"), new);
    report.name_config("c.json");
    let text = report_text(&report).as_str().to_owned();
    assert!(
        text.starts_with("breaking: 3 tools: /s/b, /s/c, /s/d\n"),
        "{text}"
    );
    assert_eq!(
        text.matches("error[input-type-changed]").count(),
        1,
        "{text}"
    );
    assert!(text.contains("added: 30 tools: /s/new00, "), "{text}");
    assert!(text.contains("/s/new19 and 10\n  more\n"), "{text}");
    assert!(text.contains("a new tool `…`, which"), "{text}");
    assert_eq!(text.matches("help: ").count(), 1, "{text}");
    let command = "`broker-gen lock --config c.json --source /s`";
    assert!(text.contains(command), "{text}");
    assert_eq!(report.tools.len(), 33, "the report has each tool");
}

#[test]
fn remedies_of_a_merged_report_name_config_and_next_start() {
    let mut report = Report::default();
    for kind in ["string", "number"] {
        let schema = json!({"properties": {"x": {"type": kind}}});
        let old = json!([{"name": kind, "inputSchema": {}}]);
        let mut found = check(old, json!([{"name": kind, "inputSchema": schema}]));
        found.name_config("c.json");
        report.merge(found);
    }
    // The commands lock different tools, so one command for both replaces them.
    let text = |report: &Report| {
        report_text(report)
            .as_str()
            .to_owned()
            .replace("\n      ", " ")
    };
    let built = text(&report);
    assert!(
        built.contains("`broker-gen lock --config c.json --source /s`, commit the lock and build"),
        "{built}"
    );
    report.name_config("a b/c.json");
    report.name_serve();
    let served = text(&report);
    for part in [
        "`broker-gen lock --config 'a b/c.json' --source /s`",
        "commit the lock and start `broker-gen serve` again",
    ] {
        assert!(served.contains(part), "{served}");
    }
    assert!(!served.contains("build"), "{served}");
    let remedy = &report.tools[0].findings[0].remedy;
    assert!(
        remedy.contains(
            "--config 'a b/c.json' --source /s --tool string`, commit the lock and start"
        ),
        "{remedy}"
    );
    let cause = SourceCause::ListFailed;
    let mut unchecked = unchecked(&NodePath::parse("/s").unwrap(), cause, "m", &[]);
    unchecked.name_serve();
    let text = report_text(&unchecked).as_str().to_owned();
    assert!(
        text.contains("`broker-gen doctor`") && !text.contains("mcp-broker"),
        "{text}"
    );
}

#[test]
fn renamed_tool_is_shown_once() {
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {"path": {}, "lines": {}}});
        json!([{"name": name, "description": "Reads a file.", "inputSchema": schema}])
    };
    let text = report_text(&check(tool("read_file"), tool("read_text_file")));
    let text = text.as_str();
    assert!(
        text.contains("tool-renamed") && !text.contains("tool-added"),
        "{text}"
    );
}

#[test]
fn changed_number_without_a_double_is_shown_as_it_is_written() {
    let tool = |number: &str| {
        let schema = format!(r#"{{"properties": {{"n": {{"default": {number}}}}}}}"#);
        let schema = broker_model::json::parse(&schema).unwrap();
        json!([{"name": "t", "inputSchema": schema}])
    };
    let report = check(tool("1e400"), tool("1e401"));
    let shown = change(&report.tools[0].findings[0], ["locked", "live"]);
    assert_eq!(shown, "locked 1e400\nlive 1e401");
}
