//! Both sides of MCP: the broker as a server over standard input and output, and as a client of servers.

mod adapter;
mod cancel;
mod client;
mod clients;
mod conformance;
mod events;
mod http;
mod http_servers;
mod http_source;
mod items;
mod normal_form;
mod real;
mod sdk;
mod search_mode;
mod stdio;
mod unreachable;
mod websocket;
