//! What is wrong with each source, in words, with what mends it: judges what an examination brought to
//! light and writes it down. Starts nothing and prints nothing.

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

/// One source with everything that is to be said of it.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    path: &'static str,
    required: bool,
    /// The worst first.
    findings: Vec<Finding>,
    facts: Option<Facts>,
}

/// What is known of a source that was started.
#[derive(Debug)]
struct Facts {
    took: Duration,
    startup_timeout: Duration,
    noise_lines: u64,
    locked_revision: &'static str,
    listed: Result<ToolListing, SourceFailure>,
}

/// What is known of a source that listed its tools.
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
    /// Judges one source. `config` is what commands call the config.
    pub(crate) fn of(examined: ExamResult, config: &str) -> Self {
        diagnose::diagnose(examined, config)
    }

    /// Whether somebody has to do something about it.
    pub(crate) fn needs_attention(&self) -> bool {
        self.severity() > Severity::Note
    }

    fn severity(&self) -> Severity {
        let severities = self.findings.iter().map(|finding| finding.severity);
        severities.max().unwrap_or(Severity::Note)
    }
}

/// How many of them somebody has to do something about.
pub(crate) fn attention(all: &[Diagnosis]) -> usize {
    all.iter().filter(|one| one.needs_attention()).count()
}
