//! `accept --left-out`: accepts that a lock leaves parts out or keeps an older state of a source.

use broker_audits_file::LeftOutAudit;
use broker_build::left_out_audits::shown;
use broker_build::plan::nearest;
use broker_model::lock::{LeftOutPart, Lock};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode};

use crate::audits::Date;

/// Maximum number of parts that a message names.
const MAX_NAMED: usize = 5;

/// Returns the parts that the options name; all of them without a source. An error without such a
/// part.
pub fn parts<'a>(
    lock: &'a Lock,
    source: Option<&str>,
    tool: Option<&str>,
) -> Result<Vec<LeftOutPart<'a>>, Vec<Diagnostic>> {
    let all = lock.left_out_parts();
    let wanted = |part: &&LeftOutPart<'_>| {
        source.is_none_or(|source| part.source.as_str() == source)
            && tool.is_none_or(|tool| part.tool.as_deref() == Some(tool))
    };
    let named: Vec<_> = all.iter().filter(wanted).cloned().collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let of = source.map_or(String::new(), |source| {
        format!(" of `{}`", shown_line(source, 200))
    });
    let message = match tool {
        Some(tool) => format!(
            "the lock does not leave out a tool `{}`{of}",
            shown_line(tool, 100)
        ),
        None => format!("the lock leaves no part{of} out"),
    };
    let help = match (all.as_slice(), tool) {
        ([], _) => "None: the lock is complete.".to_owned(),
        (parts, Some(tool)) => {
            let names: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.tool.as_deref())
                .collect();
            format!("The nearest: {}.", nearest([tool].into_iter(), &names, 3))
        }
        (parts, None) => {
            let named: Vec<_> = parts.iter().take(MAX_NAMED).map(shown).collect();
            format!("It leaves out {}.", named.join(", "))
        }
    };
    Err(vec![
        Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help),
    ])
}

/// Returns an error if a violation names all of the parts: no entry can accept them.
pub fn refuse_violations(parts: &[LeftOutPart<'_>]) -> Result<(), Vec<Diagnostic>> {
    let is_refused = |part: &LeftOutPart<'_>| part.code == LeftOutCode::Violation;
    match parts.first().filter(|_| parts.iter().all(is_refused)) {
        None => Ok(()),
        Some(part) => {
            let message = format!(
                "a violation refuses {}, and nothing accepts it",
                shown(part)
            );
            let help = "Read the reason of the violation in the audits file; if it was wrong, remove the entry and run `broker-gen lock`.";
            Err(vec![
                Diagnostic::error(DiagnosticCode::Violation, message).help(help),
            ])
        }
    }
}

/// The entry that accepts a part.
pub fn entry(part: &LeftOutPart<'_>, who: &str, date: Date, notes: Option<&str>) -> LeftOutAudit {
    LeftOutAudit {
        source: part.source.clone(),
        tool: part.tool.clone(),
        reason: part.code.as_str().to_owned(),
        digest: part.digest.clone(),
        who: who.to_owned(),
        date: date.to_string(),
        notes: notes.map(str::to_owned),
    }
}
