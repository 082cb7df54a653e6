//! The drift report as JSON: from `check`, `diff`, and a refused start.
#![expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]

use schemars::JsonSchema;
use serde_json::Value;

/// The schema of the report, draft 7.
pub fn report() -> Value {
    broker_model::json_schema::generate::<Report>(broker_model::json_schema::Contract::Deserialize)
}

/// The differences between some sources and the lock. Members may be added within one version.
#[derive(JsonSchema)]
struct Report {
    /// The version of this format.
    #[schemars(extend("const" = crate::REPORT_VERSION))]
    format_version: u64,
    /// One for each tool that is not the same.
    tools: Vec<ToolDrift>,
    /// Differences of whole sources.
    sources: Vec<SourceDrift>,
    /// The number of tools and sources of each class.
    summary: Summary,
    /// Findings of the lint in the live texts, changed or not; absent without findings, and in a report on two
    /// locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    lint: Vec<Linted>,
}

/// A tool, or the texts of a source itself, with findings of the lint.
#[derive(JsonSchema)]
struct Linted {
    /// The node on which the source is mounted.
    source: String,
    /// The server's name of the tool; null for the source itself.
    tool: Option<String>,
    /// The path for callers.
    path: String,
    /// The digest to which a suppression is bound.
    #[schemars(regex(pattern = r"^sha256/1:[0-9a-f]{64}$"))]
    digest: String,
    /// At least one; `new` is the escaped text around the place.
    #[schemars(length(min = 1))]
    findings: Vec<Finding>,
}

/// A tool that is not the same.
#[derive(JsonSchema)]
struct ToolDrift {
    /// The node on which its source is mounted.
    source: String,
    /// The server's name of the tool.
    tool: String,
    /// The path for callers; for an added tool, the path that it would get.
    path: String,
    /// The class of the worst finding.
    class: Class,
    /// At least one.
    #[schemars(length(min = 1))]
    findings: Vec<Finding>,
}

/// The differences of a whole source.
#[derive(JsonSchema)]
struct SourceDrift {
    /// The node on which it is mounted.
    source: String,
    /// The class of the worst finding.
    class: Class,
    /// At least one.
    #[schemars(length(min = 1))]
    findings: Vec<Finding>,
}

/// One difference.
#[derive(JsonSchema)]
struct Finding {
    /// The rule's stable id.
    #[schemars(regex(pattern = r"^[a-z0-9]+(-[a-z0-9]+)*$"))]
    rule: String,
    /// The class.
    class: Class,
    /// The severity.
    severity: FindingSeverity,
    /// A pointer into the raw tool, or into the source's snapshot; empty for the whole.
    pointer: String,
    /// The reviewed value; null where there was none.
    old: Value,
    /// The live value; null where there is none.
    new: Value,
    /// A call or an answer as an example; null if there is none.
    witness: Value,
    /// The difference, in one sentence.
    message: String,
    /// The command that resolves it.
    remedy: String,
}

/// The class of a difference, from harmless to worst; `added` and `unchecked` are outside this order.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Class {
    Same,
    Equivalent,
    Text,
    Compatible,
    Unknown,
    Breaking,
    Security,
    Gone,
    Added,
    Unchecked,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FindingSeverity {
    Note,
    Warning,
    Error,
}

/// A count for each class.
#[derive(JsonSchema)]
struct Summary {
    same: u64,
    equivalent: u64,
    text: u64,
    compatible: u64,
    unknown: u64,
    breaking: u64,
    security: u64,
    gone: u64,
    added: u64,
    unchecked: u64,
}
