//! Snapshot in, findings out. Knows which tools are the same, gone or new; every other change is
//! `unknown` until it can be proven harmless, and so withdraws the tool.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::difference::{Difference, differences};
use super::report::{Class, Finding, FindingSeverity, RELOCK, Report, SourceDrift, ToolDrift};
use crate::codes::SourceCause;
use crate::digest::Digest;
use crate::filter::ToolFilter;
use crate::lock::{LockedSource, LockedTool, strip_volatile};
use crate::path::NodePath;
use crate::snapshot::{Snapshot, tool_name};

/// Places that are listed for one tool; a rewritten schema has thousands.
const MAX_FINDINGS: usize = 50;

/// Holds what a source says now against what was reviewed. `filter` decides which new tools would
/// be exposed; those that it hides are only noted by their absence.
pub fn classify(locked: &LockedSource, live: &Snapshot, filter: &ToolFilter) -> Report {
    let mut report = Report::default();
    let mut listed: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for tool in &live.tools {
        let mut raw = tool.clone();
        strip_volatile(&mut raw, &locked.volatile);
        listed.insert(tool_name(tool), raw);
    }
    for tool in &locked.exposed {
        match listed.remove(tool.upstream_name.as_str()) {
            Some(raw) if Digest::of_tool(&raw) == tool.digest => report.same += 1,
            Some(raw) => report.tools.push(changed(locked, tool, raw)),
            None => report.tools.push(gone(locked, tool)),
        }
    }
    for tool in &locked.hidden {
        listed.remove(tool.name.as_str());
    }
    for (name, _) in listed.into_iter().filter(|(name, _)| filter.admits(name)) {
        report.tools.push(added(locked, name));
    }
    let findings = about_the_source(locked, live);
    if !findings.is_empty() {
        report
            .sources
            .push(SourceDrift::new(&locked.path, findings));
    }
    report
}

/// The report on a source that could not be started or listed.
pub fn unchecked(source: &NodePath, cause: SourceCause, message: &str) -> Report {
    let finding = Finding {
        rule: "source-unavailable",
        class: Class::Unchecked,
        severity: FindingSeverity::Error,
        pointer: String::new(),
        old: None,
        new: Some(json!({"cause": cause.as_str()})),
        witness: None,
        message: message.to_owned(),
        remedy: cause.remedy().to_owned(),
    };
    Report {
        sources: vec![SourceDrift::new(source, vec![finding])],
        ..Report::default()
    }
}

fn relock(source: &NodePath) -> String {
    format!("review it, then run {RELOCK} --source {source}`, commit the lock and build anew")
}

fn leaf(source: &NodePath, name: &str) -> String {
    // An added tool's name may be outside the path grammar; it is shown all the same.
    if source.is_root() {
        format!("/{name}")
    } else {
        format!("{source}/{name}")
    }
}

fn gone(locked: &LockedSource, tool: &LockedTool) -> ToolDrift {
    let finding = Finding {
        rule: "tool-gone",
        class: Class::Gone,
        severity: FindingSeverity::Error,
        pointer: String::new(),
        old: Some(json!({"digest": tool.digest.as_str()})),
        new: None,
        witness: None,
        message: format!("the server no longer lists `{}`", tool.upstream_name),
        remedy: relock(&locked.path),
    };
    ToolDrift::new(
        &locked.path,
        &tool.upstream_name,
        leaf(&locked.path, &tool.exposed_name),
        vec![finding],
    )
}

fn added(locked: &LockedSource, name: &str) -> ToolDrift {
    let finding = Finding {
        rule: "tool-added",
        class: Class::Added,
        severity: FindingSeverity::Note,
        pointer: String::new(),
        old: None,
        new: None,
        witness: None,
        message: format!(
            "the server has a new tool `{name}`, which the filter admits; it is not exposed"
        ),
        remedy: format!(
            "to expose it, {}; else deny it in `tool_filter`",
            relock(&locked.path)
        ),
    };
    ToolDrift::new(&locked.path, name, leaf(&locked.path, name), vec![finding])
}

