//! Takes the snapshots of sources. The failure of one source does not stop the others.

use std::collections::BTreeMap;
use std::time::Duration;

use broker_doctor::FailedStart;
use broker_mcp::{EraHint, ServerExam, SourceFailure, SourceSpec, StartHints};
use broker_model::json::child_pointer;
use broker_model::lock::{VOLATILE_INSTRUCTIONS, strip_volatile};
use broker_model::snapshot::{ListedTool, Snapshot};
use broker_model::{NodePath, SourceCause};
use broker_process::{Ending, StderrTail};
use broker_wire::Era;
use serde_json::Value;
use tokio::time::Instant;

use crate::cli::doctor;
use crate::cli::launch::launch_all::{launch_all, resume};

/// The snapshot of one source to take.
#[derive(Clone, Debug)]
pub(in crate::cli) struct SnapshotJob {
    pub(in crate::cli) spec: SourceSpec,
    /// What is known of its protocol era.
    pub(in crate::cli) era: EraHint,
    /// Members that may differ between launches.
    pub(in crate::cli) volatile: Vec<String>,
    /// Launch twice, and compare.
    pub(in crate::cli) twice: bool,
}

/// The result of one job.
#[derive(Debug)]
pub(in crate::cli) struct SnapshotResult {
    pub(in crate::cli) source: NodePath,
    pub(in crate::cli) outcome: Result<Snapshot, Failure>,
    /// The path where the server answered, if that is not the one of its URL as written.
    pub(in crate::cli) url_path: Option<&'static str>,
    pub(in crate::cli) took: Duration,
    /// How its processes ended; the worst end.
    pub(in crate::cli) ending: Option<Ending>,
}

impl SnapshotResult {
    /// Whether a signal stopped the process, so that it could not end by itself. The failure says why.
    pub(in crate::cli) fn is_stopped(&self) -> bool {
        match &self.outcome {
            Err(Failure::Source(failed)) => failed.failure.process_stopped,
            Err(Failure::Unstable(_)) | Ok(_) => false,
        }
    }
}

/// The reason why there is no snapshot.
#[derive(Debug)]
pub(in crate::cli) enum Failure {
    /// The source could not be started or listed.
    Source(Box<FailedSource>),
    /// Two launches gave different answers.
    Unstable(Unstable),
}

/// A source whose two launches gave different answers.
#[derive(Debug)]
pub(in crate::cli) struct Unstable {
    /// The first answer.
    pub(in crate::cli) snapshot: Box<Snapshot>,
    /// The places that differ: `/tools/NAME/…`, or within the source.
    pub(in crate::cli) pointers: Vec<String>,
}

/// A source that could not be started or listed, with its output.
#[derive(Debug)]
pub(in crate::cli) struct FailedSource {
    pub(in crate::cli) failure: SourceFailure,
    /// The last lines on stderr, redacted and printable.
    stderr: Vec<String>,
    /// The first lines on stdout that are not messages, redacted and printable.
    noise: Vec<String>,
}

impl FailedSource {
    fn new(failure: SourceFailure, stderr: Vec<String>, noise: Vec<String>) -> Box<Self> {
        Box::new(Self {
            failure,
            stderr,
            noise,
        })
    }

    /// The cause and the message, in one line.
    pub(in crate::cli) fn message(&self) -> String {
        format!("{}: {}", self.failure.cause, self.failure.message)
    }

    /// Returns the demands of a server over HTTP that refused the credentials. The server wrote them, so only operators
    /// read them.
    pub(in crate::cli) fn demands(&self) -> Option<&str> {
        let is_demand = self.failure.cause == SourceCause::NeedsAuth;
        self.failure.said.as_deref().filter(|_| is_demand)
    }

    /// Returns the lines below the message, and the remedy: the findings of `doctor` on a failed start. `spec` belongs
    /// to the source.
    pub(in crate::cli) fn explained(&self, spec: Option<&SourceSpec>) -> (Vec<String>, String) {
        let process = spec.and_then(|spec| spec.endpoint.process());
        let program = process.map_or("", |process| process.program.as_str());
        let no_hints = StartHints::default();
        let start = FailedStart {
            failure: &self.failure,
            program,
            withheld: spec.map_or(&[], |spec| spec.withheld.as_slice()),
            empty_variables: spec.map_or(&[], |spec| spec.empty_variables.as_slice()),
            hints: spec.map_or(&no_hints, |spec| &spec.start_hints),
            stderr: &self.stderr,
            stdout: &self.noise,
        };
        let explained = broker_doctor::explain(start, doctor::COMMAND);
        let reason = explained
            .reason
            .map(|(code, reason)| format!("{code}: {reason}"));
        let noise = self.noise.first();
        let noise = noise.map(|line| format!("stdout, not a message of MCP: {line}"));
        let notes = reason.into_iter().chain(noise).chain(explained.lines);
        let notes = notes.map(|line| format!("    {line}"));
        (notes.collect(), explained.remedy)
    }
}

