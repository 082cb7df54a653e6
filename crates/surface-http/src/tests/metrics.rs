//! The text of the metrics is rendered off the threads of the runtime if it is long.

use std::pin::pin;
use std::task::{Context, Waker};

use broker_metrics::{CatalogDescription, Metrics, SourceDescription, ToolDescription, Transport};
use broker_model::item::ItemKind;
use broker_observe::{Meter, Observers};

use super::*;

/// Returns the metrics of a catalog with so many tools.
fn meter(tools: usize) -> Arc<Meter> {
    let sources = [SourceDescription {
        path: "/a",
        transport: Transport::Pipe,
    }];
    let paths: Vec<&'static str> = (0..tools).map(|at| &*format!("/a/{at}").leak()).collect();
    let tools: Vec<_> = paths
        .iter()
        .map(|path| ToolDescription {
            path,
            upstream_name: path,
            source: 0,
            kind: ItemKind::Tool,
        })
        .collect();
    let metrics = Metrics::new(&CatalogDescription {
        version: "",
        digest: "",
        surface: Transport::Tcp,
        sources: &sources,
        tools: &tools,
    });
    Arc::new(Meter::new(Arc::new(metrics), "", paths.into_iter()))
}

#[test]
fn metrics_of_many_items_are_rendered_off_the_threads_of_the_runtime() {
    // The only thread for long work is occupied until the first poll has returned.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(render_while_the_blocking_thread_is_occupied());
}

async fn render_while_the_blocking_thread_is_occupied() {
    for (tools, is_long) in [(100, false), (101, true)] {
        let mut surface = surface(None, "127.0.0.1:1");
        let own = Arc::get_mut(&mut surface).expect("the only handle");
        own.observers = Observers {
            meter: Some(meter(tools)),
            ..Observers::default()
        };
        let request = get("/metrics").body(Body::empty()).unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let occupied = tokio::task::spawn_blocking(move || released.recv());
        let mut answer = pin!(handle(surface.clone(), request, caller(&surface)));
        let mut context = Context::from_waker(Waker::noop());
        let first = answer.as_mut().poll(&mut context);
        assert_eq!(first.is_pending(), is_long, "{tools} tools");
        drop(release);
        // It ends with the error of a channel without a sender.
        assert!(occupied.await.expect("the thread ends").is_err());
        if is_long {
            assert_eq!(answer.await.status(), 200);
        }
    }
}
