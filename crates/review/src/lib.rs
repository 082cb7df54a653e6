//! The review of a lock: the lint of its texts, audits of people, differences between locks, the packages that sources
//! ran, and reports in all formats. Starts no server.

#![forbid(unsafe_code)]

pub mod accept;
pub mod audits;
pub mod baseline;
pub mod dates;
pub mod lint;
pub mod lint_report;
pub mod lock_diff;
pub mod lock_file;
pub mod moved;
pub mod provenance;
pub mod report;
pub mod rules;
pub mod session;
pub mod verify;
pub mod whole_file;
