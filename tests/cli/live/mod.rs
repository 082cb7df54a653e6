//! The program `broker-gen` with scripted servers as its sources.

mod bench;
mod check;
mod ci;
mod config;
mod doctor;
mod flood;
mod lint;
mod lock;
mod lock_format;
mod naming;
mod partial;
mod provenance;
mod schemas;
mod sizes;
mod unattended;
