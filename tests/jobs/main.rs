//! Jobs: calls that outlive their caller, in the real broker.

mod attacks;
mod clients;
mod codes;
mod cuts;
mod many_streams;
mod owners;
mod real_server;
mod records;
mod relay;
mod restarts;
mod routes;
mod simple_socket;
mod socket;
mod stage;
mod stderr;
mod task_stage;
mod tasks;
mod verbs;
