//! An argument that the tool does not have.

include!("../golden/plain.rs");

use mcp_broker::typed::Broker;
use tools::plain::hash_text;

async fn misuse(broker: &Broker) {
    let args = hash_text::Args {
        txt: "hello".to_owned(),
        ..hash_text::Args::new("hello".to_owned())
    };
    drop(broker.call::<hash_text::Tool>(args).await);
}

fn main() {}
