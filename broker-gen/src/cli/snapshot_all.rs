//! Launches sources concurrently and collects their snapshots; shows meanwhile which ones have not
//! answered. The failure of one source does not stop the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use broker_mcp::{Session, SourceFailure, SourceSpec};
use broker_model::json::child_pointer;
use broker_model::lock::strip_volatile;
use broker_model::snapshot::{ListedTool, Snapshot};
use broker_model::{NodePath, SourceCause, text};
use broker_process::StderrTail;
use broker_wire::Era;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::output::say;
use super::progress::Progress;

/// Maximum number of servers that start at one time.
const MAX_CONCURRENT_STARTS: usize = 8;

/// The snapshot of one source to take.
#[derive(Clone, Debug)]
pub(super) struct SnapshotJob {
    pub(super) spec: SourceSpec,
    /// The protocol era to try first.
    pub(super) era: Option<Era>,
    /// Members that may differ between launches.
    pub(super) volatile: Vec<String>,
    /// Launch twice, and compare.
    pub(super) twice: bool,
}

/// The result of one job.
#[derive(Debug)]
pub(super) struct SnapshotResult {
    pub(super) source: NodePath,
    pub(super) outcome: Result<Snapshot, Failure>,
    pub(super) took: Duration,
}

/// The reason why there is no snapshot.
#[derive(Debug)]
pub(super) enum Failure {
    /// The source could not be started or listed.
    Source(SourceFailure),
    /// Two launches gave different tools; these pointers differ.
    Unstable(Vec<String>),
}

/// Takes all snapshots; results have the order of the jobs.
pub(super) async fn snapshot_all(jobs: Vec<SnapshotJob>) -> Vec<SnapshotResult> {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_STARTS));
    let mut tasks = JoinSet::new();
    let mut progress = Progress::new();
    let started = Instant::now();
    let sources: Vec<_> = jobs.iter().map(|job| job.spec.source.clone()).collect();
    for (index, job) in jobs.into_iter().enumerate() {
        let tail = StderrTail::new(job.spec.redactor.clone());
        progress.add(index, job.spec.source.clone(), tail.clone());
        let permits = Arc::clone(&permits);
        tasks.spawn(async move {
            let _permit = permits.acquire_owned().await;
            let started = Instant::now();
            let source = job.spec.source.clone();
            let outcome = take_snapshot(&job, &tail).await;
            (
                index,
                SnapshotResult {
                    source,
                    outcome,
                    took: started.elapsed(),
                },
            )
        });
    }
    let mut results: Vec<Option<SnapshotResult>> = sources.iter().map(|_| None).collect();
    loop {
        match tokio::time::timeout(progress.pause(), tasks.join_next()).await {
            Ok(Some(Ok((index, result)))) => {
                progress.remove(index);
                results[index] = Some(result);
            }
            Ok(Some(Err(panicked))) => {
                progress.clear();
                say(text!("error: a task of broker-gen failed: {}", panicked));
            }
            Ok(None) => break,
            Err(_) => progress.tick(),
        }
    }
    progress.clear();
    // A failed task must not drop its source silently.
    for (index, source) in sources.into_iter().enumerate() {
        results[index].get_or_insert_with(|| SnapshotResult {
            source,
            outcome: Err(Failure::Source(SourceFailure::new(
                SourceCause::ListFailed,
                "broker-gen failed meanwhile",
            ))),
            took: started.elapsed(),
        });
    }
    results.into_iter().flatten().collect()
}

async fn take_snapshot(job: &SnapshotJob, tail: &StderrTail) -> Result<Snapshot, Failure> {
    let first = snapshot(job, job.era, tail)
        .await
        .map_err(Failure::Source)?;
    if !job.twice {
        return Ok(first);
    }
    let era = Era::of_revision(&first.protocol_version);
    let second = snapshot(job, era, tail).await.map_err(Failure::Source)?;
    let volatile = job.volatile.clone();
    let concurrency = &job.spec.concurrency;
    let compared = concurrency.parse_aside(move || {
        let unstable = compare(&first, &second, &volatile);
        (first, unstable)
    });
    let (first, unstable) = compared.await.unwrap_or_else(resume);
    if unstable.is_empty() {
        Ok(first)
    } else {
        Err(Failure::Unstable(unstable))
    }
}

/// Resumes the panic of a blocking task; it was printed where it occurred.
pub(super) fn resume<T>(error: JoinError) -> T {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => panic!("work was cancelled that nothing cancels: {error}"),
    }
}

async fn snapshot(
    job: &SnapshotJob,
    era: Option<Era>,
    tail: &StderrTail,
) -> Result<Snapshot, SourceFailure> {
    let session = Session::open_watched(&job.spec, era, tail).await?;
    let snapshot = session.snapshot().await;
    session.stop().await;
    snapshot
}

/// The pointers at which two launches differ: into a tool (`/tools/NAME/…`) or into the source, without
/// volatile ones. One tool of each launch is parsed at a time.
fn compare(first: &Snapshot, second: &Snapshot, volatile: &[String]) -> Vec<String> {
    let source = |snapshot: &Snapshot| {
        serde_json::json!({
            "server_info": snapshot.server_info,
            "instructions": snapshot.instructions,
            "capabilities": snapshot.capabilities,
            "protocol_version": snapshot.protocol_version,
        })
    };
    let read = |tool: &ListedTool| {
        let mut raw = tool.read();
        strip_volatile(&mut raw, volatile);
        Value::Object(raw)
    };
    let by_name = |tool| (ListedTool::name(tool), tool);
    let own: BTreeMap<&str, &ListedTool> = first.tools.iter().map(by_name).collect();
    let mut others: BTreeMap<&str, &ListedTool> = second.tools.iter().map(by_name).collect();
    let mut pointers = pointers(&source(first), &source(second), "");
    for (name, tool) in own {
        let at = child_pointer("/tools", name);
        match others.remove(name) {
            Some(other) if tool == other => {}
            Some(other) => pointers.extend(self::pointers(&read(tool), &read(other), &at)),
            None => pointers.push(at),
        }
    }
    pointers.extend(others.keys().map(|name| child_pointer("/tools", name)));
    pointers
}

/// The pointers below `at` at which two values differ.
fn pointers(first: &Value, second: &Value, at: &str) -> Vec<String> {
    let places = broker_drift::differences(first, second).into_iter();
    places
        .map(|place| format!("{at}{}", place.pointer))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn snapshot(default: &[i64]) -> Snapshot {
        let tool = json!({"name": "t", "inputSchema": {"properties": {"f": {"default": default}}}});
        Snapshot {
            server_info: json!({"name": "s"}),
            protocol_version: "2025-11-25".to_owned(),
            capabilities: json!({}),
            instructions: None,
            tools: vec![tool.as_object().expect("an object").clone().into()],
        }
    }

    #[test]
    fn snapshot_member_that_differs_is_named_unless_volatile() {
        let (a, b) = (snapshot(&[1, 2]), snapshot(&[2, 1]));
        assert_eq!(
            compare(&a, &b, &[]),
            [
                "/tools/t/inputSchema/properties/f/default/0",
                "/tools/t/inputSchema/properties/f/default/1"
            ]
        );
        assert!(
            compare(
                &a,
                &b,
                &["/tools/t/inputSchema/properties/f/default".to_owned()]
            )
            .is_empty()
        );
        assert!(compare(&a, &a, &[]).is_empty());
    }
}
