//! Starts every source once and compares it with the lock, for a diagnosis. Does not serve callers or call a tool, and
//! continues where a start would be refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use broker_drift::Report;
use broker_mcp::{ServerExam, SourceSpec, StartHints};
use broker_model::redact::Redactor;
use broker_model::trust::Exposure;
use broker_model::{Diagnostic, DiagnosticCode, Snapshot};
use broker_process::StderrTail;
use broker_wire::Era;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::sources::drift_state::{CheckSettings, DriftState};
use crate::sources::listing_notes::ListingNotes;
use crate::sources::setup::{prepare, tools};
use crate::sources::startup_gate::StartupGate;
use crate::view::View;
use crate::{CoreBuilder, PartialStart, StartMode};

/// Sources that can be examined.
#[derive(Debug)]
pub struct SourceExam {
    drift_state: Arc<DriftState>,
    sources: Vec<ResolvedSource>,
}

/// One source before it is started.
#[derive(Debug)]
struct ResolvedSource {
    required: bool,
    spec: Result<SourceSpec, Vec<Diagnostic>>,
}

/// The result of examining one source.
#[derive(Debug)]
pub struct ExamResult {
    /// The path of its node.
    pub path: String,
    /// Whether a plain start waits for it.
    pub required: bool,
    /// The revision that it spoke when it was locked; `None` if it is not compared with a lock.
    pub locked_revision: Option<String>,
    /// The started source, or why it was not started: problems of variables.
    pub outcome: Result<StartedSource, Vec<Diagnostic>>,
}

/// A source that was started.
#[derive(Debug)]
pub struct StartedSource {
    /// The program's name as it was searched.
    pub program: String,
    /// Maximum time of a start, by the config.
    pub startup_timeout: Duration,
    /// Variables that were not passed to it and look relevant.
    pub withheld: Vec<String>,
    /// Variables of its config that are set and empty.
    pub empty_variables: Vec<String>,
    /// Facts that explain how it starts and ends.
    pub start_hints: Arc<StartHints>,
    /// The start itself.
    pub exam: ServerExam,
    /// Its tools, compared with the lock if there is one; `None` if it did not list them.
    pub tools: Option<ToolComparison>,
}

impl StartedSource {
    /// Makes the source of a spec, after its exam.
    pub fn new(spec: SourceSpec, exam: ServerExam, tools: Option<ToolComparison>) -> Self {
        let process = spec.endpoint.process();
        Self {
            program: process.map_or_else(String::new, |process| process.program.clone()),
            startup_timeout: spec.startup_timeout,
            withheld: spec.withheld,
            start_hints: spec.start_hints,
            empty_variables: spec.empty_variables,
            exam,
            tools,
        }
    }
}

/// The tools of a source that listed them.
#[derive(Debug)]
pub struct ToolComparison {
    /// The number of tools that it listed.
    pub listed: usize,
    /// The number of tools that would be served.
    pub exposed: usize,
    /// The number of tools that the config hides.
    pub hidden: usize,
    /// The number of tools of the lock that would be withdrawn.
    pub withdrawn: usize,
    /// Everything that differs from the lock.
    pub report: Report,
    /// The unused parts of the listing.
    pub notes: Arc<ListingNotes>,
}

impl ToolComparison {
    /// Returns the notes on a listing that is compared with no catalog.
    pub fn notes_on(snapshot: &Snapshot, exposure: &Exposure) -> Arc<ListingNotes> {
        Arc::new(ListingNotes::new(snapshot, exposure))
    }
}

