//! Sends requests on one path through a broker in this process, over its surface, core and the link to a
//! scripted server, all on one thread; the stdio surface adds its two.

use std::path::Path as FilePath;
use std::sync::atomic::Ordering;

use harness::Run;
use hot_path::http::HttpCaller;
use hot_path::{Path, Surface, server, stdio};
use mcp_broker::core::{LinkFactory, ServerTask};
use mcp_broker::scripted::{self, Addition};
use mcp_broker::typed::{Broker, Options};

use crate::CATALOG;

const SECRET: &str = "a-secret-of-thirty-two-characters";

/// Opens a broker, sends the request of `path` `calls` times, each after the reply to the one before, and
/// closes the broker. Over HTTP, the broker may have an addition.
pub(crate) fn run(path: Path, calls: usize, addition: Addition<'_>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let links = LinkFactory::new(|_| {
        let task: ServerTask = Box::new(|pipes| Box::pin(server::serve(pipes.input, pipes.output)));
        Some(task)
    });
    runtime.block_on(async {
        let broker = Broker::open(&CATALOG, Options::new().link_factory(links))
            .await
            .expect("the broker starts");
        let replies = if path.surface() == Surface::Stdio {
            let (input, output) = stdio::client(path, calls);
            let answers = input.answers();
            let served = scripted::serve_stdio(broker.core(), input, output).await;
            served.expect("the threads start");
            // The first answer is that to `initialize`.
            answers.count() - 1
        } else {
            let caller = HttpCaller::new(path, SECRET, calls);
            let replies = caller.replies();
            scripted::serve_http(broker.core(), SECRET, addition, caller).await;
            replies.load(Ordering::Relaxed)
        };
        assert_eq!(replies, calls, "{}: replies and calls", path.name());
        broker.close().await;
    });
}

/// The cost of one call: the difference between runs of `calls` and of twice as many, so that start and end
/// drop out.
pub(crate) const fn per_call(runs: [u64; 2], calls: usize) -> u64 {
    let calls = calls as u64;
    (runs[1].saturating_sub(runs[0]) + calls / 2) / calls
}

/// The version of the compiler.
pub(crate) fn compiler() -> String {
    let output = Run::new(FilePath::new("rustc")).args(["-V"]).output();
    output.stdout.trim().to_owned()
}
