//! A relay to a broker that cuts connections after a number of bytes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A relay at a free port of 127.0.0.1.
pub(crate) struct Relay {
    address: String,
    cuts: Arc<Mutex<Vec<usize>>>,
    done: Arc<AtomicUsize>,
}

impl Relay {
    /// Forwards to the broker at `backend`. The last of `cuts` is for the first connection: the bytes of the broker that
    /// it passes on. Further connections are not cut.
    pub(crate) fn start(backend: &str, cuts: Vec<usize>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let cuts = Arc::new(Mutex::new(cuts));
        let done = Arc::new(AtomicUsize::new(0));
        let (backend, left, count) = (backend.to_owned(), Arc::clone(&cuts), Arc::clone(&done));
        thread::spawn(move || {
            // Ends with the test program.
            for client in listener.incoming().flatten() {
                let cut = left.lock().expect("no thread panics").pop();
                let (Ok(server), count) = (TcpStream::connect(&backend), Arc::clone(&count)) else {
                    continue;
                };
                thread::spawn(move || {
                    if pass_on(client, server, cut) {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Self {
            address,
            cuts,
            done,
        }
    }

    /// Returns `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Cuts the next connection after this number of bytes.
    pub(crate) fn cut_next(&self, bytes: usize) {
        self.cuts.lock().expect("no thread panics").push(bytes);
    }

    /// Returns the number of connections that were cut.
    pub(crate) fn cut_connections(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

/// Passes both directions on. Returns whether the connection was cut.
fn pass_on(mut client: TcpStream, mut server: TcpStream, cut: Option<usize>) -> bool {
    let (mut from, mut to) = (
        client.try_clone().expect("a handle"),
        server.try_clone().expect("a handle"),
    );
    thread::spawn(move || {
        // Either end may have left.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut left, mut buffer) = (cut.unwrap_or(usize::MAX), [0; 4096]);
    while left > 0 {
        let most = left.min(buffer.len());
        let Ok(read @ 1..) = server.read(&mut buffer[..most]) else {
            break;
        };
        left -= read;
        if client.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    left == 0
}
