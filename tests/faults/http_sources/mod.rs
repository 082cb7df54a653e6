//! Faults of servers over HTTP, through a broker: the replies to callers, other sources, secrets, load.

mod attacks;
mod field;
mod headers;
mod replies;
mod soak;

use serde_json::{Value, json};

/// The script of a server of this era with these rules for requests.
fn rules(era: &str, rules: &[Value]) -> Value {
    harness::http_script(era, &json!({ "rules": rules }))
}