impl SourceExam {
    /// Resolves how every source is started. Fails with every problem that a start would report, except for variables,
    /// because each concerns only one source.
    pub fn new(mut parts: CoreBuilder<'_>) -> Result<Self, Vec<Diagnostic>> {
        let (config, environment) = (parts.read_config()?, parts.read_environment());
        let (config, environment) = (&*config, &*environment);
        let CoreBuilder { catalog, base, .. } = parts;
        let shared = parts.shared_parts(config.limits.memory_bytes);
        if let Err(problems) = prepare(
            catalog,
            config,
            environment,
            base,
            &PartialStart::default(),
            parts.start_defaults,
            &shared,
        ) && !problems.iter().all(is_about_variables)
        {
            return Err(problems);
        }
        let configured: BTreeMap<_, _> = config
            .sources()
            .map(|source| (source.path.as_str(), source))
            .collect();
        let (mut sources, mut check_settings) = (Vec::new(), Vec::new());
        for source in catalog.sources {
            let given = configured[source.path];
            let (limits, concurrency) = (&config.limits, &shared.concurrency);
            let spec = broker_mcp::resolve(given, limits, environment, base, concurrency);
            let spec = spec.map_err(|problems| {
                let problems = problems.into_iter();
                problems.map(|problem| config.place(problem)).collect()
            });
            check_settings.push(CheckSettings {
                path: given.path.clone(),
                exposure: given.exposure.clone(),
                text_drift: config.text_drift(given),
                redactor: spec
                    .as_ref()
                    .map_or_else(|_| Redactor::default(), |spec| spec.redactor.clone()),
            });
            sources.push(ResolvedSource {
                required: given.required,
                spec,
            });
        }
        let (_, hidden) = tools(catalog, &configured, config, |_| Duration::ZERO);
        let gate = StartupGate::new(StartMode::Tolerant, Vec::new());
        let view = View::new(catalog, hidden);
        Ok(Self {
            drift_state: Arc::new(DriftState::new(
                catalog,
                view,
                gate,
                check_settings,
                parts.clock,
                watch::Sender::new(0),
            )),
            sources,
        })
    }

    /// Returns a redactor that knows the secrets of every source.
    pub fn redactor(&self) -> Redactor {
        self.drift_state.redactor()
    }

    /// Examines all sources concurrently; the results are in the order of the config. `done` is called
    /// for each source once it is examined. Dropping the future ends every process at once.
    pub async fn run(self, mut done: impl FnMut(&'static str)) -> Vec<ExamResult> {
        let mut tasks = JoinSet::new();
        let catalog = self.drift_state.catalog;
        for (at, source) in self.sources.into_iter().enumerate() {
            let drift_state = Arc::clone(&self.drift_state);
            tasks.spawn(async move {
                let outcome = match source.spec {
                    Ok(spec) => Ok(start(at, spec, drift_state).await),
                    Err(problems) => Err(problems),
                };
                let locked = &catalog.sources[at];
                let examined = ExamResult {
                    path: locked.path.to_owned(),
                    required: source.required,
                    locked_revision: Some(locked.protocol_version.to_owned()),
                    outcome,
                };
                (at, examined)
            });
        }
        let mut all = BTreeMap::new();
        while let Some(joined) = tasks.join_next().await {
            match joined {
                Ok((at, examined)) => {
                    done(catalog.sources[at].path);
                    all.insert(at, examined);
                }
                // The panic was logged where it happened; without it a source would be missing from the
                // results.
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        all.into_values().collect()
    }
}

async fn start(at: usize, spec: SourceSpec, drift_state: Arc<DriftState>) -> StartedSource {
    let revision = drift_state.catalog.sources[at].protocol_version;
    let tail = StderrTail::new(spec.redactor.clone());
    let exam = ServerExam::run(&spec, Era::from_revision(revision), &tail).await;
    let compared = spec.concurrency.parse_aside(move || {
        let listed = exam.outcome.as_ref().ok();
        let tools = listed.map(|(_, snapshot)| tools_of(at, snapshot, &drift_state));
        (exam, tools)
    });
    let (exam, tools) = match compared.await {
        Ok(compared) => compared,
        // The panic was logged where it happened.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    StartedSource::new(spec, exam, tools)
}

/// Compares the tools that a source listed with the lock.
fn tools_of(at: usize, snapshot: &Snapshot, drift_state: &DriftState) -> ToolComparison {
    let assessment = drift_state.assess(at, None, snapshot);
    let view = drift_state.view.load();
    let own = drift_state.catalog.sources[at].items.iter();
    let may_not = drift_state.withdrawals(at, &assessment);
    let (withdrawn, exposed): (Vec<u32>, Vec<u32>) = own
        .filter(|tool| !view.is_hidden(**tool))
        .partition(|tool| assessment.is_refused() || may_not.contains_key(tool));
    ToolComparison {
        listed: snapshot.tools.len(),
        exposed: exposed.len(),
        hidden: drift_state.hidden_count(at, snapshot),
        withdrawn: withdrawn.len(),
        report: assessment.report,
        notes: assessment.notes,
    }
}

fn is_about_variables(problem: &Diagnostic) -> bool {
    [DiagnosticCode::EnvMissing, DiagnosticCode::EnvValue].contains(&problem.code)
}
