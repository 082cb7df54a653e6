//! Jobs: calls that outlive their caller, in the real broker.

mod clients;
mod codes;
mod cuts;
mod front;
mod mcp_keys;
mod owners;
mod records;
mod relay;
mod restarts;
mod routes;
mod simple_socket;
mod socket;
mod stage;
mod task_sdks;
mod tasks_attack;
mod tasks_legacy;
mod tasks_modern;
mod verbs;
