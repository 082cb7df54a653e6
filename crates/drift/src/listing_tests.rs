//! The classifier over listings with parts that are left out, and over null members.

use broker_config::Config;
use broker_model::codes::LeftOutCode;
use broker_model::item::ItemKind;
use broker_model::left_out::LeftOut;
use broker_model::lock::LockedSource;
use broker_model::snapshot::Snapshot;
use broker_model::trust::Exposure;
use serde_json::{Value, json};

use super::class::Class;
use super::classify::classify;
use super::report::Report;

fn snapshot(tools: &Value, instructions: &str) -> Snapshot {
    let tools = tools.as_array().expect("a list").iter();
    Snapshot {
        server_info: json!({"name": "s"}),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: json!({}),
        instructions: Some(instructions.to_owned()),
        tools: tools
            .map(|tool| tool.as_object().expect("an object").clone().into())
            .collect(),
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
    }
}

fn locked(old: &Snapshot, volatile: &[&str]) -> LockedSource {
    let document = json!({"tree": [{"path": "/s", "type": "node", "source": {
        "command": "server", "volatile": volatile,
    }}]});
    let config = Config::parse("c.json", document.to_string().as_bytes())
        .expect("a config")
        .config;
    config.sources().next().expect("a source").to_locked(old)
}

fn check(old: &Value, new: &Snapshot) -> Report {
    let locked = locked(&snapshot(old, ""), &[]);
    classify(&locked, new, &Exposure::expose_all())
}

fn part(code: LeftOutCode, name: Option<&str>) -> LeftOut {
    LeftOut {
        kind: ItemKind::Tool,
        name: name.map(str::to_owned),
        code,
        place: String::new(),
        reason: "it is odd".to_owned(),
        digest: LeftOut::digest_of("x"),
    }
}

#[test]
fn every_change_of_an_unvalidated_tool_is_unknown() {
    let tool = |members: Value| {
        let mut tool = json!({"name": "a", "inputSchema": {"type": "objekt"}});
        let members = members.as_object().expect("an object").clone();
        tool.as_object_mut().expect("an object").extend(members);
        json!([tool])
    };
    let old = tool(json!({"description": "d"}));
    let mut locked = locked(&snapshot(&old, ""), &[]);
    locked.exposed[0].unvalidated = true;
    let class = |new: &Value| {
        let report = classify(&locked, &snapshot(new, ""), &Exposure::expose_all());
        report.tools.first().map_or(Class::Same, |tool| tool.class)
    };
    assert_eq!(class(&old), Class::Same);
    for members in [
        json!({"description": "e"}),
        json!({"description": "d", "title": null}),
        json!({"description": "d", "inputSchema": {"type": "object"}}),
    ] {
        assert_eq!(class(&tool(members.clone())), Class::Unknown, "{members}");
    }
}

#[test]
fn null_for_an_absent_optional_member_is_equivalent() {
    let with = |members: Value| {
        let mut tool = json!({"name": "a", "inputSchema": {"type": "object"}});
        let members = members.as_object().expect("an object").clone();
        tool.as_object_mut().expect("an object").extend(members);
        json!([tool])
    };
    let absent = with(json!({"annotations": {}}));
    let null = with(json!({
        "title": null, "description": null, "outputSchema": null, "icons": null,
        "annotations": {"readOnlyHint": null, "title": null},
    }));
    for (old, new) in [(&absent, &null), (&null, &absent)] {
        let report = check(old, &snapshot(new, ""));
        assert_eq!(report.tools[0].class, Class::Equivalent);
        assert_eq!(report.tools[0].rules(), ["null-for-absent"]);
    }
    // In a schema null is a value.
    let schema = with(json!({"inputSchema": {"type": "object", "default": null}}));
    let report = check(&absent, &snapshot(&schema, ""));
    assert_ne!(report.tools[0].rules(), ["null-for-absent"]);
}

#[test]
fn reviewed_tool_that_is_left_out_is_unknown_and_others_are_the_same() {
    let both = json!([{"name": "a"}, {"name": "b"}]);
    for (one, rule) in [
        (
            part(LeftOutCode::DefinedTwice, Some("a")),
            "tool-defined-twice",
        ),
        (part(LeftOutCode::MemberInvalid, Some("a")), "tool-unusable"),
        (part(LeftOutCode::ListCut, None), "list-cut"),
    ] {
        let new = Snapshot {
            left_out: vec![one],
            ..snapshot(&json!([{"name": "b"}]), "")
        };
        let report = check(&both, &new);
        assert_eq!((report.tools.len(), report.same), (1, 1));
        let tool = &report.tools[0];
        assert_eq!((tool.class, tool.rules()), (Class::Unknown, vec![rule]));
        assert_eq!(tool.tool, "a");
    }
    // A new odd tool is not a difference.
    let new = Snapshot {
        left_out: vec![part(LeftOutCode::MemberInvalid, Some("new"))],
        ..snapshot(&both, "")
    };
    assert!(check(&both, &new).tools.is_empty());
}

#[test]
fn volatile_instructions_are_not_compared() {
    let (old, new) = (
        snapshot(&json!([]), "at 10:00"),
        snapshot(&json!([]), "at 10:01"),
    );
    let compared = |volatile: &[&str]| {
        let locked = locked(&old, volatile);
        let report = classify(&locked, &new, &Exposure::expose_all());
        (report.sources.len(), locked.instructions)
    };
    assert_eq!(compared(&[]), (1, Some("at 10:00".to_owned())));
    assert_eq!(compared(&["/instructions"]), (0, None));
}
