//! A required argument is left out.

include!("../golden/plain.rs");

use mcp_broker::typed::Broker;
use tools::plain::hash_text;

async fn misuse(broker: &Broker) {
    let args = hash_text::Args {
        algorithm: None,
        rounds: Some(2),
    };
    drop(broker.call::<hash_text::Tool>(args).await);
}

fn main() {}
