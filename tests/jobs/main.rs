//! Jobs: calls that outlive their caller, in the real broker.

mod clients;
mod codes;
mod owners;
mod records;
mod restarts;
mod routes;
mod stage;
mod verbs;
