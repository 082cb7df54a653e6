//! The diagnosis as one JSON object; `docs/api.md` documents it.

use broker_wire::Era;
use serde_json::{Map, Value, json};

use super::finding::Finding;
use super::{Diagnosis, Facts, ToolListing, attention};

/// The version of the format.
const FORMAT_VERSION: u64 = 1;

/// Returns the complete object. `catalog_digest` is the digest of the catalog that the sources were compared with.
pub fn json(all: &[Diagnosis], catalog_digest: Option<&str>) -> Value {
    let attention = attention(all);
    json!({
        "format_version": FORMAT_VERSION,
        "ok": attention == 0,
        "catalog_digest": catalog_digest,
        "sources": all.iter().map(source).collect::<Vec<_>>(),
        "summary": { "sources": all.len(), "need_attention": attention },
    })
}

fn source(one: &Diagnosis) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    put("path", one.path.as_str().into());
    put("required", one.required.into());
    put("ok", (!one.needs_attention()).into());
    put("findings", one.findings.iter().map(finding).collect());
    if let Some(facts) = &one.facts {
        start(facts, &mut put);
    }
    Value::Object(out)
}

fn start(facts: &Facts, put: &mut impl FnMut(&str, Value)) {
    put("took_ms", (facts.took.as_millis() as u64).into());
    put(
        "startup_timeout_ms",
        (facts.startup_timeout.as_millis() as u64).into(),
    );
    put("noise_lines", facts.noise_lines.into());
    put(
        "locked_protocol_version",
        facts.locked_revision.as_deref().into(),
    );
    let Ok(listed) = &facts.listed else {
        return;
    };
    let ToolListing {
        era,
        revision,
        listed,
        exposed,
        hidden,
        withdrawn,
        report,
    } = listed;
    put("protocol_version", revision.as_str().into());
    let era = match era {
        Era::Modern => "modern",
        Era::Legacy => "legacy",
    };
    put("era", era.into());
    let tools = json!({
        "listed": listed, "exposed": exposed, "hidden": hidden, "withdrawn": withdrawn,
    });
    put("tools", tools);
    put("drift", report.to_json());
}

fn finding(finding: &Finding) -> Value {
    json!({
        "code": finding.code,
        "cause": finding.cause,
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "details": finding.details,
        "remedy": finding.remedy,
    })
}
