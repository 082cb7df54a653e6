//! A connection for several requests.

use std::io::BufReader;
use std::net::TcpStream;

use serde_json::Value;

use crate::access::with_key;
use crate::http::{Response, read_from};
use crate::program::WAIT_TIMEOUT;

/// A connection that is kept between requests.
#[derive(Debug)]
pub struct KeepAlive {
    address: String,
    stream: BufReader<TcpStream>,
}

impl KeepAlive {
    /// Connects.
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the broker listens");
        stream
            .set_read_timeout(Some(WAIT_TIMEOUT))
            .expect("a timeout can be set");
        Self {
            address: address.to_owned(),
            stream: BufReader::new(stream),
        }
    }

    /// `POST` of a JSON body; `None` if the connection ends without an answer.
    pub fn post(&mut self, route: &str, body: &Value) -> Option<Response> {
        let body = body.to_string();
        let head = format!(
            "POST {route} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.exchange(format!("{head}{body}").as_bytes())
    }

    /// `GET`, in the same way.
    pub fn get(&mut self, route: &str) -> Option<Response> {
        let head = format!("GET {route} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.exchange(head.as_bytes())
    }

    /// Whether the other side has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true).expect("it can be set");
        let peeked = stream.peek(&mut byte);
        stream.set_nonblocking(false).expect("it can be set");
        matches!(peeked, Ok(0))
            || peeked.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
    }

    /// Whether there are unexpected bytes.
    pub fn has_more(&self) -> bool {
        !self.stream.buffer().is_empty()
    }

    fn exchange(&mut self, bytes: &[u8]) -> Option<Response> {
        use std::io::Write as _;
        // A refusal may arrive before everything was sent; it counts.
        let bytes = with_key(&self.address, bytes);
        let _ = self.stream.get_mut().write_all(&bytes);
        read_from(&mut self.stream)
    }
}