fn changed(locked: &LockedSource, tool: &LockedTool, raw: Map<String, Value>) -> ToolDrift {
    let found = differences(&Value::Object(tool.raw.clone()), &Value::Object(raw));
    let total = found.len();
    let mut findings: Vec<_> = found
        .into_iter()
        .take(MAX_FINDINGS)
        .map(|Difference { pointer, old, new }| {
            let (rule, what) = rule_of(&pointer);
            Finding {
                rule,
                class: Class::Unknown,
                severity: FindingSeverity::Error,
                message: format!("{what} of `{}` changed", tool.upstream_name),
                pointer,
                old,
                new,
                witness: None,
                remedy: relock(&locked.path),
            }
        })
        .collect();
    if let Some(last) = findings.last_mut().filter(|_| total > MAX_FINDINGS) {
        last.message = format!("{}, and {} more places", last.message, total - MAX_FINDINGS);
    }
    ToolDrift::new(
        &locked.path,
        &tool.upstream_name,
        leaf(&locked.path, &tool.exposed_name),
        findings,
    )
}

/// The rule for a difference within a tool, by the member it stands in.
fn rule_of(pointer: &str) -> (&'static str, &'static str) {
    match pointer.split('/').nth(1).unwrap_or_default() {
        "title" => ("title-changed", "the title"),
        "description" => ("description-changed", "the description"),
        "inputSchema" => ("input-schema-changed", "the input schema"),
        "outputSchema" => ("output-schema-changed", "the output schema"),
        "annotations" => ("annotations-changed", "an annotation"),
        "icons" => ("icons-changed", "an icon"),
        "_meta" => ("meta-changed", "`_meta`"),
        "execution" => ("execution-changed", "`execution`"),
        _ => ("member-changed", "a member"),
    }
}

