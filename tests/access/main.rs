//! Rules of access in a running broker: what each caller sees and calls, and the end of its right.

mod caller;
mod coerced;
mod differential;
mod matrix;
mod narrowing;
mod oauth;
mod openness;
mod reference;
mod refusals;
mod returning_tools;
mod rights;
mod sessions;
mod shares;
mod stage;
mod status;
mod websocket;
