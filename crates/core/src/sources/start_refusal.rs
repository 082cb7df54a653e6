//! The refusal of a plain start, as callers see it: the sources that caused it, with class and cause,
//! and no text of a server.

use broker_drift::{Class, Finding, Report};
use broker_model::{CallCode, SourceCause};
use serde_json::{Map, Value, json};

use crate::catalog::Catalog;
use crate::errors::error::CoreError;

/// The maximum number of sources in the details of the error.
const MAX_NAMED: usize = 20;

/// The remedy for a source that differs from the lock.
const DRIFT_REMEDY: &str = "Tell the operator: review the differences with `broker-gen check`, accept them with `broker-gen lock`, and start the broker with the new lock.";

/// Why a plain start was refused.
#[derive(Debug)]
pub(crate) struct StartRefusal {
    /// The sources that caused it, the most important one first.
    sources: Vec<RefusingSource>,
}

/// A source that refused the start.
#[derive(Clone, Debug)]
struct RefusingSource {
    source: usize,
    class: Class,
    /// Why it could not be compared with the lock, if it could not.
    cause: Option<SourceCause>,
    /// The variables that are not set, if that is the cause.
    missing: Option<String>,
}

impl StartRefusal {
    /// Makes a refusal by these sources.
    pub(crate) fn new<'a>(reports: impl Iterator<Item = (usize, &'a Report)>) -> Self {
        let mut sources: Vec<_> = reports
            .filter_map(|(source, report)| {
                Some(RefusingSource {
                    source,
                    class: report.refusing_class()?,
                    cause: cause_of(report),
                    missing: missing_variables(report),
                })
            })
            .collect();
        // `unchecked` is the greatest class: a missing comparison comes before drift.
        sources.sort_by_key(|one| std::cmp::Reverse(one.class));
        Self { sources }
    }
}

/// Returns the finding on a source that could not be compared with the lock.
fn unchecked(report: &Report) -> Option<&Finding> {
    let mut sources = report.sources.iter();
    let unchecked = sources.find(|one| one.class == Class::Unchecked)?;
    unchecked.findings.first()
}

/// Returns the reason why the source could not be compared with the lock.
fn cause_of(report: &Report) -> Option<SourceCause> {
    let name = unchecked(report)?.new.as_ref()?.get("cause")?;
    let known = SourceCause::ALL.iter();
    known.copied().find(|cause| *name == cause.as_str())
}

/// Returns the message about variables that are not set. It does not contain text of a server.
fn missing_variables(report: &Report) -> Option<String> {
    let is_cause = cause_of(report) == Some(SourceCause::EnvMissing);
    let finding = unchecked(report).filter(|_| is_cause)?;
    Some(finding.message.clone())
}

impl StartRefusal {
    /// Returns the error of every call. Names only sources with an entry that exists for the caller.
    pub(crate) fn error(&self, catalog: &Catalog, admits: impl Fn(u32) -> bool) -> Box<CoreError> {
        let is_visible = |one: &&RefusingSource| {
            let tools = catalog.sources[one.source].items.iter();
            tools.copied().any(|at| admits(catalog.item(at).entry))
        };
        let named: Vec<&RefusingSource> = self.sources.iter().filter(is_visible).collect();
        let path = |one: &RefusingSource| catalog.sources[one.source].path;
        let members = |one: &RefusingSource| {
            let mut members = Map::new();
            members.insert("source".to_owned(), path(one).into());
            members.insert("class".to_owned(), one.class.as_str().into());
            if let Some(cause) = one.cause {
                members.insert("cause".to_owned(), cause.as_str().into());
            }
            members
        };
        let Some(first) = named.first() else {
            let message = "the start of the broker was refused";
            let error = CoreError::new(CallCode::StartRefused, message);
            return Box::new(error.maybe_executed(false));
        };
        let (why, hint) = match first.cause {
            Some(cause) => ("could not be compared with the lock", cause.remedy()),
            None => ("differs from the lock", DRIFT_REMEDY),
        };
        let class = first.class.as_str();
        let mut message = format!(
            "the start of the broker was refused: `{}` {why} (class `{class}`)",
            path(first)
        );
        if let Some(missing) = &first.missing {
            message = format!("{message}: {missing}");
        }
        let mut details = members(first);
        let all = named.iter().take(MAX_NAMED);
        let all: Vec<Value> = all.map(|one| Value::from(members(one))).collect();
        details.insert("sources".to_owned(), json!(all));
        let error = CoreError::new(CallCode::StartRefused, message).hint(hint);
        Box::new(error.details(details.into()).maybe_executed(false))
    }
}
