//! Correct use of a type: what the misuse beside it changes.

include!("golden/plain.rs");

use mcp_broker::typed::Broker;
use tools::plain::hash_text;

async fn correct(broker: &Broker) {
    let args = hash_text::Args::new("hello".to_owned());
    drop(broker.call::<hash_text::Tool>(args).await);
}

fn main() {}
