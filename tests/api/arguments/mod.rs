//! The check of arguments: its bounds, and other callers while one check is costly.

mod bounds;
mod coerce;
mod costly;
mod recorded;
mod step_budget;
