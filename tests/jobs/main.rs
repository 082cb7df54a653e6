//! Jobs: calls that outlive their caller, in the real broker.

mod attacks;
mod clients;
mod clock;
mod codes;
mod cuts;
mod front;
mod many_streams;
mod mcp_keys;
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
mod task_sdks;
mod task_stage;
mod tasks;
mod tasks_attack;
mod tasks_feed;
mod tasks_legacy;
mod tasks_modern;
mod verbs;
