//! The baseline: a minimal relay between HTTP and a stdio server. `POST` in, one line to the child, its
//! result out, own ids; the same axum and serde_json, and nothing else.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

type Waiting = Mutex<HashMap<u64, oneshot::Sender<String>>>;

#[derive(Clone)]
struct Relay {
    next: Arc<AtomicU64>,
    waiting: Arc<Waiting>,
    lines: mpsc::Sender<String>,
}

#[derive(Deserialize)]
struct Call<'a> {
    path: &'a str,
    #[serde(borrow)]
    args: &'a RawValue,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: &'a RawValue,
}

#[tokio::main]
pub(crate) async fn run(program: &str) -> Result<(), Box<dyn std::error::Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the floor starts its one child plainly"
    )]
    let mut child = tokio::process::Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    handshake(&mut stdin, &mut stdout).await?;

    let (lines, queue) = mpsc::channel(1024);
    let relay = Relay {
        next: Arc::default(),
        waiting: Arc::default(),
        lines,
    };
    tokio::spawn(write(stdin, queue));
    tokio::spawn(read(stdout, Arc::clone(&relay.waiting)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(
        std::io::stderr(),
        "listening on http://{}",
        listener.local_addr()?
    )?;
    axum::serve(
        listener,
        Router::new()
            .route("/meta_call", post(call))
            .with_state(relay),
    )
    .await?;
    Ok(())
}

async fn handshake(
    stdin: &mut ChildStdin,
    stdout: &mut BufReader<ChildStdout>,
) -> std::io::Result<()> {
    let hello = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"relay","version":"0"}}}"#;
    stdin.write_all(format!("{hello}\n").as_bytes()).await?;
    stdout.read_line(&mut String::new()).await?;
    stdin
        .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
        .await
}

async fn call(State(relay): State<Relay>, body: Bytes) -> Response {
    let Ok(call) = serde_json::from_slice::<Call<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let name = call.path.rsplit('/').next().unwrap_or_default();
    let id = relay.next.fetch_add(1, Ordering::Relaxed);
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\",\"arguments\":{}}}}}\n",
        call.args
    );
    let (send, receive) = oneshot::channel();
    relay
        .waiting
        .lock()
        .expect("no thread panics with the lock")
        .insert(id, send);
    if relay.lines.send(line).await.is_err() {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    match receive.await {
        Ok(result) => ([(CONTENT_TYPE, "application/json")], result).into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<String>) -> std::io::Result<()> {
    while let Some(mut lines) = queue.recv().await {
        // What has queued up meanwhile goes along: one write for many lines.
        while let Ok(more) = queue.try_recv() {
            lines.push_str(&more);
        }
        stdin.write_all(lines.as_bytes()).await?;
    }
    Ok(())
}

async fn read(mut stdout: BufReader<ChildStdout>, waiting: Arc<Waiting>) -> std::io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if stdout.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let Ok(answer) = serde_json::from_str::<Answer<'_>>(&line) else {
            continue;
        };
        if let Some(caller) = waiting
            .lock()
            .expect("no thread panics with the lock")
            .remove(&answer.id)
        {
            // A caller that is gone needs no answer.
            let _ = caller.send(answer.result.get().to_owned());
        }
    }
}
