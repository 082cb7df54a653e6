//! A relay between a proxy and a broker that records both directions of each connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// A listener at a free port of 127.0.0.1, which forwards to a server; closed when dropped.
#[derive(Debug)]
pub struct Tap {
    address: String,
    connections: Arc<Mutex<Vec<Arc<Mutex<Recorded>>>>>,
    _stop: oneshot::Sender<()>,
}

/// The bytes of one connection.
#[derive(Debug, Default)]
struct Recorded {
    requests: Vec<u8>,
    answers: Vec<u8>,
}

impl Tap {
    /// Forwards to the server at `backend`.
    pub fn start(backend: &str) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener
            .set_nonblocking(true)
            .expect("it can be polled by the runtime");
        let address = listener.local_addr().expect("it has an address");
        let backend: SocketAddr = backend.parse().expect("an address");
        let connections = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel();
        let all = Arc::clone(&connections);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, backend, &all) => {}
                }
            });
        });
        Self {
            address: address.to_string(),
            connections,
            _stop: stop,
        }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// For each connection, the number of requests whose head has this line, and the number of final answers.
    pub fn counts(&self, line: &str) -> Vec<(usize, usize)> {
        let line = format!("\r\n{line}\r\n").to_ascii_lowercase();
        let all = self.connections.lock().expect("no task panics");
        let counts = all.iter().map(|recorded| {
            let recorded = recorded.lock().expect("no task panics");
            let requests = String::from_utf8_lossy(&recorded.requests).to_ascii_lowercase();
            (
                requests.matches(&line).count(),
                statuses(&recorded.answers).len(),
            )
        });
        counts.collect()
    }
}

async fn accept(
    listener: std::net::TcpListener,
    backend: SocketAddr,
    all: &Mutex<Vec<Arc<Mutex<Recorded>>>>,
) {
    let listener = TcpListener::from_std(listener).expect("the runtime polls it");
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        let recorded = Arc::new(Mutex::new(Recorded::default()));
        all.lock()
            .expect("no task panics")
            .push(Arc::clone(&recorded));
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(backend).await else {
                return;
            };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let keep = |bytes: &[u8], choose: fn(&mut Recorded) -> &mut Vec<u8>| {
                let mut recorded = recorded.lock().expect("no task panics");
                choose(&mut recorded).extend_from_slice(bytes);
            };
            tokio::join!(
                relay(from_client, to_server, |bytes| keep(bytes, |all| &mut all
                    .requests)),
                relay(from_server, to_client, |bytes| keep(bytes, |all| &mut all
                    .answers)),
            );
        });
    }
}

/// Forwards one direction until its end, which is forwarded too.
async fn relay(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, keep: impl Fn(&[u8])) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        keep(&piece[..read]);
        if to.write_all(&piece[..read]).await.is_err() {
            break;
        }
    }
    // The other side may have closed it already.
    let _ = to.shutdown().await;
}

/// The statuses of the final answers in these bytes of a connection.
pub fn statuses(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split("HTTP/1.").skip(1);
    let words = lines.filter_map(|line| line.split([' ', '\r', '\n']).nth(1));
    let is_final = |word: &&str| {
        word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit()) && *word != "100"
    };
    words.filter(is_final).map(str::to_owned).collect()
}
