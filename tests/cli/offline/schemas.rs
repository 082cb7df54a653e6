//! The committed JSON Schemas: they are current, printed unchanged, and match the files that they describe.

use std::collections::BTreeSet;
use std::fs;

use broker_config::Config;
use broker_drift::{Class, Finding, FindingSeverity, LintResult, Report};
use broker_model::NodePath;
use broker_model::digest::Digest;
use broker_model::json::to_review_text;
use broker_schema::compile;
use harness::{Bench, assert_expected, text_difference};
use serde_json::{Value, json};

use super::bench::{config, tool, workspace, write_lock};

/// The key of the other form of a config.
const OTHER_FORM: &str = "mcpServers";

/// A file that has a schema.
#[derive(Clone, Copy, Debug)]
enum Document {
    Config,
    Lock,
    Report,
    AuditLine,
}

impl Document {
    const ALL: [Self; 4] = [Self::Config, Self::Lock, Self::Report, Self::AuditLine];

    const fn file_name(self) -> &'static str {
        match self {
            Self::Config => "config.schema.json",
            Self::Lock => "lock.schema.json",
            Self::Report => "report.schema.json",
            Self::AuditLine => "audit.schema.json",
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Config => broker_config::json_schema::config(),
            Self::Lock => broker_model::json_schema::lock(),
            Self::Report => broker_drift::json_schema(),
            Self::AuditLine => broker_audit::json_schema(),
        }
    }

    fn text(self) -> String {
        to_review_text(&self.schema())
    }
}

#[track_caller]
fn valid(document: Document, value: &Value) {
    let schema = document.schema();
    let validator = compile(&schema).expect("the schema compiles");
    let errors = validator.failures(&schema, value, 5);
    assert!(errors.is_empty(), "{document:?}: {errors:#?}");
}

fn read(path: &str) -> Value {
    let text = fs::read_to_string(workspace().join(path)).expect(path);
    serde_json::from_str(&text).expect(path)
}

#[test]
fn json_schemas_are_current_and_printed_unchanged() {
    let bench = Bench::new();
    for document in Document::ALL {
        let name = document.file_name();
        let path = workspace().join("schemas").join(name);
        assert_expected(&path, &document.text());
        let verb = name.split('.').next().expect("a name");
        let difference = text_difference(&document.text(), &bench.fine(&["schema", verb]));
        assert!(difference.is_empty(), "`schema {verb}`:\n{difference}");
    }
    assert_eq!(bench.fine(&["schema"]), bench.fine(&["schema", "config"]));
}

#[test]
fn json_schemas_accept_the_committed_configs_and_locks() {
    let smoke = read("smoke_config.json");
    let schema = smoke["$schema"]
        .as_str()
        .expect("the smoke config names its schema");
    assert!(
        read(schema) == Document::Config.schema(),
        "{schema} is another schema"
    );
    let settings = read(".vscode/settings.json");
    let wired = settings["json.schemas"]
        .as_array()
        .expect("schemas are wired");
    // An editor reads no lines of a log.
    for document in [Document::Config, Document::Lock, Document::Report] {
        let url = format!("./schemas/{}", document.file_name());
        assert!(wired.iter().any(|entry| entry["url"] == url), "{url}");
    }
    for package in [
        "",
        "tests/chaos-broker/",
        "tests/real-broker/",
        "tests/corpus-broker/",
    ] {
        let stem = if package.is_empty() {
            "smoke_config"
        } else {
            "config"
        };
        valid(Document::Config, &read(&format!("{package}{stem}.json")));
        valid(Document::Lock, &read(&format!("{package}{stem}.lock.json")));
    }
}

#[test]
fn json_schema_accepts_a_report_with_every_kind_of_entry() {
    let bench = Bench::new();
    let mut changed = tool("x");
    changed["title"] = "New".into();
    write_lock(
        &bench,
        "old",
        &config(json!({})),
        &[tool("x"), tool("gone")],
    );
    write_lock(
        &bench,
        "new",
        &config(json!({"tool_filter": ["!hid"]})),
        &[changed, tool("added"), tool("hid")],
    );
    let output = bench.run(&["diff", "old.lock.json", "new.lock.json", "--format", "json"]);
    let report: Value = serde_json::from_str(&output.stdout).expect("a report");
    assert!(!report["tools"].as_array().expect("a list").is_empty());
    assert!(!report["sources"].as_array().expect("a list").is_empty());
    valid(Document::Report, &report);
}

#[test]
fn json_schema_accepts_a_report_with_a_lint_finding_on_a_source_itself() {
    let finding = Finding {
        rule: "hidden-text",
        class: Class::Security,
        severity: FindingSeverity::Error,
        pointer: "/instructions".to_owned(),
        old: None,
        new: Some(json!("x")),
        witness: None,
        message: "m".to_owned(),
        remedy: "r".to_owned(),
    };
    let linted = LintResult {
        source: NodePath::root(),
        tool: None,
        path: "/".to_owned(),
        digest: Digest::new("test", &json!(null)),
        findings: vec![finding],
    };
    let report = json!(Report::default().wire(&[linted], &[]));
    assert_eq!(report["lint"][0]["tool"], Value::Null);
    valid(Document::Report, &report);
}

