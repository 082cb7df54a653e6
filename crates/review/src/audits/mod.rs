//! The audits file of a review: it is read by `broker-audits-file`, appended to here, and never rewritten.

mod append;
#[cfg(test)]
mod tests;
mod who;

pub use append::append;
pub use broker_audits_file::{
    Audit, AuditStatus, Audits, Criteria, Date, Decision, Missing, Move, Person, Subject,
    Suppression, audits_file, different, quoted, subjects,
};
pub use who::who;
