//! The program `broker-gen` with scripted servers as its sources.

mod bench;
mod check;
mod ci;
mod config;
mod flood;
mod lint;
mod lock;
mod naming;
mod partial;
mod provenance;
mod schemas;
mod sizes;
mod unattended;
