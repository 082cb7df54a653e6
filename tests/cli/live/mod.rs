//! The program `broker-gen` with scripted servers as its sources.

mod access;
mod bench;
mod check;
mod check_reports;
mod ci;
mod config;
mod config_names;
mod control_characters;
mod doctor;
mod env_empty;
mod lint;
mod lock;
mod lock_at_once;
mod lock_format;
mod lock_gone;
mod lock_in_ci;
mod lock_options;
mod memory;
mod partial;
mod partial_shown;
mod provenance;
mod proxies;
mod schemas;
mod transient;
mod trust;
mod violations;
