//! Connections that wait for a request, with the clock paused: each phase has its time.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use super::{ListenerRole, listener, surface};

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

async fn served() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let surface = surface(None, "127.0.0.1:1");
    tokio::spawn(listener::serve(surface, listener, ListenerRole::Broker));
    address
}

/// Reads one answer.
async fn answer(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    while !all.ends_with(b"}") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the connection ended");
        all.extend_from_slice(&piece[..read]);
    }
    String::from_utf8(all).unwrap()
}

/// Returns the time until the connection is closed, in seconds.
async fn until_closed(stream: &mut TcpStream) -> f64 {
    let began = Instant::now();
    let mut byte = [0];
    let read = stream.read(&mut byte).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    began.elapsed().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn connection_is_closed_by_the_time_of_its_phase() {
    let address = served().await;
    for beginning in [&b""[..], b"GET /hea"] {
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(beginning).await.unwrap();
        let time = until_closed(&mut first).await;
        assert!((9.0..12.0).contains(&time), "{time} s for the first head");
    }
    let mut idle = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        idle.write_all(REQUEST).await.unwrap();
        assert!(answer(&mut idle).await.starts_with("HTTP/1.1 200"));
        // Much longer than the time for the first head.
        sleep(Duration::from_secs(70)).await;
    }
    idle.write_all(REQUEST).await.unwrap();
    answer(&mut idle).await;
    let time = until_closed(&mut idle).await;
    assert!(
        (74.0..77.0).contains(&time),
        "{time} s between two requests"
    );
    // A part of a head prolongs nothing.
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(REQUEST).await.unwrap();
    answer(&mut slow).await;
    sleep(Duration::from_secs(30)).await;
    slow.write_all(b"GET /hea").await.unwrap();
    let time = until_closed(&mut slow).await;
    assert!(
        (43.0..47.0).contains(&time),
        "{time} s for the rest of a head"
    );
}
