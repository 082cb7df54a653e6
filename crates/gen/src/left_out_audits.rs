//! Entries of the audits file that accept what a lock leaves out, and the check of verify and build: a server that is
//! down for a minute must not shrink a deployment unseen.
//!
//! An entry counts for one part, one reason and one digest. It does not expire, so that the same files always build.

use std::path::Path;

use broker_audits_file::{Elsewhere, LeftOutAudit, Violations, entries_of};
use broker_model::lock::{LeftOutPart, Lock};
use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode};

/// Maximum number of parts that are reported one by one.
const MAX_REPORTED: usize = 20;
/// Maximum number of characters of a name in a message.
const MAX_NAME_CHARS: usize = 120;
/// The remedy for a source whose two launches differ at a place outside its tools.
pub const UNSTABLE_SOURCE: &str = "Make the server return the same values at every start; only members of tools and `/instructions` can be `volatile`.";

/// The entries of an audits file that settle what a lock leaves out.
#[derive(Debug, Default)]
pub struct LeftOutAudits {
    accepted: Vec<LeftOutAudit>,
    violations: Violations,
}

impl LeftOutAudits {
    /// Reads them beside a config. Other entries of the file are not checked.
    pub fn read(config: &Path) -> Result<Self, Vec<Diagnostic>> {
        Ok(Self {
            accepted: entries_of(config, "left_out")?,
            violations: Violations::read(config)?,
        })
    }

    /// Whether an entry accepts the part, or a violation refuses it, so that it is rightly left out.
    pub fn accept(&self, part: &LeftOutPart<'_>) -> bool {
        self.accepted.iter().any(|entry| entry.accepts(part)) || self.violations.settle(part)
    }

    /// The newest entry that accepts the same part of a source at another path.
    fn elsewhere(&self, part: &LeftOutPart<'_>) -> Option<Elsewhere<'_>> {
        let entries = self.accepted.iter();
        let same = entries.filter(|one| one.source != *part.source && one.accepts_elsewhere(part));
        same.max_by(|a, b| a.date.cmp(&b.date))
            .map(|one| Elsewhere {
                path: &one.source,
                who: &one.who,
                date: &one.date,
            })
    }
}

/// The parts of a lock that no entry beside the config accepts, as errors; `shown` is the config in commands.
pub fn check(lock: &Lock, config: &Path, shown: &str) -> Vec<Diagnostic> {
    let parts = lock.left_out_parts();
    if parts.is_empty() {
        return Vec::new();
    }
    let audits = match LeftOutAudits::read(config) {
        Ok(audits) => audits,
        Err(problems) => return problems,
    };
    let open: Vec<_> = parts
        .into_iter()
        .filter(|part| !audits.accept(part))
        .collect();
    let mut problems: Vec<_> = open
        .iter()
        .take(MAX_REPORTED)
        .map(|part| problem(part, &audits, shown))
        .collect();
    if let Some(more @ 1..) = open.len().checked_sub(MAX_REPORTED) {
        let message = format!("{more} more parts of the lock are left out, kept or unvalidated");
        problems.push(Diagnostic::error(
            DiagnosticCode::LeftOutUnaccepted,
            message,
        ));
    }
    problems
}

fn problem(part: &LeftOutPart<'_>, audits: &LeftOutAudits, config: &str) -> Diagnostic {
    let state = part.state();
    let message = format!("{} {state}: {}", shown(part), shown_line(part.reason, 300));
    if part.code == LeftOutCode::Violation {
        let help = remedy(part, config);
        return Diagnostic::error(DiagnosticCode::LeftOutUnaccepted, message).help(help);
    }
    let moved = audits.elsewhere(part);
    let moved = moved.map(|one| one.remedy(part.source, config));
    let help = format!(
        "{}{} To accept it as it is, run `{}`.",
        moved.unwrap_or_default(),
        remedy(part, config),
        accept_command(part, config)
    );
    Diagnostic::error(DiagnosticCode::LeftOutUnaccepted, message).help(help)
}

/// The part in a message: its source, or its tool and source.
pub fn shown(part: &LeftOutPart<'_>) -> String {
    let source = part.source;
    match &part.tool {
        Some(tool) => format!("`{}` of `{source}`", shown_line(tool, MAX_NAME_CHARS)),
        None if part.code == LeftOutCode::More => format!("a number of parts of `{source}`"),
        None if part.is_source => format!("the source `{source}`"),
        None => format!("an object without a name of `{source}`"),
    }
}

/// The command that accepts a part.
pub fn accept_command(part: &LeftOutPart<'_>, config: &str) -> String {
    let config = shell_word(config);
    let tool = part.tool.as_deref();
    let tool = tool.map_or(String::new(), |tool| {
        format!(" --tool {}", shell_word(&shown_line(tool, MAX_NAME_CHARS)))
    });
    let source = part.source;
    format!("broker-gen accept --config {config} --source {source}{tool} --left-out")
}

/// The command or the line of the config that settles a part.
pub fn remedy(part: &LeftOutPart<'_>, config: &str) -> String {
    let (config, source) = (shell_word(config), part.source);
    let lock = format!("broker-gen lock --config {config} --source {source}");
    let settles = part.code.remedy();
    match part.code {
        LeftOutCode::NotStarted => format!(
            "Find the cause with `broker-gen doctor --config {config} --source {source}`, then run `{lock}`; or write `\"disabled\": true` into the source."
        ),
        LeftOutCode::NotLocked => {
            format!("Run `{lock}`, or write `\"disabled\": true` into the source.")
        }
        LeftOutCode::Violation => {
            format!("No violation refuses it any more: run `{lock}`.")
        }
        LeftOutCode::Unstable if part.is_source => UNSTABLE_SOURCE.to_owned(),
        LeftOutCode::PackageChanged => format!("Find out why, then run `{lock}`."),
        LeftOutCode::SchemaRefused | LeftOutCode::LintRefused => match &part.tool {
            Some(tool) => format!(
                "Hide it, with `\"!{}\"` in the `tool_filter` of `{source}`, or: {settles}",
                shown_line(tool, MAX_NAME_CHARS),
            ),
            None => settles.to_owned(),
        },
        LeftOutCode::JsonInvalid
        | LeftOutCode::NotAnObject
        | LeftOutCode::NameInvalid
        | LeftOutCode::NameUnsafe
        | LeftOutCode::MemberInvalid
        | LeftOutCode::TooLarge
        | LeftOutCode::DefinedTwice
        | LeftOutCode::ListCut
        | LeftOutCode::HeaderParam
        | LeftOutCode::Unvalidated
        | LeftOutCode::PathClash
        | LeftOutCode::SecretListed
        | LeftOutCode::Unstable
        | LeftOutCode::More => settles.to_owned(),
    }
}
