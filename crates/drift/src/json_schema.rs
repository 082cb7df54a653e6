//! The drift report as JSON: of `check`, of `diff`, and of a refused start.
#![expect(
    dead_code,
    reason = "the fields describe a file; nothing is read into them"
)]

use schemars::JsonSchema;
use serde_json::Value;

/// The schema of the report, draft 7.
pub fn report() -> Value {
    broker_model::json_schema::generate::<Report>()
}

/// What differs between some sources and the lock. Members may be added within one version.
#[derive(JsonSchema)]
struct Report {
    /// The version of this shape.
    #[schemars(extend("const" = crate::REPORT_VERSION))]
    format_version: u64,
    /// One for each tool that is not the same.
    tools: Vec<ToolDrift>,
    /// What concerns a whole source.
    sources: Vec<SourceDrift>,
    /// How many tools and sources there are of each class.
    summary: Summary,
    /// What the lint of a check found in what the servers say now, changed or not; absent where it
    /// found nothing, and in a report on two locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    lint: Vec<Linted>,
}

/// A tool, or what a source says of itself, with texts to look at.
#[derive(JsonSchema)]
struct Linted {
    /// The node that the source is mounted on.
    source: String,
    /// The server's name for the tool; null for what the source says of itself.
    tool: Option<String>,
    /// Where callers find it.
    path: String,
    /// What a suppression is bound to.
    #[schemars(regex(pattern = r"^sha256/1:[0-9a-f]{64}$"))]
    digest: String,
    /// At least one; `new` is the text around the place, escaped.
    #[schemars(length(min = 1))]
    findings: Vec<Finding>,
}

/// A tool that is not the same.
#[derive(JsonSchema)]
struct ToolDrift {
    /// The node that its source is mounted on.
    source: String,
    /// The server's name for it.
    tool: String,
    /// Where callers find it; for an added tool, where they would.
    path: String,
    /// The worst finding's.
    class: Class,
    /// At least one.
    #[schemars(length(min = 1))]
    findings: Vec<Finding>,
}

/// What concerns a whole source.
#[derive(JsonSchema)]
struct SourceDrift {
    /// The node that it is mounted on.
    source: String,
    /// The worst finding's.
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
    /// What it means.
    class: Class,
    /// How loud it is.
    severity: FindingSeverity,
    /// Where: into the raw tool, or into the source's snapshot; empty for the whole.
    pointer: String,
    /// The reviewed value; null where there was none.
    old: Value,
    /// The live value; null where there is none.
    new: Value,
    /// A call or an answer that shows it; null where there is none.
    witness: Value,
    /// What happened, in one sentence.
    message: String,
    /// The command that mends it.
    remedy: String,
}

/// What a difference means, from harmless to worst; `added` and `unchecked` stand outside.
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
