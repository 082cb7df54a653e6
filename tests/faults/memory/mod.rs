//! Memory under faults: its estimate, and what callers and servers can make the broker use.

mod callers;
#[cfg(target_os = "linux")]
mod estimate;
mod listings;
mod requests;
mod servers;
#[cfg(target_os = "linux")]
mod sessions;
