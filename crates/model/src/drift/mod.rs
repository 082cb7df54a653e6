//! Drift: a live source held against what was reviewed of it.
//!
//! [`classify`] is one pure function, snapshot in, [`Report`] out; the same report is printed by
//! `broker-gen check`, by a refused start, and kept by the running broker.

mod classify;
mod difference;
mod human;
mod report;

pub use classify::{classify, unchecked};
pub use difference::{Difference, differences};
pub use human::BetweenLocks;
pub use report::{Class, Finding, FindingSeverity, REPORT_VERSION, Report, SourceDrift, ToolDrift};
