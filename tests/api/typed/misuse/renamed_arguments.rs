//! Required arguments with names that differ from those of the reviewed tool: `source` became `src`,
//! `target` `dest`.

include!("../golden/plain.rs");

use mcp_broker::typed::Broker;
use tools::plain::copy;

async fn misuse(broker: &Broker) {
    let args = copy::Args::new(copy::Required {
        source: "FROM".to_owned(),
        target: "TO".to_owned(),
    });
    drop(broker.call::<copy::Tool>(args.with_new(true)).await);
}

fn main() {}
