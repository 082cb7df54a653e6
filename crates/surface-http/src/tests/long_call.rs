//! A call that takes longer than every limit of the listener, over a real connection and with the clock paused: the
//! connection stays open, and the call is answered.

use std::time::Duration;

use broker_core::{Broker, Core, CoreError, Outcome, Request, forward};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use super::{ListenerRole, listener, surface, surface_over};

/// Longer than the minute after which many clients and proxies give up.
const CALL_TIME: Duration = Duration::from_secs(80);

/// A broker whose calls take a while.
#[derive(Clone, Debug)]
struct Slow {
    inner: Core,
}

impl Broker for Slow {
    forward!(
        inner: services, list, describe, search, look_up, items, tools, callable_tools, listed_items, traces_calls,
        jobs, health, close
    );

    async fn call(&self, request: Request) -> Result<Outcome, Box<CoreError>> {
        sleep(CALL_TIME).await;
        // The core has no tool, so that this is an error.
        self.inner.call(request).await
    }
}

#[tokio::test(start_paused = true)]
async fn call_of_80_seconds_is_answered_on_its_connection() {
    let inner = surface(None, "127.0.0.1:1").broker.clone();
    let surface = surface_over(Slow { inner }, None, "127.0.0.1:1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let drain = surface.drain.clone();
    let server = tokio::spawn(listener::serve(surface, listener, ListenerRole::Broker));
    let began = Instant::now();
    let body = br#"{"path":"/a"}"#;
    let head = format!(
        "POST /meta_call HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(began.elapsed() >= CALL_TIME, "{reply}");
    assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
    assert!(reply.contains("path_not_found"), "{reply}");
    drain.finish();
    server.await.unwrap();
}
