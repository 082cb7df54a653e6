//! A caller that reads its reply too slowly, over a real connection and with the clock paused: the
//! connection is closed, and the memory of the reply is released.

use broker_core::Broker as _;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};

use super::{ListenerRole, initialized, listener, surface, surface_with};

/// Bytes of the reply; much more than the buffers of the system.
const REPLY_BYTES: usize = 2 << 20;
/// Small buffers of the system, so that the broker soon notices how much is read.
const SYSTEM_BYTES: u32 = 8 << 10;

fn listener() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(SYSTEM_BYTES).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(8).unwrap()
}

async fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(SYSTEM_BYTES).unwrap();
    socket.connect(address).await.unwrap()
}

async fn ask(listener: &TcpListener) -> TcpStream {
    let mut stream = connect(listener.local_addr().unwrap()).await;
    let request =
        b"POST /meta_tree HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request).await.unwrap();
    stream
}

#[tokio::test(start_paused = true)]
async fn slow_reader_is_disconnected_and_its_memory_released() {
    let surface = surface_with(&"x".repeat(REPLY_BYTES), None, "127.0.0.1:1");
    let memory = surface.broker.services().memory().clone();
    let listener = listener();
    let mut caller = ask(&listener).await;
    let drain = surface.drain.clone();
    let server = tokio::spawn(listener::serve(surface, listener, ListenerRole::Broker));
    let began = Instant::now();
    let (mut taken, mut held) = (0, 0);
    let mut piece = [0; 2 << 10];
    while let Ok(bytes @ 1..) = caller.read(&mut piece).await {
        taken += bytes;
        held = held.max(memory.used());
        // An eighth of the minimum rate, without a complete stall.
        sleep(Duration::from_secs(1)).await;
    }
    let took = began.elapsed();
    assert!(held >= REPLY_BYTES, "{held} bytes were charged");
    assert!(
        taken < REPLY_BYTES / 2,
        "{taken} bytes were taken within {took:?}"
    );
    assert!(took < Duration::from_secs(120), "closed after {took:?}");
    drain.finish();
    server.await.unwrap();
    assert_eq!(memory.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn stream_that_is_not_read_is_closed_and_leaves_its_session() {
    let surface = surface(None, "127.0.0.1:1");
    let session = initialized(&surface).await;
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let drain = surface.drain.clone();
    let server = tokio::spawn(listener::serve(
        surface.clone(),
        listener,
        ListenerRole::Broker,
    ));
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    let mut client = connect(address).await;
    client.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    client.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let endpoint = surface.mcp.as_ref().unwrap();
    // The stream has a comment every 15 s. Once the buffers of the system are full, no byte is accepted.
    let began = Instant::now();
    while endpoint.stream_count() > 0 {
        assert!(began.elapsed() < Duration::from_secs(30 * 86_400));
        sleep(Duration::from_secs(60)).await;
    }
    let (mut taken, mut piece) = (0, [0; 2 << 10]);
    while let Ok(bytes @ 1..) = client.read(&mut piece).await {
        taken += bytes;
    }
    assert!(taken < 1 << 20, "{taken} bytes waited in the system");
    assert_eq!(endpoint.session_count(), 1);
    let mut again = connect(address).await;
    again.write_all(request.as_bytes()).await.unwrap();
    again.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    drain.begin_draining();
    drain.finish();
    server.await.unwrap();
}
