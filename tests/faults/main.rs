//! Faults of sources, callers and the machine, and the reaction of the broker. Each test reports a figure;
//! `docs/internals/faults.md` lists the faults with their tests and figures.

mod announcements;
mod attacks;
mod callers;
mod callers_chaos;
mod exits;
mod hangs;
mod hostile_text;
mod http_sources;
mod invalid_answers;
mod limits;
mod logs;
mod mass_crash;
mod mcp_clients;
mod memory;
mod retry;
mod secrets;
mod server_output;
mod source_health;
mod startup;
mod timeouts;
mod under_rules;
