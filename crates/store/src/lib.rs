//! The store of jobs: in memory, or in a SQLite file. [`JobStore`] asks the thread that owns a [`Store`]; [`Engine`] has the rules
//! of jobs over each store. Independent of MCP, of HTTP and of the call path.

mod bounds;
mod clock;
mod engine;
mod error;
mod expiry;
mod handle;
mod id;
mod job;
mod memory;
mod settings;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod watch;

#[cfg(test)]
mod tests;

pub use bounds::{Bounds, MAX_ERROR_BYTES, MAX_UPSTREAM_BYTES};
pub use clock::{Clock, Now};
pub use engine::Engine;
pub use error::{Failure, FullLimit, OpenError, STORE_UNAVAILABLE, StoreError};
pub use handle::{JobStore, check_file};
pub use id::{JobId, RandomError};
pub use job::{
    CancelOutcome, Claim, Created, Dropped, EventKind, Events, Job, JobEnd, JobEvent, JobStart,
    JobState, ListQuery, NewEvent, NewJob, Page, QueuedOwner, Recovered, Usage,
};
pub use memory::MemoryStore;
pub use settings::StoreSettings;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use store::{Body, EndedJob, Store};
pub use watch::JobWatch;
