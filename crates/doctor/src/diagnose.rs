//! Turns the result of an exam into findings: the failure of a start and its likely reason, noise, a
//! slow start, and differences from the lock.

use std::time::Duration;

use broker_drift::{Class, Finding as Difference, Report};
use broker_mcp::{Carrier, SourceFailure};
use broker_model::Diagnostic;
use broker_model::text::{counted, shown_line};

use super::explain::explain;
use super::finding::{Code, Finding, Severity};
use super::start_warnings;
use super::stderr_hints::FailedStart;
use super::{Diagnosis, Facts, ToolListing};
use broker_core::{ExamResult, ListingNotes, StartedSource};

/// A start that takes longer than this is slow, even if the config allows more.
const SLOW_START: Duration = Duration::from_secs(10);
/// The maximum number of differences of one class that are shown; `broker-gen check` shows all.
const MAX_DIFFERENCES: usize = 3;
/// The maximum bytes of a value of a difference that is shown.
const MAX_VALUE_BYTES: usize = 60;

pub(crate) fn diagnose(examined: ExamResult, config: &str, doctor: &str) -> Diagnosis {
    let (mut findings, facts) = match examined.outcome {
        Ok(started) => {
            let findings = check_started(&started, config, doctor);
            (findings, Some(facts(started, examined.locked_revision)))
        }
        Err(problems) => (problems.iter().map(explain_variable).collect(), None),
    };
    // A stable sort: of equal severity, the first finding explains more.
    findings.sort_by_key(|finding: &Finding| std::cmp::Reverse(finding.severity));
    Diagnosis {
        path: examined.path,
        required: examined.required,
        findings,
        facts,
    }
}

fn facts(started: StartedSource, locked_revision: Option<String>) -> Facts {
    let exam = started.exam;
    let listed = exam.outcome.map(|(era, snapshot)| {
        let tools = started.tools;
        ToolListing {
            era,
            revision: shown_line(&snapshot.protocol_version, 40),
            listed: tools.as_ref().map_or(0, |tools| tools.listed),
            exposed: tools.as_ref().map_or(0, |tools| tools.exposed),
            hidden: tools.as_ref().map_or(0, |tools| tools.hidden),
            withdrawn: tools.as_ref().map_or(0, |tools| tools.withdrawn),
            report: tools.map(|tools| tools.report).unwrap_or_default(),
        }
    });
    Facts {
        took: exam.took,
        startup_timeout: started.startup_timeout,
        noise_lines: exam.noise_lines,
        locked_revision,
        listed,
    }
}

fn explain_variable(problem: &Diagnostic) -> Finding {
    let place = match (&problem.file, &problem.pointer) {
        (Some(file), Some(pointer)) => vec![format!("at {file} {pointer}")],
        (_, Some(pointer)) => vec![format!("at {pointer}")],
        _ => Vec::new(),
    };
    Finding {
        code: problem.code.as_str(),
        cause: None,
        severity: Severity::Error,
        message: problem.message.clone(),
        details: place,
        remedy: problem.remedy().to_owned(),
    }
}

fn check_started(started: &StartedSource, config: &str, doctor: &str) -> Vec<Finding> {
    let exam = &started.exam;
    let mut findings = Vec::new();
    let mut noise_is_explained = false;
    if let Err(failure) = &exam.outcome {
        let finding = explain_failure(failure, started, doctor);
        noise_is_explained = [Code::UsageText, Code::TerminalWanted]
            .iter()
            .any(|code| code.as_str() == finding.code);
        findings.push(finding);
    }
    if let Some(tools) = &started.tools {
        findings.extend(summarize_report(&tools.report, config));
        findings.extend(summarize_notes(&tools.notes));
        findings.extend(check_time(exam.took, started.startup_timeout));
    }
    if exam.noise_lines > 0 && !noise_is_explained {
        let lines = counted(exam.noise_lines as usize, "line");
        findings.push(Finding {
            details: exam.noise.iter().take(1).map(|line| format!("stdout: {line}")).collect(),
            ..Finding::new(
                Code::StdoutNoise,
                Severity::Warning,
                format!("it prints {lines} to stdout that are not MCP messages; they are skipped"),
                "Make it log to stderr: stdout is for MCP messages only. An option such as `--quiet` may help.",
            )
        });
    }
    // A process that is stopped gets no signal: the failure says why.
    let is_stopped = exam
        .outcome
        .as_ref()
        .is_err_and(|failure| failure.process_stopped);
    let ending = exam.ending.as_ref().filter(|_| !is_stopped);
    findings.extend(start_warnings::findings(&started.start_hints, ending));
    if exam.carrier == Some(Carrier::HttpSse) {
        findings.push(Finding::new(
            Code::TransportDeprecated,
            Severity::Warning,
            "it supports only the transport HTTP+SSE, which is deprecated since MCP 2025-03-26",
            "Use its URL for streamable HTTP if it has one, often `/mcp`, or update the server.",
        ));
    }
    if exam.invalid_utf8_lines > 0 {
        let lines = counted(exam.invalid_utf8_lines as usize, "line");
        findings.push(Finding::new(
            Code::TextRepaired,
            Severity::Warning,
            format!("it sends {lines} that are not UTF-8; invalid bytes are replaced"),
            "Make the server write UTF-8, or report it to its maintainers.",
        ));
    }
    findings
}

