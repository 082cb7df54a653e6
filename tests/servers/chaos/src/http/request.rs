//! Reads HTTP/1.1 requests. The last byte of a request stays unread at first: a socket that is closed with unread
//! bytes is reset, which safe code cannot request in another way.

use super::socket::Socket;

const MAX_HEAD_BYTES: usize = 256 * 1024;
const MAX_BODY_BYTES: usize = 256 * 1024 * 1024;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

#[derive(Debug, Default)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// The path and the query, as sent.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// The next request of a connection.
pub(crate) enum Incoming {
    Request(HttpRequest),
    /// The client closed the connection.
    End,
    /// A request that cannot be read: the status and the reason.
    Refused(u16, &'static str),
}

/// Reads a request, except its last byte.
pub(crate) fn read(socket: &Socket) -> Incoming {
    let head = match read_head(socket) {
        Ok(Some(head)) => head,
        Ok(None) => return Incoming::End,
        Err(refused) => return refused,
    };
    let Some(mut request) = parse_head(&head) else {
        return Incoming::Refused(400, "the head is not HTTP/1.1");
    };
    if request.header("transfer-encoding").is_some() {
        return Incoming::Refused(411, "a request needs Content-Length");
    }
    let length = match request.header("content-length").map(str::parse::<usize>) {
        None => 0,
        Some(Ok(length)) if length <= MAX_BODY_BYTES => length,
        Some(Ok(_)) => return Incoming::Refused(413, "the body is too large"),
        Some(Err(_)) => return Incoming::Refused(400, "Content-Length is not a number"),
    };
    if length == 0 {
        return Incoming::Request(request);
    }
    let mut last = [0];
    // The byte that ends the head, then the body except its last byte, which is only looked at.
    let body = socket.take(1).and_then(|_| socket.take(length - 1));
    match (body, socket.peek(&mut last)) {
        (Some(mut body), Some(_)) => {
            body.extend(last);
            request.body = body;
            Incoming::Request(request)
        }
        _ => Incoming::End,
    }
}

/// Takes the byte that [`read`] left.
pub(crate) fn take_last_byte(socket: &Socket) {
    drop(socket.take(1));
}

/// The head with its empty line, of which the last byte stays unread; `None` at the end of the connection.
fn read_head(socket: &Socket) -> Result<Option<Vec<u8>>, Incoming> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while head.len() < MAX_HEAD_BYTES {
        let Some(seen) = socket.peek(&mut buffer) else {
            return Ok(None);
        };
        let before = head.len();
        head.extend(buffer.iter().take(seen));
        let from = before.saturating_sub(END_OF_HEAD.len() - 1);
        let end = head[from..]
            .windows(END_OF_HEAD.len())
            .position(|bytes| bytes == END_OF_HEAD)
            .map(|at| from + at + END_OF_HEAD.len());
        let taken = end.map_or(seen, |end| end - before - 1);
        if socket.take(taken).is_none() {
            return Ok(None);
        }
        if let Some(end) = end {
            head.truncate(end);
            return Ok(Some(head));
        }
    }
    Err(Incoming::Refused(431, "the head is too large"))
}

fn parse_head(head: &[u8]) -> Option<HttpRequest> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target, version) = (first.next()?, first.next()?, first.next()?);
    if version != "HTTP/1.1" || first.next().is_some() {
        return None;
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Some(HttpRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        headers: lines.map(header).collect::<Option<_>>()?,
        body: Vec::new(),
    })
}

impl HttpRequest {
    /// The first header of this name, which is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The header of this name, unless there are several.
    pub(crate) fn only(&self, name: &str) -> Option<&str> {
        let mut all = self.all(name);
        let only = all.next();
        only.filter(|_| all.next().is_none())
    }

    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = self.headers.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The target without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A parameter of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Whether the client keeps the connection open for another request.
    pub(crate) fn keeps_alive(&self) -> bool {
        let connection = self.header("connection").unwrap_or_default();
        !connection.eq_ignore_ascii_case("close")
    }
}
