//! Drift: a live source compared with what was reviewed of it.
//!
//! [`classify`] is one pure function: it takes a lock and a snapshot, and returns a [`Report`].
//! `broker-gen check` and a refused start print that report, and a running broker keeps it.

#![forbid(unsafe_code)]

mod access;
mod annotations;
mod class;
mod classify;
mod difference;
pub mod encoded;
mod fail_on;
mod icons;
mod package;
mod property_rename;
mod rename;
mod report;
mod rules;
mod schema;
mod source;
mod titles;
mod tool;
mod wire;
mod wording;
mod words;

pub use access::{
    AccessCause, AccessChange, AccessChangeKind, AccessTool, AccessTools, MovedHint,
    access_changes, access_lines,
};
pub use class::{Class, FindingSeverity};
pub use classify::{classify, left_out_changed, unchecked};
pub use difference::{Difference, differences};
pub use fail_on::FailOn;
pub use package::SeenPackage;
pub use rename::name_moves;
pub use report::{BUILD, Finding, RELOCK, REPORT_VERSION, Report, SERVE, SourceDrift, ToolDrift};
pub use rules::{Rule, add_rule_ids, rules};
#[cfg(feature = "schema")]
pub use wire::json_schema;
pub use wire::{LintResult, ReportWire};

#[cfg(test)]
mod listing_tests;
#[cfg(test)]
mod tests;
