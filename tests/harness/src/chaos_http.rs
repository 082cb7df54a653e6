//! A scripted test server over HTTP: its process, and the requests in its journal.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;

use serde_json::{Value, json};

use crate::binaries::binary;
use crate::chaos::Chaos;
use crate::program::{Run, wait_until};

/// A scripted server at a free port of 127.0.0.1; ended when dropped.
#[derive(Debug)]
pub struct ChaosServer {
    child: Child,
    /// The URL of its endpoint.
    pub url: String,
    /// `127.0.0.1:PORT`.
    pub address: String,
}

impl ChaosServer {
    /// Starts the server of the source `name`, whose script and journal are in the folder.
    pub fn start(chaos: &Chaos, name: &str) -> Self {
        Self::start_at(chaos, name, "127.0.0.1:0")
    }

    /// Starts it at this address; waits until a process that had the address before has released it.
    pub fn start_at(chaos: &Chaos, name: &str, address: &str) -> Self {
        Self::start_in(chaos.path(), name, address)
    }

    /// Starts it at this address, with script and journal in this folder.
    pub fn start_in(folder: &Path, name: &str, address: &str) -> Self {
        let mut started = None;
        wait_until("the scripted server listens", || {
            started = Self::try_start(folder, name, address);
            started.is_some()
        });
        started.expect("it was started")
    }

    fn try_start(folder: &Path, name: &str, address: &str) -> Option<Self> {
        let file = |end: &str| folder.join(format!("{name}.{end}")).into_os_string();
        let mut command = Run::new(&binary("chaos-mcp"))
            .args(["--http", address, "--script"])
            .args([file("json")])
            .args(["--journal"])
            .args([file("log")])
            .into_command();
        command
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::inherit());
        let mut child = command.spawn().expect("the server starts");
        let mut url = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        let read = BufReader::new(stdout).read_line(&mut url);
        let url = url.trim_end().to_owned();
        let address = url
            .strip_prefix("http://")
            .and_then(|rest| rest.split('/').next())
            .map(str::to_owned);
        match (read, address) {
            (Ok(_), Some(address)) => Some(Self {
                child,
                url,
                address,
            }),
            _ => {
                // The address is in use.
                let _ = child.kill();
                let _ = child.wait();
                None
            }
        }
    }

    /// The port.
    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap_or_default()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ChaosServer {
    fn drop(&mut self) {
        // A server that already ended cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Chaos {
    /// The HTTP requests in the journal of a source that have these members.
    pub fn requests(&self, source: &str, members: &Value) -> Vec<Value> {
        let wanted = members.as_object().expect("members are an object");
        let mut requests = self.events(source, "http");
        requests.retain(|request| {
            let mut wanted = wanted.iter();
            wanted.all(|(name, value)| request[name] == *value)
        });
        requests
    }

    /// Waits until the journal has this many such requests, and returns them.
    pub fn await_requests(&self, source: &str, members: &Value, count: usize) -> Vec<Value> {
        wait_until(&format!("`{source}` gets {count} of {members}"), || {
            self.requests(source, members).len() >= count
        });
        self.requests(source, members)
    }

    /// The tool calls that a source has executed with this text as their argument.
    pub fn executions(&self, source: &str, text: &str) -> usize {
        let calls = self.events(source, "call").into_iter();
        let of_text = |call: &Value| call["arguments"]["text"] == text;
        calls.filter(of_text).count()
    }
}

/// The script of a server over HTTP with these members of `http`.
pub fn http_script(era: &str, http: &Value) -> Value {
    json!({"era": era, "http": http})
}

/// A rule for the calls of `echo`.
pub fn on_echo(fault: &Value) -> Value {
    json!({"on": {"tool": "echo"}, "do": fault})
}
