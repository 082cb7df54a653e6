//! Answers questions about an audit log offline. [`explain()`] joins a line with the lock, the audits and the access rules
//! of its moment; [`replay()`] compares recorded calls with another lock and other rules. Starts no server.

#![forbid(unsafe_code)]

mod error;
mod explain;
mod files;
mod git;
mod kept_args;
mod replay;
mod tools;

pub use error::QueryError;
pub use explain::{
    AccessState, Explanation, ItemState, LockState, PastLine, Review, ReviewEntry, RuleState,
    Visible, explain,
};
pub use files::{CompiledLock, ExplainFiles};
pub use replay::{Replay, ReplayFiles, ReplayedCalls, Verdict, replay};
