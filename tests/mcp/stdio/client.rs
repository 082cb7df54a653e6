//! A client that writes lines by hand and reads the output as it is. Every line of standard output must
//! be one JSON value.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use harness::{binary, wait_until};
use serde_json::{Value, json};

/// Generous: machines are shared.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) const MODERN: &str = "2026-07-28";

/// A running broker and both ends of its pipes; killed when dropped.
#[derive(Debug)]
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    /// Lines that were read and not yet requested.
    early: Vec<Value>,
}

/// The exit of a broker.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    /// The rest of its standard output.
    pub(crate) rest: Vec<Value>,
    pub(crate) stderr: String,
}

impl Client {
    /// The broker of this package on the smoke config.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_program(&binary("mcp-broker"), args, &[])
    }

    /// Starts the program with its log written to `stderr`.
    pub(crate) fn start_logging_to(stderr: Stdio, args: &[&str]) -> Self {
        Self::start_with(&binary("mcp-broker"), args, &[], stderr)
    }

    pub(crate) fn start_program(program: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_with(program, args, env, Stdio::piped())
    }

    fn start_with(program: &Path, args: &[&str], env: &[(&str, &str)], stderr: Stdio) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the harness runs programs to their end; this one is talked to"
        )]
        let mut command = Command::new(program);
        let mut child = command
            .arg("stdio")
            .args(args)
            .envs(env.iter().copied())
            .env_remove("MCP_BROKER_SECRET")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .expect("the broker starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = child.stderr.take();
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            // The text that was read before the error is returned.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            early: Vec::new(),
        }
    }

    /// Started and initialized in the legacy era.
    pub(crate) fn legacy(revision: &str) -> Self {
        let mut client = Self::start(&[]);
        let answer = client.request(json!("init"), "initialize", hello(revision));
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// The process that was started, which is the broker's guard.
    pub(crate) fn guard(&self) -> u32 {
        self.child.id()
    }

    /// The process whose children are the servers.
    pub(crate) fn pid(&self) -> u32 {
        harness::guarded_by(self.guard())
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(bytes).expect("the broker reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn ask(&mut self, id: Value, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// The next line.
    pub(crate) fn read(&mut self) -> Value {
        if !self.early.is_empty() {
            return self.early.remove(0);
        }
        self.next()
    }

    /// The answer of this id; earlier ones are kept for [`Client::read`].
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        if let Some(at) = self
            .early
            .iter()
            .position(|value| value.get("id") == Some(id))
        {
            return self.early.remove(at);
        }
        loop {
            let value = self.next();
            if value.get("id") == Some(id) {
                return value;
            }
            self.early.push(value);
        }
    }

    pub(crate) fn request(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.ask(id.clone(), method, params);
        self.answer(&id)
    }

    /// The code of the error that answers a request.
    pub(crate) fn refusal(&mut self, method: &str, params: Value) -> i64 {
        let answer = self.request(json!("refused"), method, params);
        let code = answer["error"]["code"].as_i64();
        code.unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// The result of a tool, in the legacy era.
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let answer = self.request(json!("tool"), "tools/call", params);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The error object in the result of a tool that must fail.
    pub(crate) fn tool_error(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        serde_json::from_str(text).expect("an error object")
    }

    pub(crate) fn signal(&self, name: &str) {
        kill(name, &self.guard().to_string());
    }

    /// SIGKILL to the group that the process which was started leads.
    pub(crate) fn kill_group(&self) {
        kill("KILL", &format!("-{}", self.guard()));
    }

    /// Closes the input and waits.
    pub(crate) fn end(mut self) -> End {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> End {
        let mut status = None;
        wait_until("the broker ends", || {
            status = self.child.try_wait().expect("its state can be read");
            status.is_some()
        });
        let rest = self.lines.iter().map(|line| parse(&line)).collect();
        let stderr = self.stderr.take().expect("not yet taken").join();
        End {
            status: status.expect("it ended"),
            rest,
            stderr: stderr.expect("the reader does not panic"),
        }
    }

    fn next(&mut self) -> Value {
        match self.lines.recv_timeout(WAIT_TIMEOUT) {
            Ok(line) => parse(&line),
            Err(error) => panic!("no line came: {error}"),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A broker that already ended cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn kill(signal: &str, whom: &str) {
    let kill = harness::Run::new(Path::new("/bin/sh"))
        .args(["-c", &format!("kill -s {signal} -- {whom}")])
        .output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

/// The parameters of `initialize`.
pub(crate) fn hello(revision: &str) -> Value {
    json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "by hand", "version": "0"}})
}

/// `params` with `_meta` of the modern era.
pub(crate) fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

/// A call of the smoke config's slow tool.
pub(crate) fn slow(milliseconds: u64) -> Value {
    json!({"name": "meta_call", "arguments": {
        "path": "/util/slow_echo",
        "args": {"text": "late", "milliseconds": milliseconds},
    }})
}

/// A call of a quick one.
pub(crate) fn quick() -> Value {
    json!({"name": "meta_call", "arguments": {
        "path": "/util/hash_text",
        "args": {"text": "hello", "algorithm": "crc32"},
    }})
}