/// The parser's message about an unknown key lists the known ones of its level.
#[test]
fn json_schema_has_every_key_of_the_config() {
    let schema = Document::Config.schema();
    let at = |pointer: &str| -> BTreeSet<String> {
        let properties = schema
            .pointer(pointer)
            .and_then(Value::as_object)
            .expect(pointer);
        properties.keys().cloned().collect()
    };
    let known = |config: Value| -> BTreeSet<String> {
        let problems =
            Config::parse("c.json", config.to_string().as_bytes()).expect_err("a bad key");
        let help = problems
            .iter()
            .find_map(|problem| problem.help.as_deref()?.strip_prefix("known here: "));
        help.expect("the known keys")
            .split(", ")
            .map(str::to_owned)
            .collect()
    };
    let node = |source: Value| json!({"tree": [{"path": "/a", "source": source}]});
    for (pointer, config) in [
        (
            "/definitions/TreeConfig/properties",
            json!({"tree": [], "qqqqqqqq": 1}),
        ),
        (
            "/definitions/Node/properties",
            json!({"tree": [{"path": "/a", "qqqqqqqq": 1}]}),
        ),
        (
            "/definitions/Source/properties",
            node(json!({"command": "x", "qqqqqqqq": 1})),
        ),
        (
            "/definitions/ToolOverride/properties",
            node(json!({"command": "x", "tool_overrides": {"t": {"qqqqqqqq": 1}}})),
        ),
        (
            "/definitions/Limits/properties",
            json!({"tree": [], "limits": {"qqqqqqqq": 1}}),
        ),
        (
            "/definitions/Trust/properties",
            json!({"tree": [], "trust": {"qqqqqqqq": 1}}),
        ),
    ] {
        let mut known = known(config);
        known.remove(OTHER_FORM);
        assert_eq!(at(pointer), known, "{pointer}");
    }
}

#[test]
fn json_schema_and_config_parser_accept_the_same() {
    let schema = Document::Config.schema();
    let validator = compile(&schema).expect("the schema compiles");
    let source = |members: Value| config(members);
    let over = |members: Value| source(json!({"tool_overrides": {"t": members}}));
    let server = |entry: Value| json!({"mcpServers": {"a": entry}});
    let good = [
        json!({"tree": []}),
        json!({"tree": {"path": "/", "type": "node", "children": []}}),
        json!({"$schema": "x", "tree": [], "types": false, "limits": {"body_bytes": 1024}, "allowed_hosts": ["a"], "allowed_origins": ["https://a"]}),
        source(
            json!({"command": ["a", "b"], "cwd": ".", "inherit_env": ["A*"], "required": false, "instances": 1}),
        ),
        source(json!({"timeout": 0.1, "startup_timeout": 3600, "max_in_flight": 10000})),
        source(
            json!({"volatile": ["/tools/*/_meta/x"], "path_aliases": {"a/b": "a_b"}, "args": []}),
        ),
        over(
            json!({"summary": "s", "description": "d", "example_args": {}, "timeout": 5, "render_mode": "json"}),
        ),
        server(json!({"command": "npx", "args": ["-y"], "type": "stdio", "autoApprove": []})),
        server(json!({"url": "https://a", "disabled": true})),
        server(json!({"command": "npx", "timeout": 60000000})),
        server(json!({"command": "npx", "trust": true})),
        server(json!({"command": "npx", "trust": "untrusted"})),
        source(json!({"trust": "trusted"})),
        source(json!({"trust": "verified", "tool_filter": ["a"]})),
        json!({"tree": [], "trust": {}}),
        json!({"tree": [], "trust": {"sensitive": []}}),
        json!({"tree": [], "trust": {"sensitive": ["delete", "api_key", "löschen"]}}),
    ];
    for value in good {
        let text = value.to_string();
        let parsed = Config::parse("c.json", text.as_bytes());
        assert!(parsed.is_ok(), "{text}: {parsed:?}");
        let errors = validator.failures(&schema, &value, 3);
        assert!(errors.is_empty(), "{text}: {errors:#?}");
    }
    let bad = [
        json!({}),
        json!([]),
        json!({"tree": [], "mcpServers": {}}),
        json!({"tree": [], "limits": {"body_bytes": 1023}}),
        json!({"tree": [{"path": "a"}]}),
        json!({"tree": [{"path": "/a", "type": "tool"}]}),
        json!({"tree": [{"path": "/a", "sumary": "x"}]}),
        json!({"tree": [{"path": "/a", "source": {}}]}),
        source(json!({"timeout": 0.05})),
        source(json!({"timeout": "30s"})),
        source(json!({"startup_timeout": 3601})),
        source(json!({"max_in_flight": 0})),
        source(json!({"max_in_flight": 1.5})),
        source(json!({"command": []})),
        source(json!({"url": "https://a"})),
        source(json!({"env": {"A": 1}})),
        source(json!({"cwd": null})),
        source(json!({"volatile": ["/tools/x"]})),
        source(json!({"path_aliases": {"a": "b/c"}})),
        over(json!({"render_mode": "yaml"})),
        over(json!({"max_output_chars": 99})),
        over(json!({"example_args": []})),
        server(json!({"args": []})),
        server(json!({"command": "x", "required": "yes"})),
        server(json!({"command": "x", "trust": "yes"})),
        source(json!({"trust": true})),
        source(json!({"trust": "Trusted"})),
        json!({"tree": [], "trust": "trusted"}),
        json!({"tree": [], "trust": {"sensitive": "delete"}}),
        json!({"tree": [], "trust": {"sensitive": ["apiKey"]}}),
        json!({"tree": [], "trust": {"sensitive": ["a_b_c"]}}),
    ];
    for value in bad {
        let text = value.to_string();
        assert!(Config::parse("c.json", text.as_bytes()).is_err(), "{text}");
        assert!(!validator.is_valid(&value), "the schema takes {text}");
    }
}

#[test]
fn json_schema_accepts_lock_v1_and_refuses_a_damaged_one() {
    let mut lock = read("tests/drift/lock_formats/lock-v1.json");
    valid(Document::Lock, &lock);
    lock["sources"][0]["exposed"][0]["raw"]["description"] = "one text".into();
    let validator = compile(&Document::Lock.schema()).expect("the schema compiles");
    assert!(!validator.is_valid(&lock));
}
