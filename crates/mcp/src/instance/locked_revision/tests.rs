//! A server that has another revision than it was locked with, over scripted servers, with a paused clock.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker_model::Snapshot;
use broker_wire::protocol::{LEGACY, MODERN};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::Pipes;
use crate::instance::{DriftCheck, Instance, Verdict};
use crate::server_call::ServerCall;
use crate::status::State;
use crate::test_spec::scripted_source;

const HOUR: Duration = Duration::from_secs(3600);

/// A server that has the locked revision only while `has_locked`.
#[derive(Default)]
struct Server {
    has_locked: AtomicBool,
    starts: AtomicUsize,
    running: AtomicUsize,
}

/// Counts a server until it is dropped.
struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    async fn serve(self: Arc<Self>, pipes: Pipes, locked: &'static str) -> i32 {
        self.starts.fetch_add(1, Ordering::SeqCst);
        let _running = Running::new(&self.running);
        let has_locked = self.has_locked.load(Ordering::SeqCst);
        let mut output = pipes.output;
        let mut lines = BufReader::new(pipes.input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).unwrap();
            let members = match line["method"].as_str().unwrap() {
                "initialize" => {
                    let revision = match has_locked && locked != MODERN {
                        true => locked,
                        false => LEGACY[1],
                    };
                    json!({"result": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}})
                }
                "server/discover" if has_locked && locked == MODERN => {
                    json!({"result": {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}, "ttlMs": 0, "cacheScope": "private"}})
                }
                "server/discover" => json!({"error": {"code": -32601, "message": "no"}}),
                "tools/list" => {
                    json!({"result": {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}})
                }
                "tools/call" => {
                    sleep(Duration::from_secs(100)).await;
                    json!({"result": {"content": [], "resultType": "complete"}})
                }
                _ => continue,
            };
            let mut answer = json!({"jsonrpc": "2.0", "id": line["id"]});
            let members = members.as_object().unwrap().clone();
            answer.as_object_mut().unwrap().extend(members);
            if output
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .is_err()
            {
                break;
            }
        }
        0
    }

    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }
}

/// Keeps the revisions of the listings that it checks.
#[derive(Clone, Default)]
struct Revisions(Arc<Mutex<Vec<String>>>);

impl DriftCheck for Revisions {
    fn check(&self, snapshot: &Snapshot) -> Verdict {
        let mut all = self.0.lock().unwrap();
        all.push(snapshot.protocol_version.clone());
        Verdict::Serve
    }
}

impl Revisions {
    fn last(&self) -> Option<String> {
        self.0.lock().unwrap().last().cloned()
    }
}

async fn start(server: &Arc<Server>, locked: &'static str, checks: &Revisions) -> Instance {
    let served = server.clone();
    let spec = scripted_source(move |pipes| served.clone().serve(pipes, locked));
    let checks = Arc::new(checks.clone());
    let source = Instance::start(spec, Some(locked), checks, &TaskTracker::new());
    let mut status = source.status();
    let ready = status.wait_for(|status| status.state == State::Ready);
    timeout(HOUR, ready).await.unwrap().unwrap();
    source
}

#[tokio::test(start_paused = true)]
async fn server_that_has_the_locked_revision_again_is_compared_again_and_ends_no_call() {
    for locked in [MODERN, LEGACY[0]] {
        let (server, checks) = (Arc::new(Server::default()), Revisions::default());
        let source = start(&server, locked, &checks).await;
        assert_eq!(checks.last().as_deref(), Some(LEGACY[1]));
        let call = {
            let source = source.clone();
            tokio::spawn(async move { source.call(ServerCall::new("work", b"{}"), HOUR).await })
        };
        sleep(Duration::from_millis(10)).await;
        server.has_locked.store(true, Ordering::SeqCst);
        // In the 73rd second at the latest.
        let again = async {
            while checks.last().as_deref() != Some(locked) {
                sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(Duration::from_secs(75), again).await.expect(locked);
        assert_eq!(source.status().borrow().state, State::Ready);
        assert!(!call.is_finished(), "the call goes on");
        assert!(call.await.unwrap().is_ok(), "{locked}");
        // The process that was replaced ends behind its call, and the other one is asked no more.
        sleep(HOUR).await;
        assert_eq!(server.running.load(Ordering::SeqCst), 1, "{locked}");
        let starts = server.starts();
        sleep(24 * HOUR).await;
        assert_eq!(server.starts(), starts, "{locked}");
        source.stop().await;
        assert_eq!(server.running.load(Ordering::SeqCst), 0, "{locked}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_keeps_another_revision_is_asked_each_hour_at_most() {
    let (server, checks) = (Arc::new(Server::default()), Revisions::default());
    let source = start(&server, MODERN, &checks).await;
    let first = server.starts();
    sleep(HOUR).await;
    // After 1, 3, 7, 15 and 31 minutes; each is one start.
    let asked = server.starts() - first;
    assert!((4..=6).contains(&asked), "{asked}");
    sleep(23 * HOUR).await;
    let asked = server.starts() - first;
    assert!((20..=36).contains(&asked), "{asked}");
    assert_eq!(checks.0.lock().unwrap().len(), 1, "the listing is the same");
    assert_eq!(source.status().borrow().restarts, 0);
    assert_eq!(server.running.load(Ordering::SeqCst), 1);
    source.stop().await;
}
