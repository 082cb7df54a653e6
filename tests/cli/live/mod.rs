//! The program `broker-gen` with scripted servers as its sources.

mod access;
mod bench;
mod check;
mod ci;
mod config;
mod config_names;
mod control_characters;
mod doctor;
mod lint;
mod lock;
mod lock_format;
mod lock_in_ci;
mod lock_options;
mod memory;
mod provenance;
mod proxies;
mod schemas;
mod trust;
