//! One connection to the broker for many requests. Unexpected bytes are detected.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use harness::access::with_key;

/// Maximum time of an answer; the longest call of the mix is bounded far below.
const WAIT_TIMEOUT: Duration = Duration::from_secs(90);
/// The time in which a closed connection is checked for an extra answer.
const AFTERWARDS: Duration = Duration::from_millis(5);

/// An answer.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// The part of a request that is sent.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Whole,
    NotTheEnd,
}

pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(WAIT_TIMEOUT))?;
        stream.set_write_timeout(Some(WAIT_TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            reader: BufReader::new(stream),
            address: address.to_owned(),
        })
    }

    /// Sends a call.
    pub(crate) fn send(&mut self, body: &str, part: Part) -> io::Result<()> {
        let (address, length) = (&self.address, body.len());
        let bytes = format!(
            "POST /meta_call HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes();
        // Under rules of access, with the key of the callers.
        let bytes = with_key(address, &bytes);
        let end = match part {
            Part::Whole => bytes.len(),
            Part::NotTheEnd => bytes.len() - 1 - length / 2,
        };
        self.reader.get_mut().write_all(&bytes[..end])
    }

    /// Reads one answer.
    pub(crate) fn receive(&mut self) -> io::Result<Response> {
        let malformed = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| malformed("no status line"))?;
        let mut length = None;
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok();
            }
        }
        let mut body = vec![0; length.ok_or_else(|| malformed("no length"))?];
        self.reader.read_exact(&mut body)?;
        Ok(Response { status, body })
    }

    /// Whether there are unexpected bytes.
    pub(crate) fn has_more(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// Checks a connection that is no longer used, after a short wait.
    pub(crate) fn has_more_afterwards(mut self) -> bool {
        let stream = self.reader.get_ref();
        let mut byte = [0];
        stream.set_read_timeout(Some(AFTERWARDS)).is_ok()
            && self.reader.read(&mut byte).is_ok_and(|read| read > 0)
    }
}
