//! A tool that the lock no longer has.

include!("../golden/plain.rs");

use mcp_broker::typed::Broker;
use tools::plain::hash_file;

async fn misuse(broker: &Broker) {
    let args = hash_file::Args::default();
    drop(broker.call::<hash_file::Tool>(args).await);
}

fn main() {}
