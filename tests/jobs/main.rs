//! Jobs: calls that outlive their caller, in the real broker.

mod attacks;
mod clients;
mod codes;
mod cuts;
mod many_streams;
mod owners;
mod records;
mod relay;
mod restarts;
mod routes;
mod simple_socket;
mod socket;
mod stage;
mod verbs;
