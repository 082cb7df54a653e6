//! An HTTP caller that misbehaves in one selected way, for a bounded number of connections and seconds, and
//! prints the results of the connections as one line of JSON.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::json;

const USAGE: &str =
    "usage: chaos-client MODE ADDR [--count N] [--seconds S] [--seed N] [--path TOOL] [--args JSON] [--key KEY]
MODE  slow-reader  calls, and reads a byte now and then
      half-open    begins a request and does not end it
      leave        calls, and is gone before the answer
      flood        calls from eight threads at once
      lies         requests that are not what they say: lengths, hosts, methods, bytes of nothing";

/// Maximum number of connections, so that the client cannot be used as an attack tool.
const MAX_CONNECTIONS: usize = 100_000;
/// Threads of a flood.
const THREADS: usize = 8;
/// Time limit of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two bytes that a slow reader reads.
const READ_INTERVAL: Duration = Duration::from_millis(20);

struct Order {
    mode: String,
    address: String,
    count: usize,
    seconds: u64,
    seed: u64,
    path: String,
    args: String,
    /// The header of its API key; empty without one.
    key: String,
}

/// The results of the connections.
#[derive(Default)]
struct Results {
    /// Answers by status.
    answered: BTreeMap<u16, usize>,
    /// Closed by the other side without an answer.
    closed: usize,
    /// Still open at the end.
    open: usize,
    /// Closed by this side on purpose.
    left: usize,
    /// Not accepted.
    refused: usize,
}

