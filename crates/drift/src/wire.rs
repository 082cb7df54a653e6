//! The wire form of the report: the JSON of `check`, `diff` and a refused start. Nothing reads it back.
//!
//! The published JSON Schema is made from the same types.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use broker_model::NodePath;
use broker_model::digest::Digest;

use super::access::AccessChange;
use super::class::Class;
use super::report::{Finding, REPORT_VERSION, Report, SourceDrift, ToolDrift};

/// The differences between some sources and the lock. Members may be added within one version.
#[derive(Debug, Serialize)]
#[serde(rename = "Report")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportWire<'a> {
    /// The version of this format.
    #[cfg_attr(feature = "schema", schemars(extend("const" = REPORT_VERSION)))]
    format_version: u64,
    /// One for each tool that is not the same.
    tools: &'a [ToolDrift],
    /// Differences of whole sources.
    sources: &'a [SourceDrift],
    /// Who gains or loses what by the rules of access; absent without a change. Of live sources, what would change if
    /// they were locked.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    access: &'a [AccessChange],
    /// The number of tools and sources of each class.
    #[cfg_attr(feature = "schema", schemars(with = "Summary"))]
    summary: BTreeMap<Class, usize>,
    /// Findings of the lint in the live texts, changed or not; absent without findings, and in a report on two
    /// locks.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    lint: &'a [LintResult],
    /// Why the comparison, or a part of it, was not made; absent if all was compared.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    problems: Vec<ReportProblem<'a>>,
}

/// A reason for which the comparison, or a part of it, was not made.
#[derive(Debug, Serialize)]
#[serde(rename = "Problem")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReportProblem<'a> {
    /// The code of the error.
    code: &'a str,
    /// The place and the cause.
    message: &'a str,
    /// The remedy.
    remedy: &'a str,
}

/// A tool, or the texts of a source itself, with findings of the lint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename = "Linted")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LintResult {
    /// The node on which the source is mounted.
    pub source: NodePath,
    /// The server's name of the tool; null for the source itself.
    pub tool: Option<String>,
    /// The path for callers.
    pub path: String,
    /// The digest to which a suppression is bound.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "String", regex(pattern = broker_model::digest::PATTERN))
    )]
    pub digest: Digest,
    /// At least one; `new` is the escaped text around the place.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub findings: Vec<Finding>,
}

/// A count for each class.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "a map with these keys is written")]
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

impl Report {
    /// The JSON form, with findings of the lint, and with the reasons for which something was not compared as findings
    /// whose rule is the code of an error.
    pub fn wire<'a>(&'a self, lint: &'a [LintResult], problems: &'a [Finding]) -> ReportWire<'a> {
        ReportWire {
            format_version: REPORT_VERSION,
            tools: &self.tools,
            sources: &self.sources,
            access: &self.access,
            summary: self.summary(),
            lint,
            problems: problems
                .iter()
                .map(|problem| ReportProblem {
                    code: problem.rule,
                    message: &problem.message,
                    remedy: &problem.remedy,
                })
                .collect(),
        }
    }

    /// The JSON form.
    pub fn to_json(&self) -> Value {
        json!(self.wire(&[], &[]))
    }
}

/// The schema of the report, draft 7.
#[cfg(feature = "schema")]
pub fn json_schema() -> Value {
    use broker_model::json_schema::{Contract, generate};
    generate::<ReportWire<'_>>(Contract::Serialize)
}
