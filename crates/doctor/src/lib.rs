//! Diagnoses each source: turns the results of exams into findings with remedies, and renders them. Does not start a
//! source or print.

#![forbid(unsafe_code)]

mod diagnose;
mod drift_report;
mod explain;
mod finding;
mod human;
mod json;
mod phrases;
mod runtimes;
mod start_warnings;
mod stderr_hints;
mod text_diff;

use std::time::Duration;

use broker_drift::Report;
use broker_mcp::SourceFailure;
use broker_wire::Era;

use broker_core::ExamResult;
use finding::{Finding, Severity};

pub use drift_report::{change, report_text, text_between_locks};
pub use explain::{Explanation, explain};
pub use human::human;
pub use json::json;
pub use start_warnings::start_warnings;
pub use stderr_hints::FailedStart;
pub use text_diff::unified;

/// The diagnosis of one source.
#[derive(Debug)]
pub struct Diagnosis {
    path: String,
    required: bool,
    /// The worst first.
    findings: Vec<Finding>,
    facts: Option<Facts>,
}

/// The facts about a source that was started.
#[derive(Debug)]
struct Facts {
    took: Duration,
    startup_timeout: Duration,
    noise_lines: u64,
    locked_revision: Option<String>,
    listed: Result<ToolListing, SourceFailure>,
}

/// The facts about a source that listed its tools.
#[derive(Debug)]
struct ToolListing {
    era: Era,
    revision: String,
    listed: usize,
    exposed: usize,
    hidden: usize,
    withdrawn: usize,
    report: Report,
}

impl Diagnosis {
    /// Diagnoses one source. `config` is the name of the config in suggested commands, `doctor` the command
    /// that shows this diagnosis.
    pub fn new(examined: ExamResult, config: &str, doctor: &str) -> Self {
        diagnose::diagnose(examined, config, doctor)
    }

    /// Whether the operator has to act.
    pub fn needs_attention(&self) -> bool {
        self.severity() > Severity::Note
    }

    fn severity(&self) -> Severity {
        let severities = self.findings.iter().map(|finding| finding.severity);
        severities.max().unwrap_or(Severity::Note)
    }
}

/// Returns the number of sources that need an action of the operator.
pub fn attention(all: &[Diagnosis]) -> usize {
    all.iter().filter(|one| one.needs_attention()).count()
}
