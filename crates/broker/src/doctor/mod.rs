//! Diagnoses each source: turns the results of exams into findings with remedies, and renders them.
//! Starts nothing and prints nothing.

mod diagnose;
mod finding;
mod human;
mod json;
mod phrases;
mod runtimes;
mod stderr_hints;

use std::time::Duration;

use broker_drift::Report;
use broker_mcp::SourceFailure;
use broker_wire::Era;

use crate::core::ExamResult;
use finding::{Finding, Severity};

pub(crate) use human::human;
pub(crate) use json::json;

/// The diagnosis of one source.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    path: &'static str,
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
    locked_revision: &'static str,
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
    /// Diagnoses one source. `config` is the name of the config in suggested commands.
    pub(crate) fn of(examined: ExamResult, config: &str) -> Self {
        diagnose::diagnose(examined, config)
    }

    /// Whether the operator has to act.
    pub(crate) fn needs_attention(&self) -> bool {
        self.severity() > Severity::Note
    }

    fn severity(&self) -> Severity {
        let severities = self.findings.iter().map(|finding| finding.severity);
        severities.max().unwrap_or(Severity::Note)
    }
}

/// The number of sources for which the operator has to act.
pub(crate) fn attention(all: &[Diagnosis]) -> usize {
    all.iter().filter(|one| one.needs_attention()).count()
}
