//! Streams of the transport HTTP+SSE: their shares.

use super::*;
use broker_core::Broker;
use broker_surface_mcp::http::SSE_STREAM;

/// The number of streams that all loopback addresses may have.
const SHARE: usize = 1_000;

async fn open(surface: &Arc<HttpSurface<impl Broker>>) -> Response<Body> {
    let request = get(SSE_STREAM).header("accept", "text/event-stream");
    let request = request.body(Body::empty()).unwrap();
    handle(surface.clone(), request, caller(surface)).await
}

#[tokio::test]
async fn stream_of_an_old_client_counts_for_its_owner_until_it_ends() {
    let surface = surface(None, "127.0.0.1:1");
    let endpoint = surface.mcp.as_ref().unwrap();
    let mut streams = Vec::new();
    for _ in 0..SHARE {
        let stream = open(&surface).await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    assert_eq!(endpoint.stream_count(), SHARE);
    assert_eq!(open(&surface).await.status(), 429);
    streams.pop();
    let ended = async {
        while endpoint.stream_count() == SHARE {
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    ended.expect("a stream that its client left has ended");
    assert_eq!(open(&surface).await.status(), 200);
}
