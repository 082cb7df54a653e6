//! The reasons why a comparison, or a part of it, was not made. People read them on standard error; every other format
//! has them as results, so that a job without its comparison is not taken for one without differences.

use broker_drift::{Class, Finding, FindingSeverity};
use broker_model::Diagnostic;
use broker_model::exit::Exit;

/// The errors of a comparison, and the exit that they ask for.
#[derive(Debug)]
pub struct Problems {
    findings: Vec<Finding>,
    exit: Exit,
}

impl Problems {
    /// No problems.
    pub const fn none() -> Self {
        Self {
            findings: Vec::new(),
            exit: Exit::Ok,
        }
    }

    /// Keeps the errors among problems.
    pub fn add(&mut self, problems: &[Diagnostic]) {
        self.exit = self.exit.or(Exit::from_diagnostics(problems));
        let errors = problems.iter().filter(|problem| problem.is_error());
        self.findings.extend(errors.map(finding));
    }

    /// The errors, each as a finding whose rule is the code of the error.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The exit that the errors ask for.
    pub const fn exit(&self) -> Exit {
        self.exit
    }
}

fn finding(problem: &Diagnostic) -> Finding {
    let mut message = problem.whole_message();
    if let Some(file) = &problem.file {
        message = match problem.position {
            Some(at) => format!("{message}\nat {file}:{}:{}", at.line, at.column),
            None => format!("{message}\nat {file}"),
        };
    }
    Finding {
        rule: problem.code.as_str(),
        class: Class::Unchecked,
        severity: FindingSeverity::Error,
        pointer: String::new(),
        old: None,
        new: None,
        witness: None,
        message,
        remedy: problem.remedy().to_owned(),
    }
}