/// Takes all snapshots; results have the order of the jobs.
pub(in crate::cli) async fn snapshot_all(jobs: Vec<SnapshotJob>) -> Vec<SnapshotResult> {
    let began = Instant::now();
    let sources: Vec<_> = jobs.iter().map(|job| job.spec.source.clone()).collect();
    let results = launch_all(
        jobs,
        |job| &job.spec,
        |job, tail| async move {
            let started = Instant::now();
            let mut seen = Seen::default();
            let outcome = take_snapshot(&job, &tail, &mut seen).await;
            (outcome, seen, started.elapsed())
        },
    );
    let results = results.await.into_iter();
    // A failed task must not drop its source silently.
    let lost = || {
        let failure = SourceFailure::new(SourceCause::ListFailed, "broker-gen failed meanwhile");
        let failed = FailedSource::new(failure, Vec::new(), Vec::new());
        (
            Err(Failure::Source(failed)),
            Seen::default(),
            began.elapsed(),
        )
    };
    let results = results.map(|result| result.unwrap_or_else(lost));
    let results = sources.into_iter().zip(results);
    results
        .map(|(source, (outcome, seen, took))| SnapshotResult {
            source,
            outcome,
            url_path: seen.url_path,
            took,
            ending: seen.ending,
        })
        .collect()
}

/// Observations during the launches of a source.
#[derive(Debug, Default)]
struct Seen {
    /// The path of the last answer.
    url_path: Option<&'static str>,
    /// The worst end of a process.
    ending: Option<Ending>,
}

/// The snapshot of a job.
async fn take_snapshot(
    job: &SnapshotJob,
    tail: &StderrTail,
    seen: &mut Seen,
) -> Result<Snapshot, Failure> {
    let first = snapshot(job, job.era, tail, seen).await?;
    if !job.twice {
        return Ok(first);
    }
    let era = Era::from_revision(&first.protocol_version).into();
    let second = snapshot(job, era, tail, seen).await?;
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
        let snapshot = Box::new(first);
        let pointers = unstable;
        Err(Failure::Unstable(Unstable { snapshot, pointers }))
    }
}

async fn snapshot(
    job: &SnapshotJob,
    era: EraHint,
    tail: &StderrTail,
    seen: &mut Seen,
) -> Result<Snapshot, Failure> {
    let exam = ServerExam::run(&job.spec, era, tail).await;
    seen.url_path = exam.url_path;
    let stage = |ending: &Option<Ending>| ending.as_ref().map(|one| one.stage);
    if stage(&exam.ending) > stage(&seen.ending) {
        seen.ending = exam.ending;
    }
    let (stderr, noise) = (exam.stderr, exam.noise);
    match exam.outcome {
        Ok((_, snapshot)) => Ok(snapshot),
        Err(failure) => Err(Failure::Source(FailedSource::new(failure, stderr, noise))),
    }
}

/// Returns the pointers to the differences of two launches: into a tool (`/tools/NAME/…`) or into the source, without
/// volatile ones. One tool of each launch is parsed at a time.
fn compare(first: &Snapshot, second: &Snapshot, volatile: &[String]) -> Vec<String> {
    let compares_instructions = !volatile.iter().any(|one| one == VOLATILE_INSTRUCTIONS);
    let source = |snapshot: &Snapshot| {
        let instructions = snapshot.instructions.as_ref();
        serde_json::json!({
            "server_info": snapshot.server_info,
            "instructions": instructions.filter(|_| compares_instructions),
            "capabilities": snapshot.capabilities,
            "protocol_version": snapshot.protocol_version,
        })
    };
    let read = |tool: &ListedTool| {
        let mut raw = tool.read();
        strip_volatile(tool.name(), &mut raw, volatile);
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

/// Returns the pointers to the differences of two values below `at`.
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
            resources: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
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

    #[test]
    fn instructions_that_differ_are_named_unless_volatile() {
        let with = |text: &str| Snapshot {
            instructions: Some(text.to_owned()),
            ..snapshot(&[])
        };
        let (a, b) = (with("at 10:00"), with("at 10:01"));
        assert_eq!(compare(&a, &b, &[]), ["/instructions"]);
        assert!(compare(&a, &b, &["/instructions".to_owned()]).is_empty());
    }
}
