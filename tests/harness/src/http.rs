//! HTTP/1.1 over a plain socket: one request, one answer.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::access::with_key;
use crate::program::WAIT_TIMEOUT;

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body as sent.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The code of an error body; empty if there is none.
    pub fn code(&self) -> String {
        self.json()
            .pointer("/error/code")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }
}

/// `POST` of a JSON body.
pub fn post(address: &str, route: &str, body: &Value) -> Response {
    request(
        address,
        "POST",
        route,
        &[("Content-Type", "application/json")],
        body.to_string().as_bytes(),
    )
}

/// The bytes of a `POST` of a JSON body.
pub fn post_bytes(address: &str, route: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let bytes = format!(
        "POST {route} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes();
    with_key(address, &bytes).into_owned()
}

/// `GET`.
pub fn get(address: &str, route: &str) -> Response {
    request(address, "GET", route, &[], b"")
}

/// A request with these headers in addition to `Host`, `Connection: close` and, if there is a body,
/// `Content-Length`.
pub fn request(
    address: &str,
    method: &str,
    route: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    let mut head = format!("{method} {route} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || method == "POST" {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    raw(address, &[head.as_bytes(), body].concat())
}

/// Sends these bytes and reads one answer.
pub fn raw(address: &str, bytes: &[u8]) -> Response {
    read(send(address, bytes))
}

/// Sends these bytes on a new connection. Dropping it disconnects the caller.
pub fn send(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the broker listens");
    stream
        .set_read_timeout(Some(WAIT_TIMEOUT))
        .expect("a timeout can be set");
    // A server may refuse and close before it has read everything; its answer counts.
    let _ = stream.write_all(&with_key(address, bytes));
    stream
}

/// Reads one answer.
pub fn read(stream: TcpStream) -> Response {
    read_from(&mut BufReader::new(stream)).expect("an answer comes")
}

/// Reads one answer; `None` if the connection ends before it is complete.
pub(crate) fn read_from(reader: &mut impl BufRead) -> Option<Response> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()))
            }
            None => break,
        }
    }
    let mut response = Response {
        status,
        headers,
        body: Vec::new(),
    };
    let length = response.header("content-length");
    match length.map(|length| length.parse::<usize>().expect("a length is a number")) {
        Some(length) => {
            response.body.resize(length, 0);
            reader.read_exact(&mut response.body).ok()?;
        }
        None => {
            let _ = reader.read_to_end(&mut response.body);
        }
    }
    Some(response)
}
