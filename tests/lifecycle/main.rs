//! The life of a broker: its config and start, reload, instances, guard, diagnosis, shutdown.

mod audit;
mod audit_explain;
mod audit_kills;
mod audit_replay;
mod audit_shown;
mod config;
mod credentials;
mod doctor;
mod filters;
mod front;
mod guard;
mod instances;
mod metrics;
mod orphans;
mod prometheus;
mod readiness;
mod reload;
mod restored;
mod serve;
mod shutdown;
mod status;
mod traces;
mod trust;
