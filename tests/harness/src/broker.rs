//! A broker under test: start, requests, stop. Its output is recorded.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::access::{self, Ruled};
use crate::http::{self, Response};
use crate::load::BrokerSlot;
use crate::program::{Run, WAIT_TIMEOUT, guarded_by, now, wait_until};

/// A running broker; killed when dropped.
#[derive(Debug)]
pub struct Broker {
    child: Child,
    /// The broker itself, below its guard.
    pid: u32,
    address: String,
    stderr: Arc<Mutex<String>>,
    deaf: Arc<AtomicBool>,
    /// Present in tests under rules of access.
    ruled: Option<Ruled>,
    _slot: BrokerSlot,
}

impl Broker {
    /// Starts it and waits until it prints its address. `run` has the program, `127.0.0.1:0` and
    /// further arguments of the test.
    pub fn start(run: Run) -> Self {
        let slot = BrokerSlot::take();
        let (run, ruled) = access::prepare(run);
        let mut child = run.into_command().spawn().expect("the broker starts");
        let stderr = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let kept = Arc::clone(&stderr);
        let deaf = Arc::new(AtomicBool::new(false));
        let closes = Arc::clone(&deaf);
        thread::spawn(move || {
            let mut line = Vec::new();
            while !closes.load(Ordering::Acquire)
                && lines
                    .read_until(b'\n', &mut line)
                    .is_ok_and(|read| read > 0)
            {
                kept.lock()
                    .expect("the reader does not panic")
                    .push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        let mut broker = Self {
            pid: child.id(),
            child,
            address: String::new(),
            stderr,
            deaf,
            ruled,
            _slot: slot,
        };
        let deadline = now() + WAIT_TIMEOUT;
        while broker.address.is_empty() {
            let said = broker.stderr();
            if let Some((_, rest)) = said.split_once("listening on http://") {
                broker.address = rest
                    .split([' ', '\n', '"'])
                    .next()
                    .unwrap_or_default()
                    .to_owned();
            }
            let ended = broker.child.try_wait().expect("its state can be read");
            assert!(
                ended.is_none() && now() < deadline,
                "the broker does not listen ({ended:?}):\n{said}"
            );
            thread::sleep(std::time::Duration::from_millis(5));
        }
        broker.pid = guarded_by(broker.child.id());
        if let Some(ruled) = &mut broker.ruled {
            ruled.listens(&broker.address);
        }
        broker
    }

    /// [`Broker::start`], then waits until `/readyz` answers 200.
    pub fn start_ready(run: Run) -> Self {
        let broker = Self::start(run);
        wait_until("the broker is ready", || {
            http::get(&broker.address, "/readyz").status == 200
        });
        broker
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process whose children are the sources.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The process that was started: on Linux the guard of [`Broker::pid`].
    pub fn guard(&self) -> u32 {
        self.child.id()
    }

    /// Its output on standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr
            .lock()
            .expect("the reader does not panic")
            .clone()
    }

    /// Closes the pipe of its log, once it has written another line.
    pub fn close_log(&self) {
        self.deaf.store(true, Ordering::Release);
    }

    /// `POST` of a JSON body.
    pub fn post(&self, route: &str, body: &Value) -> Response {
        http::post(&self.address, route, body)
    }

    /// `GET`.
    pub fn get(&self, route: &str) -> Response {
        http::get(&self.address, route)
    }

    /// `meta_call`.
    pub fn call(&self, path: &str, args: Value) -> Response {
        self.post("/meta_call", &json!({"path": path, "args": args}))
    }

    /// The result of a call that must succeed.
    pub fn result(&self, path: &str, args: Value) -> Value {
        let response = self.call(path, args);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()["result"].clone()
    }

    /// The state of one source in `/readyz`.
    pub fn source(&self, path: &str) -> Value {
        self.source_at("/readyz", path)
    }

    /// Returns a source as `/sources` shows it: with counters, and with what is odd about its latest listing.
    pub fn source_details(&self, path: &str) -> Value {
        self.source_at("/sources", path)
    }

    fn source_at(&self, route: &str, path: &str) -> Value {
        let sources = self.get(route).json()["sources"].take();
        let sources = sources.as_array().cloned().unwrap_or_default();
        let mut sources = sources.into_iter();
        sources
            .find(|source| source["path"] == path)
            .unwrap_or(Value::Null)
    }

    /// Sends a signal, by name, to the process that was started.
    pub fn signal(&self, name: &str) {
        let kill = Run::new(std::path::Path::new("/bin/sh"))
            .args(["-c", &format!("kill -{name} {}", self.guard())])
            .output();
        assert_eq!(kill.code, Some(0), "{}", kill.stderr);
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn terminate(mut self) -> (ExitStatus, String) {
        self.signal("TERM");
        let status = self.wait();
        (status, self.stderr())
    }

    /// Waits for its end; returns its status and its standard output.
    pub fn finish(mut self) -> (ExitStatus, String, String) {
        let status = self.wait();
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout)
                .expect("standard output is text");
        }
        (status, stdout, self.stderr())
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the broker ends", || {
            status = self.child.try_wait().expect("its state can be read");
            status.is_some()
        });
        status.expect("it ended")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // A broker that already ended cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
