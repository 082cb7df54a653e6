//! Jobs: calls that outlive their caller, in the real broker.

mod clients;
mod codes;
mod front;
mod mcp_keys;
mod owners;
mod restarts;
mod routes;
mod stage;
mod task_sdks;
mod tasks_attack;
mod tasks_legacy;
mod tasks_modern;
mod verbs;
