//! The load: connections that each send one call after another, over plain sockets so that the
//! client costs little.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// A tool of the smoke config whose answer is as long as its arguments.
const BODY: &str = r#"{"path":"/text/text_case","args":{"to":"upper","text":"a hundred bytes of arguments make a hundred bytes of result, or nearly so"}}"#;

/// Sends `calls` calls over `connections` connections; an answer other than 200 is an error.
pub(crate) fn run(address: &str, calls: usize, connections: usize) -> io::Result<()> {
    let request = request(address);
    let share = calls / connections;
    thread::scope(|scope| {
        let tasks: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| connection(address, &request, share)))
            .collect();
        tasks.into_iter().try_for_each(|task| {
            task.join()
                .map_err(|_| io::Error::other("a connection panicked"))?
        })
    })
}

/// Waits until a call succeeds: servers behind it may still be starting.
pub(crate) fn until_answered(address: &str) -> io::Result<()> {
    let mut last = io::Error::other("never tried");
    for _ in 0..200 {
        match connection(address, &request(address), 1) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(last)
}

fn request(address: &str) -> Vec<u8> {
    let head = format!(
        "POST /meta_call HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        BODY.len()
    );
    [head.as_bytes(), BODY.as_bytes()].concat()
}

fn connection(address: &str, request: &[u8], calls: usize) -> io::Result<()> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let mut body = Vec::new();
    for _ in 0..calls {
        writer.write_all(request)?;
        let (status, length) = head(&mut reader)?;
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        if status != 200 || !body.windows(9).any(|part| part == b"A HUNDRED") {
            return Err(io::Error::other(format!(
                "status {status}: {}",
                String::from_utf8_lossy(&body)
            )));
        }
    }
    Ok(())
}

fn head(reader: &mut impl io::BufRead) -> io::Result<(u16, usize)> {
    let (mut status, mut length, mut line) = (0, 0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
            status = rest
                .get(..3)
                .and_then(|code| code.parse().ok())
                .unwrap_or(0);
        } else if let Some((name, value)) = line.split_once(':') {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        } else if line == "\r\n" {
            return Ok((status, length));
        }
    }
}
