//! Jobs: calls that outlive their caller, in the real broker.

mod clients;
mod codes;
mod owners;
mod real_server;
mod restarts;
mod routes;
mod stage;
mod stderr;
mod task_stage;
mod tasks;
mod verbs;
