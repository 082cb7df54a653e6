//! Layers around a core: each takes part in lists and calls of a served broker, over HTTP and over stdio.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use harness::{Run, post};
use mcp_broker::core::{
    Broker, CallCode, Core, CoreError, DriftClass, DynBroker, Identity, ListedEntry, Listing,
    Outcome, Request, Restrict, WithdrawalNote, forward,
};
use mcp_broker::embed;
use mcp_broker::observe::{CallEnd, RecordSink, Recorded, RecordedCall, Sinks};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[expect(unreachable_pub, reason = "generated for the root of a program")]
mod smoke {
    mcp_broker::include_catalog!();
}

/// The tool that [`Restrict`] leaves out.
const HIDDEN: &str = "/util/time_now";
/// The tool that [`Closed`] refuses.
const CLOSED: &str = "/util/fail";
/// The tool that every layer lets through.
const OPEN: &str = "/util/hash_text";

/// Applies a change to an entry and to all entries below it.
fn change(entry: &mut ListedEntry, apply: &dyn Fn(&mut ListedEntry)) {
    apply(entry);
    for child in entry.children.iter_mut().flatten() {
        change(child, apply);
    }
}

/// Marks summaries in lists, and adds a warning to results.
#[derive(Clone, Debug)]
struct Marked<B> {
    inner: B,
}

impl<B: Broker> Broker for Marked<B> {
    forward!(inner: services, describe, search, look_up, items, tools, callable_tools, listed_items, health, close);

    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>> {
        let mut tree = self.inner.list(identity, path, depth)?.tree();
        change(&mut tree, &|entry| {
            entry.summary = format!("marked: {}", entry.summary).into();
        });
        Ok(tree.into())
    }

    async fn call(&self, request: Request) -> Result<Outcome, Box<CoreError>> {
        let mut outcome = self.inner.call(request).await?;
        outcome.warnings.push("marked".to_owned());
        Ok(outcome)
    }
}

/// Shows one tool as withdrawn, and refuses its calls.
#[derive(Clone, Debug)]
struct Closed<B> {
    inner: B,
}

impl<B: Broker> Broker for Closed<B> {
    forward!(inner: services, describe, search, look_up, items, tools, callable_tools, listed_items, health, close);

    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>> {
        let mut tree = self.inner.list(identity, path, depth)?.tree();
        change(&mut tree, &|entry| {
            if entry.path == CLOSED {
                let since = "2026-01-01T00:00:00Z".to_owned();
                let note = WithdrawalNote::new(DriftClass::Breaking, "closed today", since);
                entry.withdrawn = Some(note);
            }
        });
        Ok(tree.into())
    }

    async fn call(&self, request: Request) -> Result<Outcome, Box<CoreError>> {
        if request.path == CLOSED {
            let error = CoreError::new(CallCode::ToolWithdrawn, "closed today");
            return Err(Box::new(error.path(CLOSED).maybe_executed(false)));
        }
        self.inner.call(request).await
    }
}

/// Collects the records of calls: path, reviewed item, end.
#[derive(Clone, Debug, Default)]
struct Collected(Arc<Mutex<Vec<(String, bool, String)>>>);

impl RecordSink for Collected {
    fn is_enabled(&self) -> bool {
        true
    }

    fn record(&self, call: &RecordedCall, end: CallEnd<'_>) {
        let end = match end {
            CallEnd::Answered { .. } => "ok".to_owned(),
            CallEnd::Accepted => "accepted".to_owned(),
            CallEnd::Failed(error) => error.code.as_str().to_owned(),
            CallEnd::Abandoned => "abandoned".to_owned(),
        };
        let is_known = call.item().is_some();
        let mut records = self.0.lock().expect("no test panicked");
        records.push((call.path.clone().into_owned(), is_known, end));
    }
}

impl Collected {
    fn take(&self) -> Vec<(String, bool, String)> {
        std::mem::take(&mut self.0.lock().expect("no test panicked"))
    }
}

/// Returns a core of the smoke catalog, and the broker of three layers and a record around it.
async fn stack(records: &Collected) -> (Core, DynBroker) {
    let core = Core::builder(&smoke::CATALOG).build().expect("it is valid");
    core.start();
    let verdict = core.services().first_verdict().await;
    assert!(verdict.refuse.is_none(), "{:?}", verdict.report);
    let layers = Marked {
        inner: Closed {
            inner: Restrict::new(core.clone(), |_, item| item.path != HIDDEN),
        },
    };
    let recorded = Recorded::new(layers, Sinks::default().with(records.clone()));
    (core, DynBroker::new(recorded))
}

