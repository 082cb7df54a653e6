//! One `GET` over HTTP/1.1 on a new connection: follows no redirect, and limits the length of the
//! reply.

use broker_model::redact::Secret;
use broker_model::text::shown_line;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::target::Target;

/// The maximum length of a reply.
const MAX_REPLY_BYTES: u64 = 8 << 20;

/// The reply of a route, parsed and as text. The status may be 200, or 503 for "not ready".
pub(super) async fn json(
    target: &Target,
    route: &str,
    secret: Option<&Secret>,
) -> Result<(Value, String), String> {
    let unreachable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => format!("nothing listens at `{}`", target.shown()),
        _ => format!("cannot reach `{}`: {error}", target.shown()),
    };
    let mut stream = TcpStream::connect((target.host.as_str(), target.port))
        .await
        .map_err(unreachable)?;
    let key = secret.map_or_else(String::new, |secret| {
        format!("X-API-Key: {}\r\n", secret.expose())
    });
    let request = format!(
        "GET {}{route} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\n{key}Connection: close\r\n\r\n",
        target.base_path,
        target.authority()
    );
    let mut reply = Vec::new();
    let lost =
        |error: std::io::Error| format!("`{}` closed the connection: {error}", target.shown());
    stream.write_all(request.as_bytes()).await.map_err(lost)?;
    let mut rest = stream.take(MAX_REPLY_BYTES + 1);
    rest.read_to_end(&mut reply).await.map_err(lost)?;
    if reply.len() as u64 > MAX_REPLY_BYTES {
        return Err(format!("the reply of `{}` is too long", target.shown()));
    }
    let no_broker = || format!("the server at `{}` is not an mcp-broker", target.shown());
    let (status, body) = parse(&reply).ok_or_else(no_broker)?;
    let text = String::from_utf8(body).map_err(|_| no_broker())?;
    let value: Option<Value> = serde_json::from_str(&text).ok();
    match (status, value) {
        (200 | 503, Some(value)) => Ok((value, text)),
        (_, Some(value)) if value["error"]["message"].is_string() => {
            let message = shown_line(value["error"]["message"].as_str().unwrap_or_default(), 300);
            Err(format!("`{}` answered {status}: {message}", target.shown()))
        }
        (300..400, _) => Err(format!(
            "`{}` answered {status}, a redirect, which is not followed",
            target.shown()
        )),
        _ => Err(no_broker()),
    }
}

/// Status and body of a complete reply; `None` if it is not one.
fn parse(reply: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&reply[..end]).ok()?;
    let body = &reply[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.get(2..5)?;
    let status = status.parse().ok()?;
    let (mut chunked, mut length) = (false, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.eq_ignore_ascii_case("chunked");
        } else if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.parse::<usize>().ok()?);
        }
    }
    let body = match (chunked, length) {
        (true, _) => unchunk(body)?,
        (false, Some(length)) => body.get(..length)?.to_vec(),
        (false, None) => body.to_vec(),
    };
    Some((status, body))
}

/// Decodes a body that a proxy sent in chunks.
fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = size.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        let next = size.checked_add(2)?;
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(next..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_reply_is_read_completely_or_refused() {
        let read = |text: &str| {
            parse(text.as_bytes()).map(|(status, body)| (status, String::from_utf8(body).unwrap()))
        };
        let fine = |body: &str| Some((200, body.to_owned()));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
            fine("{}")
        );
        assert_eq!(read("HTTP/1.0 200 OK\r\n\r\n{}"), fine("{}"));
        assert_eq!(
            read(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n"
            ),
            fine("{}")
        );
        for text in [
            "",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
