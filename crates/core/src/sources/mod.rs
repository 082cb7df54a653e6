//! The sources behind the catalog: each is started from the config, compared with the lock, replaced by
//! a reload, watched and stopped.

pub(crate) mod change_observer;
pub(crate) mod differences;
pub(crate) mod drift_log;
pub(crate) mod drift_state;
pub(crate) mod examine;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod fleet;
pub(crate) mod health;
pub(crate) mod listing_notes;
mod live_resources;
pub(crate) mod reason;
pub(crate) mod reload;
pub(crate) mod served;
pub(crate) mod server_output;
pub(crate) mod setup;
pub(crate) mod slot;
pub(crate) mod start_refusal;
pub(crate) mod startup_gate;
mod time;
pub(crate) mod tool_settings;
pub(crate) mod unavailable;
pub(crate) mod upstream;