fn about_the_source(locked: &LockedSource, live: &Snapshot) -> Vec<Finding> {
    let name = |info: &Value| info.get("name").cloned();
    let version = |info: &Value| info.get("version").cloned();
    let mut findings = Vec::new();
    let mut compare = |rule,
                       class,
                       severity,
                       pointer: &str,
                       what: &str,
                       old: Option<Value>,
                       new: Option<Value>| {
        if old != new {
            let remedy = if class == Class::Same {
                "nothing; the next lock records it".to_owned()
            } else {
                relock(&locked.path)
            };
            let message = format!("the server's {what} changed");
            findings.push(Finding {
                rule,
                class,
                severity,
                pointer: pointer.to_owned(),
                old,
                new,
                witness: None,
                message,
                remedy,
            });
        }
    };
    use FindingSeverity::{Error, Note, Warning};
    compare(
        "server-name-changed",
        Class::Unknown,
        Error,
        "/server_info/name",
        "name",
        name(&locked.server_info),
        name(&live.server_info),
    );
    let text = |instructions: &Option<String>| instructions.clone().map(Value::from);
    compare(
        "instructions-changed",
        Class::Unknown,
        Error,
        "/instructions",
        "instructions",
        text(&locked.instructions),
        text(&live.instructions),
    );
    compare(
        "server-version-changed",
        Class::Same,
        Note,
        "/server_info/version",
        "version",
        version(&locked.server_info),
        version(&live.server_info),
    );
    let (old, new) = (locked.capabilities.clone(), live.capabilities.clone());
    compare(
        "capabilities-changed",
        Class::Same,
        Warning,
        "/capabilities",
        "capabilities",
        Some(old),
        Some(new),
    );
    let (old, new) = (
        locked.protocol_version.as_str().into(),
        live.protocol_version.as_str().into(),
    );
    compare(
        "protocol-revision-changed",
        Class::Same,
        Warning,
        "/protocol_version",
        "protocol revision",
        Some(old),
        Some(new),
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn snapshot(tools: Value) -> Snapshot {
        Snapshot {
            server_info: json!({"name": "s", "version": "1"}),
            protocol_version: "2025-11-25".to_owned(),
            capabilities: json!({}),
            instructions: None,
            tools: tools
                .as_array()
                .unwrap()
                .iter()
                .map(|t| t.as_object().unwrap().clone())
                .collect(),
        }
    }

    fn locked(old: &Snapshot) -> LockedSource {
        let document = json!({"tree": [{"path": "/s", "type": "node", "source": {
            "command": "server", "tool_filter": ["!hidden*"], "path_aliases": {"a": "alias"},
        }}]});
        let config = Config::parse("c.json", document.to_string().as_bytes())
            .unwrap()
            .config;
        LockedSource::from_snapshot(config.sources().next().unwrap(), old)
    }

    fn check(old: Value, new: Value) -> Report {
        let filter = ToolFilter::compile(&["!hidden*"]).unwrap();
        classify(&locked(&snapshot(old)), &snapshot(new), &filter)
    }

    #[test]
    fn f_31_member_order_and_number_forms_are_no_drift() {
        let report = check(
            json!([{"name": "a", "inputSchema": {"x": 1, "y": 2}}]),
            serde_json::from_str(r#"[{"inputSchema":{"y":2.0,"x":1},"name":"a"}]"#).unwrap(),
        );
        assert!(!report.has_drift() && report.tools.is_empty());
        assert_eq!(report.same, 1);
    }

    #[test]
    fn f_32_added_gone_and_hidden_tools() {
        let report = check(
            json!([{"name": "a"}, {"name": "hidden1"}]),
            json!([{"name": "b"}, {"name": "hidden1", "title": "moved"}, {"name": "hidden2"}]),
        );
        let shown: Vec<_> = report
            .tools
            .iter()
            .map(|t| (t.tool.as_str(), t.path.as_str(), t.class, t.rules()))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", "/s/alias", Class::Gone, vec!["tool-gone"]),
                ("b", "/s/b", Class::Added, vec!["tool-added"])
            ]
        );
        assert!(report.has_drift());
        assert!(
            !check(json!([]), json!([{"name": "b"}])).has_drift(),
            "an added tool is no drift"
        );
    }

    #[test]
    fn every_other_change_is_unknown_with_its_places() {
        let report = check(
            json!([{"name": "a", "description": "x", "inputSchema": {"properties": {"p": {"type": "string"}}}}]),
            json!([{"name": "a", "description": "y", "inputSchema": {"properties": {"p": {"type": "number"}}}, "zz": 1}]),
        );
        let tool = &report.tools[0];
        assert_eq!(tool.class, Class::Unknown);
        let places: Vec<_> = tool
            .findings
            .iter()
            .map(|f| (f.rule, f.pointer.as_str()))
            .collect();
        assert_eq!(
            places,
            [
                ("description-changed", "/description"),
                ("input-schema-changed", "/inputSchema/properties/p/type"),
                ("member-changed", "/zz"),
            ]
        );
        assert_eq!(
            (&tool.findings[1].old, &tool.findings[1].new),
            (&Some(json!("string")), &Some(json!("number")))
        );
    }

    #[test]
    fn of_the_source_only_name_and_instructions_count() {
        let old = snapshot(json!([]));
        let locked = locked(&old);
        let live = Snapshot {
            server_info: json!({"name": "s", "version": "2"}),
            protocol_version: "2026-07-28".into(),
            capabilities: json!({"tools": {}}),
            ..old.clone()
        };
        let report = classify(&locked, &live, &ToolFilter::default());
        assert!(!report.has_drift());
        assert_eq!(report.sources[0].findings.len(), 3);
        for live in [
            Snapshot {
                server_info: json!({"name": "t", "version": "1"}),
                ..old.clone()
            },
            Snapshot {
                instructions: Some("do".into()),
                ..old
            },
        ] {
            let report = classify(&locked, &live, &ToolFilter::default());
            assert!(
                report.has_drift()
                    && report.sources[0].class == Class::Unknown
                    && report.tools.is_empty()
            );
        }
    }

    #[test]
    fn the_report_has_its_shape() {
        let mut report = check(json!([{"name": "a"}]), json!([]));
        report.merge(unchecked(
            &NodePath::parse("/t").unwrap(),
            SourceCause::SpawnNotFound,
            "no such command",
        ));
        let value = report.to_json();
        assert_eq!(value["format_version"], 1);
        assert_eq!(
            value["summary"],
            json!({"same": 0, "equivalent": 0, "text": 0, "compatible": 0, "unknown": 0, "breaking": 0, "security": 0, "gone": 1, "added": 0, "unchecked": 1})
        );
        assert_eq!(
            value["sources"][0]["findings"][0]["rule"],
            "source-unavailable"
        );
        let members: Vec<_> = value["tools"][0]["findings"][0]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(
            members,
            [
                "class", "message", "new", "old", "pointer", "remedy", "rule", "severity",
                "witness"
            ]
        );
    }
}
