//! The load: callers that each send one call after another, over plain sockets and pipes so that they cost
//! little.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout};
use std::thread;
use std::time::Duration;

use crate::calls::{self, Size, Transport};

const SESSION_ID: &str = "mcp-session-id";
/// The size of a read of a client over stdio: what a pipe holds. Clients in JavaScript and Python read as much.
const READ_BYTES: usize = 64 << 10;
/// Attempts until the servers behind a broker have started, and the pause between two of them.
const ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// Sends `calls` calls over `connections` connections; an answer other than 200 is an error.
pub(crate) fn over_http(
    address: &str,
    (transport, size): (Transport, Size),
    calls: usize,
    connections: usize,
) -> io::Result<()> {
    let share = calls / connections;
    thread::scope(|scope| {
        let tasks: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| Connection::open(address)?.call(transport, size, share)))
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
    for _ in 0..ATTEMPTS {
        match over_http(address, (Transport::Meta, Size::Small), 1, 1) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
        thread::sleep(PAUSE);
    }
    Err(last)
}

/// A connection over HTTP.
struct Connection<'a> {
    address: &'a str,
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl<'a> Connection<'a> {
    fn open(address: &'a str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            address,
            stream: BufReader::new(stream),
            body: Vec::new(),
        })
    }

    /// Sends as many calls, in a legacy session if the transport has one.
    fn call(&mut self, transport: Transport, size: Size, calls: usize) -> io::Result<()> {
        let session = match transport {
            Transport::Legacy => self.exchange(&calls::begin(self.address))?,
            _ => String::new(),
        };
        let request = calls::request(self.address, transport, size, &session);
        for _ in 0..calls {
            self.exchange(&request)?;
            size.check(&self.body)?;
        }
        Ok(())
    }

    /// Sends a request and reads its reply; the session that the reply names, if it names one.
    fn exchange(&mut self, request: &[u8]) -> io::Result<String> {
        self.stream.get_mut().write_all(request)?;
        let Head {
            status,
            length,
            session,
        } = Head::read(&mut self.stream)?;
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        match status {
            200 => Ok(session),
            _ => Err(io::Error::other(format!(
                "status {status}: {}",
                String::from_utf8_lossy(&self.body)
            ))),
        }
    }
}

/// The parts of a reply's head that a caller needs.
#[derive(Default)]
struct Head {
    status: u16,
    length: usize,
    session: String,
}

impl Head {
    fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        let (mut head, mut line) = (Self::default(), String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                let code = rest.get(..3).and_then(|code| code.parse().ok());
                head.status = code.unwrap_or(0);
            } else if let Some((name, value)) = line.split_once(':') {
                if name.eq_ignore_ascii_case("content-length") {
                    head.length = value.trim().parse().map_err(io::Error::other)?;
                } else if name.eq_ignore_ascii_case(SESSION_ID) {
                    value.trim().clone_into(&mut head.session);
                }
            } else if line == "\r\n" {
                return Ok(head);
            }
        }
    }
}

/// A client over standard input and output.
#[derive(Debug)]
pub(crate) struct Pipes {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Pipes {
    /// A client that has begun, once a call succeeds.
    pub(crate) fn begin(input: ChildStdin, output: ChildStdout) -> io::Result<Self> {
        let mut pipes = Self {
            input,
            output: BufReader::with_capacity(READ_BYTES, output),
            line: Vec::new(),
        };
        pipes.send(&calls::initialize())?;
        pipes.read()?;
        pipes.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        // A call waits for the servers behind the broker.
        pipes.call(Size::Small, 1, 1)?;
        Ok(pipes)
    }

    /// Sends `calls` calls, of which `open` wait for their answer at one time.
    pub(crate) fn call(&mut self, size: Size, calls: usize, open: usize) -> io::Result<()> {
        let open = open.min(calls);
        for id in 0..open {
            self.send(&calls::message(Transport::Stdio, size, id))?;
        }
        for id in open..calls + open {
            self.read()?;
            size.check(&self.line)?;
            if id < calls {
                self.send(&calls::message(Transport::Stdio, size, id))?;
            }
        }
        Ok(())
    }

    fn send(&mut self, message: &str) -> io::Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes())
    }

    fn read(&mut self) -> io::Result<()> {
        self.line.clear();
        match self.output.read_until(b'\n', &mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