fn explain_failure(failure: &SourceFailure, started: &StartedSource, doctor: &str) -> Finding {
    let exam = &started.exam;
    let start = FailedStart {
        failure,
        program: &started.program,
        withheld: &started.withheld,
        empty_variables: &started.empty_variables,
        hints: &started.start_hints,
        stderr: &exam.stderr,
        stdout: &exam.noise,
    };
    let explained = explain(start, doctor);
    let cause = failure.cause.as_str();
    let (code, message, mut details) = match explained.reason {
        Some((code, message)) => (code, message, vec![failure.message.clone()]),
        None => (cause, failure.message.clone(), Vec::new()),
    };
    // A line that is not a message has its own finding.
    let said = failure.said.as_deref().filter(|_| exam.noise.is_empty());
    details.extend(said.map(String::from));
    details.extend(explained.lines);
    Finding {
        code,
        cause: Some(cause),
        severity: Severity::Error,
        message,
        details,
        remedy: explained.remedy,
    }
}

/// Returns the parts of the listing that are not used, and its warnings.
fn summarize_notes(notes: &ListingNotes) -> Vec<Finding> {
    let mut findings = Vec::new();
    let count = notes.left_out_count();
    if count > 0 {
        let mut details: Vec<_> = notes.lines().collect();
        if let Some(more @ 1..) = count.checked_sub(details.len()) {
            details.push(format!("and {more} more"));
        }
        findings.push(Finding {
            details,
            ..Finding::new(
                Code::LeftOut,
                Severity::Warning,
                format!("{} of its listing cannot be used", counted(count, "part")),
                "Hide these parts with a filter, or follow the remedy of each.",
            )
        });
    }
    if !notes.warnings().is_empty() {
        findings.push(Finding {
            details: notes.warnings().to_vec(),
            ..Finding::new(
                Code::OddListing,
                Severity::Note,
                "its listing is odd, which changes nothing",
                "Report it to the server's maintainers.",
            )
        });
    }
    findings
}

fn check_time(took: Duration, allowed: Duration) -> Option<Finding> {
    if took < SLOW_START && took < allowed / 2 {
        return None;
    }
    let (took, allowed) = (took.as_secs_f64(), allowed.as_secs_f64());
    Some(Finding::new(
        Code::SlowStart,
        Severity::Warning,
        format!(
            "it took {took:.1} s until its tools were listed; `startup_timeout` is {allowed} s"
        ),
        "Run the command once by hand so that it can install, pin its version, or raise `startup_timeout`.",
    ))
}

/// Returns one finding for each class of difference, the worst first.
fn summarize_report(report: &Report, config: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for class in Class::ALL.into_iter().rev() {
        let tools = report.tools.iter().filter(|tool| tool.class == class);
        let sources = report.sources.iter().filter(|source| source.class == class);
        let (tools, sources): (Vec<_>, Vec<_>) = (tools.collect(), sources.collect());
        let about_tools = tools.iter().flat_map(|tool| {
            let name = shown_line(&tool.tool, 100);
            tool.findings
                .iter()
                .map(move |found| (format!("`{name}`: "), found))
        });
        let about_sources = sources
            .iter()
            .flat_map(|source| source.findings.iter().map(|found| (String::new(), found)));
        let all: Vec<_> = about_sources.chain(about_tools).collect();
        let Some((_, first)) = all.first() else {
            continue;
        };
        let mut details: Vec<_> = all
            .iter()
            .take(MAX_DIFFERENCES)
            .map(|(name, found)| line(name, found))
            .collect();
        if let Some(more @ 1..) = all.len().checked_sub(MAX_DIFFERENCES) {
            details.push(format!(
                "and {more} more; `broker-gen check --config {config}` shows all"
            ));
        }
        let severity = if class.refuses() {
            Severity::Error
        } else {
            Severity::Note
        };
        findings.push(Finding {
            details,
            ..Finding::new(
                Code::Drift,
                severity,
                summary(class, tools.len()),
                shown_line(&first.remedy, 400),
            )
        });
    }
    findings
}

fn summary(class: Class, tools: usize) -> String {
    let (what, plural) = match tools {
        0 => ("the source itself".to_owned(), false),
        count => (counted(count, "tool"), count > 1),
    };
    let meaning = match class {
        Class::Same => return format!("{what} has changes that do not affect calls"),
        Class::Added if plural => {
            return format!("{what} are new; they stay hidden until reviewed");
        }
        Class::Added => return format!("{what} is new; it stays hidden until reviewed"),
        Class::Gone => "no longer listed",
        Class::Unchecked => "could not be checked",
        Class::Security => "less safe than reviewed",
        Class::Breaking => "calls or results that fit the lock are no longer valid",
        Class::Unknown => "not proven to mean the same",
        Class::Compatible => "the schema changed, and calls that fit the lock stay valid",
        Class::Text => "text that a model reads changed",
        Class::Equivalent => "written in another way, with the same meaning",
    };
    let differ = if plural { "differ" } else { "differs" };
    format!(
        "{what} {differ} from the lock, class `{}`: {meaning}",
        class.as_str()
    )
}

/// Returns one difference in one line, with both values if they are short.
fn line(name: &str, found: &Difference) -> String {
    let mut line = format!("{name}{} [{}]", shown_line(&found.message, 300), found.rule);
    if !found.pointer.is_empty() {
        line = format!("{line} at {}", shown_line(&found.pointer, 200));
    }
    if let (Some(old), Some(new)) = (&found.old, &found.new) {
        let (old, new) = (old.to_string(), new.to_string());
        if old.len().max(new.len()) <= MAX_VALUE_BYTES {
            line = format!(
                "{line}: {} is now {}",
                shown_line(&old, 2 * MAX_VALUE_BYTES),
                shown_line(&new, 2 * MAX_VALUE_BYTES)
            );
        }
    }
    line
}
