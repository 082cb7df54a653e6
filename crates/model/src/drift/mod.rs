//! Drift: a live source compared with what was reviewed of it.
//!
//! [`classify`] is one pure function, snapshot in, [`Report`] out; the same report is printed by
//! `broker-gen check`, by a refused start, and kept by the running broker. It checks values against
//! schemas, and so wants the feature `validate`.

#[cfg(feature = "validate")]
mod annotations;
#[cfg(feature = "validate")]
mod classify;
mod difference;
#[cfg(feature = "validate")]
mod human;
#[cfg(feature = "validate")]
mod icons;
#[cfg(feature = "validate")]
mod package;
#[cfg(feature = "validate")]
mod rename;
mod report;
mod rules;
#[cfg(feature = "validate")]
mod schema;
#[cfg(feature = "validate")]
mod source;
#[cfg(feature = "validate")]
mod text_diff;
#[cfg(feature = "validate")]
mod tool;
#[cfg(feature = "validate")]
mod wording;

#[cfg(feature = "validate")]
pub use classify::{classify, unchecked};
pub use difference::{Difference, differences};
#[cfg(feature = "validate")]
pub use human::BetweenLocks;
#[cfg(feature = "validate")]
pub use rename::name_moves;
pub use report::{
    Class, FailOn, Finding, FindingSeverity, REPORT_VERSION, Report, SourceDrift, ToolDrift,
};
pub use rules::{Rule, rules};
#[cfg(feature = "validate")]
pub use text_diff::{text_diff, unified};

#[cfg(test)]
#[cfg(feature = "validate")]
mod tests;
