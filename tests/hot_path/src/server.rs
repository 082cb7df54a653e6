//! A server of the tools in `tools.json` that answers each call with a stored result. It reads only the
//! method, the id and the name of the tool, and allocates nothing per call, so that a count is that of the
//! broker.

use memchr::{memchr, memmem};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::path::{LARGE_BYTES, SMALL_BYTES};

const TOOLS: &str = include_str!("../tools.json");
const READ_BYTES: usize = 64 << 10;

/// Serves until the end of `input`, or until one of the two fails.
pub async fn serve(mut input: impl AsyncRead + Unpin, mut output: impl AsyncWrite + Unpin) -> i32 {
    let mut server = Server::new();
    let mut lines = Vec::with_capacity(READ_BYTES);
    loop {
        while let Some(end) = memchr(b'\n', &lines) {
            server.answer(&lines[..end]);
            lines.drain(..=end);
            if output.write_all(&server.reply).await.is_err() {
                return 0;
            }
        }
        if !matches!(input.read_buf(&mut lines).await, Ok(1..)) {
            return 0;
        }
    }
}

struct Server {
    /// The members behind the id in the answers to a call, with their line end.
    small: Vec<u8>,
    large: Vec<u8>,
    reply: Vec<u8>,
}

impl Server {
    fn new() -> Self {
        Self {
            small: result_of(SMALL_BYTES),
            large: result_of(LARGE_BYTES),
            reply: Vec::with_capacity(LARGE_BYTES + 100),
        }
    }

    /// Writes the answer to `line` into `self.reply`; empty for a notification.
    fn answer(&mut self, line: &[u8]) {
        self.reply.clear();
        let Some(id) = number_after(line, br#""id":"#) else {
            return;
        };
        self.reply.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        self.reply.extend_from_slice(id);
        let has = |text: &str| memmem::find(line, text.as_bytes()).is_some();
        if has(r#""method":"tools/call""#) {
            let result = if has(r#""name":"read""#) {
                &self.large
            } else {
                &self.small
            };
            self.reply.extend_from_slice(result);
            return;
        }
        let recorded: Value = serde_json::from_str(TOOLS).expect("the file is JSON");
        let answer = if has(r#""method":"initialize""#) {
            let members = ["serverInfo", "protocolVersion", "capabilities"];
            let members = members.map(|name| (name.to_owned(), recorded[name].clone()));
            json!({"result": Value::Object(members.into_iter().collect())})
        } else if has(r#""method":"tools/list""#) {
            json!({"result": {"tools": recorded["tools"]}})
        } else {
            json!({"error": {"code": -32601, "message": "the method does not exist"}})
        };
        let members = answer.to_string();
        self.reply.push(b',');
        self.reply.extend_from_slice(&members.as_bytes()[1..]);
        self.reply.push(b'\n');
    }
}

/// The members of an answer from the result on, which has `bytes` bytes.
fn result_of(bytes: usize) -> Vec<u8> {
    let (head, end) = (r#"{"content":[{"type":"text","text":""#, r#""}]}"#);
    let text = "x".repeat(bytes - head.len() - end.len());
    format!(",\"result\":{head}{text}{end}}}\n").into_bytes()
}

/// The digits behind the first occurrence of `name`.
fn number_after<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let from = memmem::find(line, name)? + name.len();
    let rest = &line[from..];
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (length > 0).then(|| &rest[..length])
}
