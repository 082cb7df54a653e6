//! SARIF 2.1.0: a result for each finding, on its line of the lock, with a fingerprint that is stable as
//! long as the finding exists.

use std::collections::BTreeMap;

use broker_doctor::change;
use broker_drift::{Class, Finding, FindingSeverity};
use broker_model::digest::Digest;
use broker_model::text::counted;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::places::Places;
use super::{Block, ReportView};
use crate::rules;

/// Maximum number of results: GitHub refuses a run with more.
const MAX_RESULTS: usize = 25_000;
/// Maximum bytes of all results, with the values of each. GitHub takes 10 MB after compression. JSON of this kind is
/// compressed to less than half of its size.
const MAX_BYTES: usize = 20 << 20;

/// The document.
pub(super) fn document(shown: &ReportView<'_>, places: &Places<'_>) -> Value {
    let blocks = shown.blocks();
    let mut used: Vec<&str> = blocks
        .iter()
        .flat_map(|block| block.findings.iter().map(|finding| finding.rule))
        .collect();
    used.sort_unstable();
    used.dedup();
    let index: BTreeMap<&str, usize> = used.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut results = Results::default();
    let mut notifications = Vec::new();
    for block in &blocks {
        for finding in block.findings {
            if finding.class == Class::Unchecked {
                notifications.push(json!({
                    "level": "error",
                    "message": {"text": text(block, finding)},
                    "associatedRule": {"id": finding.rule, "index": index[finding.rule]},
                }));
            }
            results.add(|| result(shown, places, block, finding, index[finding.rule]));
        }
    }
    let is_complete = notifications.is_empty();
    notifications.extend(results.cut());
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "broker-gen",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": used.iter().map(|id| rule(id)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": is_complete,
                "toolExecutionNotifications": notifications,
            }],
            "results": results.list,
        }],
    })
}

/// Results within the limits of a file, the worst first.
#[derive(Default)]
struct Results {
    list: Vec<Value>,
    bytes: usize,
    left_out: usize,
}

impl Results {
    /// Adds a result if it fits; after the first that does not fit, only counts.
    fn add(&mut self, result: impl FnOnce() -> Value) {
        if self.left_out == 0 && self.list.len() < MAX_RESULTS {
            let result = result();
            self.bytes += result.to_string().len();
            if self.bytes <= MAX_BYTES {
                return self.list.push(result);
            }
        }
        self.left_out += 1;
    }

    /// Says how many results are not in the file.
    fn cut(&self) -> Option<Value> {
        let text = format!(
            "{} are not in this file: code scanning takes at most {MAX_RESULTS} results; the format `json` has all",
            counted(self.left_out, "more result")
        );
        (self.left_out > 0).then(|| json!({"level": "warning", "message": {"text": text}}))
    }
}

fn rule(id: &str) -> Value {
    let Some((rule, page)) = rules::find(id) else {
        return json!({"id": id});
    };
    json!({
        "id": id,
        "shortDescription": {"text": rule.reason},
        "help": {"text": format!("{} See {}.", rule.reason, page)},
        "defaultConfiguration": {"level": rule.severity.as_str()},
        "properties": {"class": rule.class.as_str()},
    })
}

fn result(
    shown: &ReportView<'_>,
    places: &Places<'_>,
    block: &Block<'_>,
    finding: &Finding,
    index: usize,
) -> Value {
    let place = places.find(block.source, block.tool, &finding.pointer);
    let mut properties = json!({
        "class": finding.class.as_str(),
        "source": block.source,
        "pointer": finding.pointer,
        "remedy": finding.remedy,
    });
    let values = [
        ("tool", block.tool.map(Value::from)),
        ("old", finding.old.clone()),
        ("new", finding.new.clone()),
        ("witness", finding.witness.clone()),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            properties[name] = value;
        }
    }
    let diff = change(finding, shown.sides.names());
    let mut message = text(block, finding);
    if !diff.is_empty() {
        message = format!("{message}\n\n{diff}");
    }
    json!({
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity.as_str(),
        "kind": if finding.severity == FindingSeverity::Note { "informational" } else { "fail" },
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri(&places.file)},
                "region": {"startLine": place.line, "startColumn": place.column},
            },
            "logicalLocations": [{"fullyQualifiedName": block.title, "kind": "member"}],
        }],
        "partialFingerprints": {
            "brokerFinding/v1": fingerprint(block, finding),
            "primaryLocationLineHash": line_hash(&places.file, block, finding),
        },
        "properties": properties,
    })
}

fn text(block: &Block<'_>, finding: &Finding) -> String {
    let mut text = format!(
        "{}: {}",
        block.title,
        broker_model::text::shown(&finding.message)
    );
    if let Some(example) = finding.example() {
        text = format!("{text}; {example}");
    }
    text
}

/// A fingerprint over the finding's subject, without lines of the lock.
fn fingerprint(block: &Block<'_>, finding: &Finding) -> String {
    let about = json!([finding.rule, block.source, block.tool, finding.pointer]);
    Digest::new("mcp-broker:finding:1", &about)
        .as_str()
        .to_owned()
}

/// Returns the fingerprint of an alert: GitHub distinguishes alerts by it. It covers the path of the lock, so that the
/// locks of one repository have their own alerts.
fn line_hash(lock: &str, block: &Block<'_>, finding: &Finding) -> String {
    let about = json!([lock, finding.rule, block.title, finding.pointer]);
    Digest::new("mcp-broker:finding_line:1", &about)
        .as_str()
        .to_owned()
}

/// Every byte of a path that is not `unreserved` in RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A path as a relative reference of RFC 3986, or a `file:` URI if it is absolute.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", utf8_percent_encode(path, ESCAPED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sarif_path_becomes_a_uri_reference() {
        assert_eq!(uri("a b/c%.lock.json"), "a%20b/c%25.lock.json");
        assert_eq!(uri("/x/é.json"), "file:///x/%C3%A9.json");
    }
}