/// Returns the records of the calls that [`calls`] lists.
fn expected_records() -> Vec<(String, bool, String)> {
    let record = |path: &str, is_known, end: &str| (path.to_owned(), is_known, end.to_owned());
    vec![
        record(OPEN, true, "ok"),
        // Layers refuse these, so that the core sees none of them.
        record(CLOSED, false, "tool_withdrawn"),
        record(HIDDEN, false, "path_not_found"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn three_layers_take_part_in_lists_and_calls_over_http() {
    let records = Collected::default();
    let (core, broker) = stack(&records).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let served = tokio::spawn(embed::serve_http(broker.clone(), listener, None));
    let ask = async |route: &'static str, body: Value| {
        let address = address.clone();
        let asked = tokio::task::spawn_blocking(move || post(&address, route, &body).json());
        asked.await.expect("the listener answers")
    };
    let tree = ask("/meta_tree", json!({"path": "/util"})).await;
    let children = tree["children"].as_array().expect("a list");
    let child = |path: &str| children.iter().find(|child| child["path"] == path);
    assert_eq!(child(HIDDEN), None);
    let closed = child(CLOSED).expect("it is listed");
    assert_eq!(closed["withdrawn"]["message"], "closed today", "{closed}");
    let summary = child(OPEN).expect("it is listed")["summary"].as_str();
    assert!(
        summary.is_some_and(|text| text.starts_with("marked: ")),
        "{tree}"
    );

    let called = ask(
        "/meta_call",
        json!({"path": OPEN, "args": {"text": "hello"}}),
    )
    .await;
    assert_eq!(called["warnings"], json!(["marked"]), "{called}");
    assert_eq!(called["result"]["structuredContent"]["bytes"], 5);
    let called = ask("/meta_call", json!({"path": CLOSED})).await;
    assert_eq!(called["error"]["message"], "closed today", "{called}");
    let called = ask("/meta_call", json!({"path": HIDDEN})).await;
    assert_eq!(called["error"]["code"], "path_not_found", "{called}");
    assert_eq!(records.take(), expected_records());

    core.services().drain().begin_draining();
    broker.close().await;
    core.services().drain().finish();
    served.await.expect("it does not panic").expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_layers_take_part_in_lists_and_calls_over_stdio() {
    let records = Collected::default();
    let (core, broker) = stack(&records).await;
    let (client, server) = UnixStream::pair().expect("a pair of sockets");
    let output = server.try_clone().expect("a second handle");
    let served = embed::serve_stdio(broker.clone(), Identity::local(), server, output);
    let served = tokio::spawn(served);
    let asked = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(client.try_clone().expect("a second handle")).lines();
        let mut id = 0;
        let mut ask = |method: &str, params: Value| -> Value {
            id += 1;
            let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            writeln!(&client, "{line}").expect("the broker reads");
            let line = lines.next().expect("an answer").expect("UTF-8");
            serde_json::from_str(&line).expect("JSON")
        };
        ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        );
        let mut call = |tool: &str, arguments: Value| {
            let answer = ask("tools/call", json!({"name": tool, "arguments": arguments}));
            answer["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let tree = call("meta_tree", json!({"path": "/util"}));
        let calls = [OPEN, CLOSED, HIDDEN].map(|path| {
            let args = json!({"text": "hello"});
            call("meta_call", json!({"path": path, "args": args}))
        });
        client
            .shutdown(std::net::Shutdown::Write)
            .expect("it is open");
        (tree, calls)
    });
    let (tree, [open, closed, hidden]) = asked.await.expect("the broker answers");
    let line = |path: &str| tree.lines().find(|line| line.starts_with(path));
    assert_eq!(line(HIDDEN), None);
    assert!(
        line(CLOSED).is_some_and(|line| line.ends_with("(withdrawn: cannot be called)")),
        "{tree}"
    );
    assert!(
        line(OPEN).is_some_and(|line| line.contains("  marked: ")),
        "{tree}"
    );
    assert!(open.contains("2cf24dba"), "{open}");
    assert!(closed.contains("closed today"), "{closed}");
    assert!(hidden.contains("path_not_found"), "{hidden}");
    assert_eq!(records.take(), expected_records());
    served.await.expect("it does not panic").expect("it ends");
    core.close().await;
}

/// Runs an example of the package.
fn run_example(name: &str) -> String {
    let own = std::env::current_exe().expect("a test has a path");
    let build = own
        .parent()
        .and_then(Path::parent)
        .expect("the target folder");
    let output = Run::new(&build.join("examples").join(name)).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    output.stdout
}

#[test]
fn example_of_a_layer_refuses_and_calls() {
    let stdout = run_example("embed");
    let expected = "serving on 127.0.0.1\nwithout a credential: calls need a credential\ncalled /util/hash_text: ";
    assert!(stdout.starts_with(expected), "{stdout}");
}

#[test]
fn example_of_a_server_in_the_process_is_compared_and_called() {
    let stdout = run_example("in_process");
    assert_eq!(stdout, "hash: 5 bytes\ntime: tool_withdrawn\n");
}
