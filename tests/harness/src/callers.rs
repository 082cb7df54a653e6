//! Callers that misbehave: endless heads, unread replies, garbage, incomplete bodies. Deterministic by
//! seed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::{Value, json};

use crate::http::{post_bytes, send};

/// Bytes that the kernel keeps for a caller that does not read.
const RECEIVE_BYTES: usize = 64 << 10;

/// A connection that sends nothing; `None` if it is not accepted.
pub fn idle(address: &str) -> Option<TcpStream> {
    TcpStream::connect(address).ok()
}

/// A connection with an incomplete head.
pub fn half_a_head(address: &str) -> Option<TcpStream> {
    let mut stream = idle(address)?;
    let head = format!("POST /meta_call HTTP/1.1\r\nHost: {address}\r\nContent-Ty");
    stream.write_all(head.as_bytes()).ok()?;
    Some(stream)
}

/// Sends one more byte of a head; false if the broker has closed the connection.
pub fn drip(stream: &mut TcpStream) -> bool {
    stream.write_all(b"x").is_ok() && !is_closed(stream)
}

/// Whether the peer has closed the connection; does not wait.
pub fn is_closed(stream: &TcpStream) -> bool {
    let mut byte = [0];
    stream
        .set_nonblocking(true)
        .expect("a connection can be asked without waiting");
    let peeked = stream.peek(&mut byte);
    let _ = stream.set_nonblocking(false);
    match peeked {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// A connection that announces a body and sends half of it.
pub fn half_a_body(address: &str) -> TcpStream {
    let body = json!({"path": "/", "depth": 1}).to_string();
    let bytes = post_bytes(address, "/meta_tree", &body);
    send(address, &bytes[..bytes.len() - body.len() / 2])
}

/// A call whose reply is not read. Drop it to disconnect, or keep it.
pub fn call_and_leave(address: &str, path: &str, args: &Value) -> TcpStream {
    let body = json!({"path": path, "args": args}).to_string();
    let mut stream = TcpStream::connect(address).expect("the broker listens");
    // Otherwise the kernel may take the whole answer.
    set_socket_recv_buffer_size(&stream, RECEIVE_BYTES).expect("a buffer can be small");
    let request = post_bytes(address, "/meta_call", &body);
    stream.write_all(&request).expect("the request is sent");
    stream
}

/// Counts the bytes until the connection ends or is silent for this time; the bytes are not kept.
pub fn drain(stream: &mut TcpStream, limit: Duration) -> u64 {
    let mut piece = vec![0; 64 << 10];
    let mut all = 0;
    if stream.set_read_timeout(Some(limit)).is_err() {
        return all;
    }
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        all += read as u64;
    }
    all
}

/// Bytes that are not a request, different for each seed.
pub fn garbage(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}
