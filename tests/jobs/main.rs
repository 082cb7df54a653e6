//! Jobs: calls that outlive their caller, in the real broker.

mod clients;
mod owners;
mod restarts;
mod routes;
mod stage;