fn main() -> ExitCode {
    let order = match order(std::env::args().skip(1)) {
        Ok(order) => order,
        Err(problem) => {
            // If standard error is closed, the line is lost.
            let _ = writeln!(io::stderr(), "chaos-client: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let results = match order.mode.as_str() {
        "slow-reader" => hold(&order, call(&order).as_bytes(), true),
        "half-open" => hold(&order, &call(&order).as_bytes()[..40], false),
        "leave" => leave(&order),
        "flood" => flood(&order),
        _ => lies(&order),
    };
    let answered: BTreeMap<_, _> = results
        .answered
        .iter()
        .map(|(status, count)| (status.to_string(), *count))
        .collect();
    let line = json!({
        "mode": order.mode, "answered": answered, "closed": results.closed, "open": results.open,
        "left": results.left, "refused": results.refused,
    });
    match writeln!(io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn order(mut words: impl Iterator<Item = String>) -> Result<Order, String> {
    let mode = words.next().ok_or("a mode is missing")?;
    let known = ["slow-reader", "half-open", "leave", "flood", "lies"];
    if !known.contains(&mode.as_str()) {
        return Err(format!("`{mode}` is not a mode"));
    }
    let mut order = Order {
        mode,
        address: words.next().ok_or("an address is missing")?,
        count: 16,
        seconds: 2,
        seed: 1,
        path: "/a/echo".to_owned(),
        args: "{\"text\":\"x\"}".to_owned(),
        key: String::new(),
    };
    while let Some(flag) = words.next() {
        let value = words.next().ok_or(format!("`{flag}` has no value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("`{flag}` is not a number"))
        };
        match flag.as_str() {
            "--count" => {
                order.count = usize::try_from(number()?)
                    .unwrap_or(MAX_CONNECTIONS)
                    .min(MAX_CONNECTIONS)
            }
            "--seconds" => order.seconds = number()?.min(600),
            "--seed" => order.seed = number()?,
            "--path" => order.path = value,
            "--args" => order.args = value,
            "--key" => order.key = format!("X-API-Key: {value}\r\n"),
            _ => return Err(format!("`{flag}` is not known")),
        }
    }
    Ok(order)
}

fn call(order: &Order) -> String {
    let body = format!("{{\"path\":\"{}\",\"args\":{}}}", order.path, order.args);
    post(order, &order.address, body.len(), &body)
}

/// A request that announces a length of its body.
fn post(order: &Order, host: &str, length: usize, body: &str) -> String {
    let key = &order.key;
    format!(
        "POST /meta_call HTTP/1.1\r\nHost: {host}\r\n{key}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn connect(order: &Order, results: &mut Results) -> Option<TcpStream> {
    let stream = TcpStream::connect(&order.address).ok();
    results.refused += usize::from(stream.is_none());
    stream
}

/// Sends the same bytes on many connections and keeps them open; with `reads` it reads a byte of each from time to
/// time.
fn hold(order: &Order, bytes: &[u8], reads: bool) -> Results {
    let mut results = Results::default();
    let mut held = Vec::new();
    for _ in 0..order.count {
        let Some(mut stream) = connect(order, &mut results) else {
            continue;
        };
        if stream.write_all(bytes).is_err() || stream.set_nonblocking(true).is_err() {
            results.closed += 1;
            continue;
        }
        held.push(stream);
    }
    let rounds = order.seconds * 1000 / READ_INTERVAL.as_millis() as u64;
    for _ in 0..rounds {
        thread::sleep(READ_INTERVAL);
        held.retain_mut(|stream| {
            let mut byte = [0];
            let got = if reads {
                stream.read(&mut byte)
            } else {
                stream.peek(&mut byte)
            };
            match got {
                Ok(0) => false,
                Ok(_) => true,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            }
        });
    }
    results.open = held.len();
    results.closed = order.count - results.refused - results.open;
    results
}

fn leave(order: &Order) -> Results {
    let mut results = Results::default();
    for _ in 0..order.count {
        if let Some(mut stream) = connect(order, &mut results) {
            // The connection is closed, however many bytes were accepted.
            let _ = stream.write_all(call(order).as_bytes());
            results.left += 1;
        }
    }
    results
}

fn flood(order: &Order) -> Results {
    let results = Mutex::new(Results::default());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let results = &results;
            scope.spawn(move || {
                let mut own = Results::default();
                for _ in (number..order.count).step_by(THREADS) {
                    ask(order, call(order).as_bytes(), false, &mut own);
                }
                if let Ok(mut all) = results.lock() {
                    all.add(own);
                }
            });
        }
    });
    results.into_inner().unwrap_or_default()
}

fn lies(order: &Order) -> Results {
    let (mut results, mut state) = (Results::default(), order.seed | 1);
    let body = format!("{{\"path\":\"{}\",\"args\":{}}}", order.path, order.args);
    let whole = post(order, &order.address, body.len(), &body);
    for number in 0..order.count {
        let lie = match number % 8 {
            0 => post(order, &order.address, body.len() + 9, &body),
            1 => post(order, &order.address, body.len() / 2, &body),
            2 => whole.replacen("Host:", "Host: other.example\r\nHost:", 1),
            3 => whole.replacen("Content-Length:", "Content-Length: 1\r\nContent-Length:", 1),
            4 => whole.replacen("Connection: close", "Transfer-Encoding: chunked", 1),
            5 => whole.replacen("POST", "BREW", 1),
            6 => post(order, "elsewhere.example", body.len(), &body),
            _ => {
                let mut noise = Vec::new();
                for _ in 0..200 {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    noise.push((state >> 24) as u8);
                }
                ask(order, &noise, true, &mut results);
                continue;
            }
        };
        // A partial request is ended by closing the write side; a complete request stays open.
        ask(
            order,
            lie.as_bytes(),
            matches!(number % 8, 0 | 4),
            &mut results,
        );
    }
    results
}

/// Sends, with `ends` closes the write side, and records the status.
fn ask(order: &Order, bytes: &[u8], ends: bool, results: &mut Results) {
    let Some(mut stream) = connect(order, results) else {
        return;
    };
    let sent = stream.write_all(bytes);
    let sent = if ends {
        sent.and_then(|()| stream.shutdown(Shutdown::Write))
    } else {
        sent
    };
    let mut head = Vec::new();
    let read = stream
        .set_read_timeout(Some(ANSWER_TIMEOUT))
        .and_then(|()| stream.take(1 << 20).read_to_end(&mut head));
    let status = String::from_utf8_lossy(&head);
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    match status {
        Some(status) => *results.answered.entry(status).or_default() += 1,
        None if read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) => {
            results.open += 1
        }
        None => {
            // It does not matter whether it was closed during the write or after it.
            drop(sent);
            results.closed += 1;
        }
    }
}

impl Results {
    fn add(&mut self, other: Self) {
        for (status, count) in other.answered {
            *self.answered.entry(status).or_default() += count;
        }
        self.closed += other.closed;
        self.open += other.open;
        self.left += other.left;
        self.refused += other.refused;
    }
}
