//! One start of a source for a diagnosis: the process is started, asked for its tools and ended again,
//! and all observations are recorded.

use std::sync::Arc;
use std::time::Duration;

use broker_model::Snapshot;
use broker_wire::Era;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::era_hint::EraHint;
use crate::failure::SourceFailure;
use crate::link::Carrier;
use crate::opening::Opening;
use crate::session::Session;
use crate::spec::SourceSpec;
use crate::startup;
use crate::status::Counters;
use broker_process::{Ending, StderrTail, StopDeadline};

/// The maximum number of stderr lines in an exam: above the length of usual stack traces. They come after the line that
/// names the error.
const MAX_STDERR_LINES: usize = 200;

/// The observations during one start of a source.
#[derive(Clone, Debug)]
pub struct ServerExam {
    /// The era and the snapshot of the server, or why the start failed.
    pub outcome: Result<(Era, Snapshot), SourceFailure>,
    /// The time until its tools were listed or it failed.
    pub took: Duration,
    /// The transport of the session, if there was one.
    pub carrier: Option<Carrier>,
    /// The path where the server answered, if it is not the path of its URL as written.
    pub url_path: Option<&'static str>,
    /// Lines on stdout that were not JSON-RPC messages.
    pub noise_lines: u64,
    /// The first of them, redacted and printable.
    pub noise: Vec<String>,
    /// Lines on stdout with replaced invalid UTF-8.
    pub invalid_utf8_lines: u64,
    /// The last lines on stderr, redacted and printable.
    pub stderr: Vec<String>,
    /// How its process ended; the worst end of several processes.
    pub ending: Option<Ending>,
}

impl ServerExam {
    /// Starts `spec` once, as one process, and ends it again; `era` is the era to try first, and stderr goes into
    /// `tail`. Dropping the future ends the process at once.
    pub async fn run(spec: &SourceSpec, era: impl Into<EraHint>, tail: &StderrTail) -> Self {
        let counters = Arc::<Counters>::default();
        let opening = Opening {
            tail,
            counters: &counters,
            tasks: &TaskTracker::new(),
            stop_deadline: &StopDeadline::never(),
            second_try: true,
        };
        let started = Instant::now();
        let (mut carrier, mut url_path) = (None, None);
        let (outcome, took) = match Session::open_supervised(spec, era.into(), &opening).await {
            Ok(session) => {
                let snapshot = session.snapshot().await;
                let took = started.elapsed();
                let era = session.era();
                carrier = Some(session.carrier());
                url_path = session.url_path();
                session.stop().await;
                let outcome = snapshot.map(|snapshot| (era, snapshot));
                let outcome = outcome.map_err(|mut failure| {
                    startup::name_empty(&mut failure, spec);
                    failure
                });
                (outcome, took)
            }
            Err(failure) => (Err(failure), started.elapsed()),
        };
        Self {
            outcome,
            took,
            carrier,
            url_path,
            noise_lines: counters.noise_lines(),
            noise: counters.first_noise(),
            invalid_utf8_lines: counters.invalid_utf8_lines(),
            stderr: tail.lines(MAX_STDERR_LINES),
            ending: counters.worst_ending(),
        }
    }
}
