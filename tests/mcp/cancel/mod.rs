//! A call whose caller cancels it or leaves: it ends, and its server gets `notifications/cancelled`. One file
//! for each kind of caller.

mod http;
mod mcp_http;
mod reason;
mod sdk;
mod session;
mod stdio;
