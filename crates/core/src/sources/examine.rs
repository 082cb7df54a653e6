//! Every source started once and compared with the lock, to say what is wrong with it. Serves nothing,
//! calls no tool, and goes on where a start would refuse.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use broker_drift::Report;
use broker_mcp::{ConcurrencyLimits, Endpoint, Examination, SourceSpec};
use broker_model::redact::Redactor;
use broker_model::{Diagnostic, DiagnosticCode, Snapshot};
use broker_wire::Era;
use tokio::task::JoinSet;

use crate::listing::view::View;
use crate::sources::gate::Gate;
use crate::sources::setup::{prepare, tools};
use crate::sources::verdict::{Reviewed, Verdicts};
use crate::{Mode, Setup};

/// Sources that can be examined.
#[derive(Debug)]
pub struct Checkup {
    verdicts: Arc<Verdicts>,
    sources: Vec<Resolved>,
}

/// One source before it is started.
#[derive(Debug)]
struct Resolved {
    required: bool,
    launch: Result<SourceSpec, Vec<Diagnostic>>,
}

/// One source, examined.
#[derive(Debug)]
pub struct Examined {
    /// The path of its node.
    pub path: &'static str,
    /// Whether a plain start waits for it.
    pub required: bool,
    /// The revision that it spoke when it was locked.
    pub locked_revision: &'static str,
    /// What came to light; or why it was not started, which is always about variables.
    pub outcome: Result<Started, Vec<Diagnostic>>,
}

/// What became of a source that was started.
#[derive(Debug)]
pub struct Started {
    /// The program's name as it was looked for.
    pub program: String,
    /// How long the config lets a start take.
    pub startup_timeout: Duration,
    /// Variables that it was not given and that look relevant.
    pub withheld: Vec<String>,
    /// The start itself.
    pub examination: Examination,
    /// What its tools are beside those of the lock, where it listed them.
    pub tools: Option<Tools>,
}

/// The tools of a source that listed them.
#[derive(Debug)]
pub struct Tools {
    /// How many it listed.
    pub listed: usize,
    /// How many of those would be served.
    pub exposed: usize,
    /// How many of those the filter leaves out.
    pub hidden: usize,
    /// How many tools of the lock would be withdrawn.
    pub withdrawn: usize,
    /// Everything that differs from the lock.
    pub report: Report,
}

impl Checkup {
    /// Works out how every source is started. What a start would refuse is refused here with everything
    /// else that is wrong, but for variables, which concern one source each.
    pub fn new(setup: Setup<'_>) -> Result<Self, Vec<Diagnostic>> {
        let Setup {
            catalog,
            config,
            environment,
            base,
            ..
        } = setup;
        let memory = broker_memory::MemoryBudget::new(config.limits.memory_bytes);
        let concurrency = ConcurrencyLimits::new();
        if let Err(problems) = prepare(catalog, config, environment, base, (&memory, &concurrency))
            && !problems.iter().all(is_about_variables)
        {
            return Err(problems);
        }
        let configured: BTreeMap<_, _> = config
            .sources()
            .map(|source| (source.path.as_str(), source))
            .collect();
        let (mut sources, mut reviewed) = (Vec::new(), Vec::new());
        for source in catalog.sources {
            let given = configured[source.path];
            let launch =
                broker_mcp::resolve(given, &config.limits, environment, base, &concurrency);
            let launch = launch.map_err(|problems| {
                let problems = problems.into_iter();
                problems.map(|problem| config.place(problem)).collect()
            });
            reviewed.push(Reviewed {
                path: given.path.clone(),
                filter: given.filter.clone(),
                text_drift: config.text_drift(given),
                redactor: launch
                    .as_ref()
                    .map_or_else(|_| Redactor::default(), |launch| launch.redactor.clone()),
            });
            sources.push(Resolved {
                required: given.required,
                launch,
            });
        }
        let (_, hidden) = tools(catalog, &configured);
        let gate = Gate::new(Mode::Tolerant, Vec::new());
        let view = View::new(catalog, hidden);
        Ok(Self {
            verdicts: Arc::new(Verdicts::new(catalog, view, gate, reviewed)),
            sources,
        })
    }

    /// Knows every source's secrets.
    pub fn redactor(&self) -> Redactor {
        self.verdicts.redactor()
    }

    /// Examines all sources concurrently; the results are in the order of the config. `done` is called
    /// for each source once it is examined. Dropping the future ends every process at once.
    pub async fn run(self, mut done: impl FnMut(&'static str)) -> Vec<Examined> {
        let mut tasks = JoinSet::new();
        let catalog = self.verdicts.catalog;
        for (at, source) in self.sources.into_iter().enumerate() {
            let verdicts = Arc::clone(&self.verdicts);
            tasks.spawn(async move {
                let outcome = match source.launch {
                    Ok(launch) => Ok(start(at, launch, verdicts).await),
                    Err(problems) => Err(problems),
                };
                let locked = &catalog.sources[at];
                let examined = Examined {
                    path: locked.path,
                    required: source.required,
                    locked_revision: locked.protocol_version,
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
                // It was logged where it happened; to go on would leave a source out unsaid.
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        all.into_values().collect()
    }
}

async fn start(at: usize, launch: SourceSpec, verdicts: Arc<Verdicts>) -> Started {
    let revision = verdicts.catalog.sources[at].protocol_version;
    let examination = Examination::run(&launch, Era::of_revision(revision)).await;
    let compared = launch.concurrency.parse_aside(move || {
        let listed = examination.outcome.as_ref().ok();
        let tools = listed.map(|(_, snapshot)| tools_of(at, snapshot, &verdicts));
        (examination, tools)
    });
    let (examination, tools) = match compared.await {
        Ok(compared) => compared,
        // It was logged where it happened.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    let Endpoint::Process(process) = launch.endpoint;
    Started {
        program: process.program,
        startup_timeout: launch.startup_timeout,
        withheld: launch.withheld,
        examination,
        tools,
    }
}

/// The tools that a source listed beside those of the lock.
fn tools_of(at: usize, snapshot: &Snapshot, verdicts: &Verdicts) -> Tools {
    let judged = verdicts.assess(at, None, snapshot);
    let view = verdicts.view.load();
    let own = verdicts.catalog.sources[at].tools.iter();
    let may_not = verdicts.withdrawals(at, &judged);
    let (withdrawn, exposed): (Vec<u32>, Vec<u32>) = own
        .filter(|tool| !view.is_hidden(**tool))
        .partition(|tool| judged.is_refused() || may_not.contains_key(tool));
    Tools {
        listed: snapshot.tools.len(),
        exposed: exposed.len(),
        hidden: verdicts.left_out(at, snapshot),
        withdrawn: withdrawn.len(),
        report: judged.report,
    }
}

fn is_about_variables(problem: &Diagnostic) -> bool {
    matches!(
        problem.code,
        DiagnosticCode::EnvMissing | DiagnosticCode::EnvValue
    )
}
