//! An argument of another type.

include!("../golden/plain.rs");

use mcp_broker::typed::Broker;
use tools::plain::hash_text;

async fn misuse(broker: &Broker) {
    let args = hash_text::Args {
        text: 5,
        algorithm: None,
        rounds: None,
    };
    drop(broker.call::<hash_text::Tool>(args).await);
}

fn main() {}
