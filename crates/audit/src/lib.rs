//! The audit log of calls: JSON Lines with a chain of hashes and signed checkpoints. [`AuditLog`] writes it on its own
//! thread, [`verify()`] checks it. Independent of the call path, of the catalog and of surfaces.

mod chain;
mod clock;
mod error;
mod facts;
mod file;
mod head;
mod json_schema;
mod key;
mod lane;
mod last_lines;
mod line;
mod log;
mod open_call;
mod queue;
mod settings;
mod shared;
mod throttle;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub use clock::{Clock, Now};
pub use error::AuditError;
pub use facts::{
    Actor, ArgsFacts, CallEndFacts, CallFacts, CallOutcome, DriftFacts, Event, JobFacts, ReadFacts,
    ReloadOutcome, ResultFacts, Target, Versions,
};
pub use file::{Disk, FileLayer, LogFile};
pub use head::{Head, head_of_envelope};
pub use json_schema::json_schema;
pub use key::{AuditKey, KeyError, KeyPair, PublicKey};
pub use lane::Lane;
pub use line::{Kind, Line, LineError, Names, Nullable, Parent, parse};
pub use log::AuditLog;
pub use open_call::OpenCall;
pub use settings::{AuditSettings, Format, LineCopy, OcsfVersion, Rotation, SyncMode};
pub use shared::AuditStatus;
pub use verify::{
    Anchor, Finding, FindingKind, FoundBy, LeftOpen, LinePlace, Report, VerifyError, VerifyOptions,
    read_lines, verify,
};
pub use writer::names::rotated_name;
