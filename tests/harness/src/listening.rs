//! Servers over HTTP that tests start: Python, Node or Rust programs that print where they listen.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::program::{Run, wait_until};

/// The text that a server prints on standard error in front of its port.
const ADDRESS: &str = "http://127.0.0.1:";

/// A running server over HTTP. Its process group is killed when it is dropped.
#[derive(Debug)]
pub struct ListeningServer {
    child: Child,
    address: String,
    stderr: Arc<Mutex<String>>,
}

impl ListeningServer {
    /// Starts it and waits until it has printed `http://127.0.0.1:PORT` on standard error.
    pub fn start(run: Run) -> Self {
        let mut command = run.into_command();
        command.stdout(Stdio::null()).process_group(0);
        let mut child = command.spawn().expect("the server starts");
        let pipe = child.stderr.take().expect("stderr is piped");
        let stderr = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&stderr);
        thread::spawn(move || {
            let (mut lines, mut line) = (BufReader::new(pipe), Vec::new());
            while lines
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                kept.lock()
                    .expect("no thread panics with it")
                    .push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        let mut server = Self {
            child,
            address: String::new(),
            stderr,
        };
        wait_until("the server listens", || {
            let ended = server.child.try_wait().expect("its state can be read");
            assert!(ended.is_none(), "{ended:?}: {}", server.stderr());
            server.address = server.printed_address();
            !server.address.is_empty()
        });
        server
    }

    /// The URL of one of its paths.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Its output on standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr
            .lock()
            .expect("no thread panics with it")
            .clone()
    }

    /// The address in the lines so far; empty if there is none.
    fn printed_address(&self) -> String {
        let stderr = self.stderr();
        let port = stderr.split_once(ADDRESS).map(|(_, rest)| {
            rest.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        });
        port.filter(|port| !port.is_empty())
            .map(|port| format!("127.0.0.1:{port}"))
            .unwrap_or_default()
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        // A group that has ended cannot be killed again.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
