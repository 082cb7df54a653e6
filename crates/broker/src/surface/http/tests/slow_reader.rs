//! A caller that reads its reply too slowly, over a real connection and with the clock paused: the
//! connection is closed, and the memory of the reply is released.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};

use super::{connections, surface_with};

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

async fn ask(listener: &TcpListener) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(SYSTEM_BYTES).unwrap();
    let mut stream = socket
        .connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let request =
        b"POST /meta_tree HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request).await.unwrap();
    stream
}

#[tokio::test(start_paused = true)]
async fn slow_reader_is_disconnected_and_its_memory_released() {
    let surface = surface_with(&"x".repeat(REPLY_BYTES), None, "127.0.0.1:1");
    let memory = surface.core.memory().clone();
    let listener = listener();
    let mut caller = ask(&listener).await;
    let drain = surface.drain.clone();
    let server = tokio::spawn(connections::serve(surface, listener));
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
