//! Reloads, drift and exits of servers in any order: seeded histories over scripted servers, with the
//! clock stopped. No call is sent after the verdict that withdrew its tool, no call that a living process
//! executes is lost, and at the end all tools are served as before.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use broker_mcp::{Environment, LinkFactory, ServerTask};
use broker_model::CallCode;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::fixture::{CALLER, built, call, config};
use crate::{Broker, Core, CoreError, InstanceHealth, ReloadError, StartMode};

mod servers;

use servers::{Listing, ScriptedServers, locked};

const STEPS: usize = 24;
/// Long enough for every delay of the supervisor and of a source that announces too much.
const QUIET: Duration = Duration::from_secs(150);
const ECHO: &str = "/a/echo";
const TWIN: &str = "/a/twin";

/// Splitmix64: the same history for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

type Outcome = Result<(), Box<CoreError>>;

/// One history.
struct History {
    random: Random,
    servers: Arc<ScriptedServers>,
    core: Core,
    program: String,
    calls: Vec<(u64, JoinHandle<Outcome>)>,
    next_call: u64,
    reloads: JoinSet<Result<(), ReloadError>>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let servers = ScriptedServers::new();
        let program = "/scripted/interleavings".to_owned();
        let members = members(&program, &mut random);
        Self::with(servers, program, members, random)
    }

    fn with(
        servers: Arc<ScriptedServers>,
        program: String,
        members: Value,
        random: Random,
    ) -> Self {
        let (served, quiet) = (servers.clone(), ScriptedServers::new());
        let links = LinkFactory::new(move |source| {
            let servers = if source == "/a" { &served } else { &quiet }.clone();
            let task: ServerTask = Box::new(|pipes| Box::pin(servers.serve(pipes)));
            Some(task)
        });
        let core = built(&config(members, beside(&program)), |builder| {
            builder.mode(StartMode::Tolerant).link_factory(links)
        });
        let core = core.unwrap();
        assert!(servers.core.set(core.clone()).is_ok());
        core.start();
        Self {
            random,
            servers,
            core,
            program,
            calls: Vec::new(),
            next_call: 0,
            reloads: JoinSet::new(),
        }
    }

    fn call(&mut self, path: &'static str, millis: usize) {
        let (core, number) = (self.core.clone(), self.next_call);
        self.next_call += 1;
        let task = tokio::spawn(async move {
            let args = json!({"text": format!("{number} {millis}")});
            call(&core, &CALLER, path, args).await.map(|_| ())
        });
        self.calls.push((number, task));
    }

    fn reload(&mut self) {
        let config = config(
            members(&self.program, &mut self.random),
            beside(&self.program),
        );
        let environment = Environment::new(BTreeMap::new(), None);
        let prepared = self.core.prepare(&config, &environment, Path::new("."));
        let (core, servers) = (self.core.clone(), self.servers.clone());
        self.reloads.spawn(async move {
            let outcome = core.reload(prepared.unwrap()).await;
            servers.look_soon();
            outcome.map(|_| ())
        });
    }

    async fn step(&mut self) {
        let pause = self.random.of(&[0, 0, 1, 10, 300, 1000, 3000, 11_000]);
        match pause {
            0 => tokio::task::yield_now().await,
            millis => sleep(Duration::from_millis(millis)).await,
        }
        let alive = self.servers.alive();
        match self.random.below(10) {
            0..=3 => {
                let path = self.random.of(&[ECHO, ECHO, TWIN]);
                let millis = self.random.of(&[0, 1, 500, 2000, 14_000]);
                self.call(path, millis);
            }
            4 | 5 => {
                let listing = self.random.of(&[
                    Listing::Reviewed,
                    Listing::Breaking,
                    Listing::Security,
                    Listing::Gone,
                    Listing::Text,
                ]);
                *locked(&self.servers.listing) = listing;
                let one = self.random.below(alive.len().max(1));
                let announces = self.random.below(4) > 0;
                for (at, process) in alive.iter().enumerate() {
                    // Sometimes they disagree.
                    if at == one || self.random.below(2) == 0 {
                        *locked(&process.listing) = listing;
                        if announces {
                            process.announced.send_modify(|count| *count += 1);
                        }
                    }
                }
            }
            6 => {
                if !alive.is_empty() {
                    let one = self.random.below(alive.len());
                    alive[one].killed.send_replace(true);
                }
            }
            7 => {
                let lists = self.random.below(2) == 0;
                self.servers.lists.send_replace(lists);
            }
            _ => self.reload(),
        }
    }

    /// Every server lists what was reviewed, and says so.
    fn settle(&self) {
        self.servers.lists.send_replace(true);
        *locked(&self.servers.listing) = Listing::Reviewed;
        for process in self.servers.alive() {
            *locked(&process.listing) = Listing::Reviewed;
            process.announced.send_modify(|count| *count += 1);
        }
    }

    async fn succeeds(&mut self, path: &'static str) -> bool {
        self.call(path, 0);
        let (_, task) = self.calls.pop().unwrap();
        task.await.unwrap().is_ok()
    }

    /// Asserts the conditions that hold for every call.
    async fn judge_calls(&mut self) {
        for (number, task) in std::mem::take(&mut self.calls) {
            let outcome = task.await.expect("a call does not panic");
            let process = locked(&self.servers.executed).get(&number).copied();
            let killed = process
                .map(|at| *locked(&self.servers.processes)[at].killed.borrow())
                .unwrap_or_default();
            match outcome {
                Ok(()) => assert!(process.is_some(), "call {number} was answered unsent"),
                Err(error) => {
                    let known = [
                        CallCode::ToolWithdrawn,
                        CallCode::SourceUnavailable,
                        CallCode::SourceExited,
                        CallCode::Starting,
                    ];
                    assert!(known.contains(&error.code), "call {number}: {error:?}");
                    assert!(
                        process.is_none() || killed,
                        "call {number} was lost by a process that lives: {error:?}"
                    );
                    assert!(
                        process.is_none() || error.maybe_executed == Some(true),
                        "call {number} was executed: {error:?}"
                    );
                }
            }
        }
    }

    async fn play(mut self) {
        for _ in 0..STEPS {
            self.step().await;
        }
        self.settle();
        while let Some(reload) = self.reloads.join_next().await {
            match reload.expect("a reload does not panic") {
                Ok(()) | Err(ReloadError::Refused(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        sleep(QUIET).await;
        self.settle();
        sleep(QUIET).await;
        self.judge_calls().await;
        let health = self.core.services().health();
        let source = &health.sources[0];
        assert_eq!((source.state, source.withdrawn), ("ready", 0), "{source:?}");
        let count = source.instances.len();
        assert!(
            source.instances.iter().all(|one| one.state == "ready"),
            "{source:?}"
        );
        assert_eq!(
            self.servers.alive().len(),
            count,
            "processes are left or lost"
        );
        assert!(
            self.core.0.call_path().fleet.extra_upstreams().is_empty(),
            "a source outside the slots is left"
        );
        assert!(self.succeeds(ECHO).await && self.succeeds(TWIN).await);
        self.disagree().await;
        let core = self.core.clone();
        core.close().await;
        assert_eq!(
            self.servers.alive().len(),
            0,
            "a process outlived the broker"
        );
        let wrong = locked(&self.servers.wrong).clone();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// A tool that one process may not serve is served by none, until that process is gone or lists the
    /// reviewed tools again.
    async fn disagree(&mut self) {
        let alive = self.servers.alive();
        let one = &alive[self.random.below(alive.len())];
        *locked(&one.listing) = self.random.of(&[Listing::Breaking, Listing::Gone]);
        one.announced.send_modify(|count| *count += 1);
        sleep(QUIET).await;
        assert_eq!(self.core.services().health().sources[0].withdrawn, 1);
        for _ in 0..2 * alive.len() {
            assert!(!self.succeeds(ECHO).await && self.succeeds(TWIN).await);
        }
        if self.random.below(2) == 0 {
            one.killed.send_replace(true);
        } else {
            self.settle();
        }
        sleep(QUIET).await;
        assert_eq!(self.core.services().health().sources[0].withdrawn, 0);
        assert!(self.succeeds(ECHO).await);
    }
}

/// Members of the source `/a`: some of them need another process, some do not.
fn members(program: &str, random: &mut Random) -> Value {
    json!({
        "command": [program],
        "env": {"V": random.below(3).to_string()},
        "instances": 1 + random.below(2),
        "startup_timeout": 5,
        "relist_interval": random.of(&[0, 30, 300]),
        "on_text_drift": random.of(&["serve", "withdraw"]),
    })
}

/// Members of the source `/a/deep/b`, which runs beside the one of `program`.
fn beside(program: &str) -> Value {
    json!({"command": [format!("{program}/beside")], "required": false})
}

#[test]
fn reload_drift_and_death_in_any_order_lose_no_call() {
    let set = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let first = set("MCP_BROKER_INTERLEAVINGS_SEED").unwrap_or(1);
    let count = set("MCP_BROKER_INTERLEAVINGS").unwrap_or(40);
    for seed in first..first + count {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let history = async { History::new(seed).play().await };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(history);
        }));
        assert!(
            outcome.is_ok(),
            "MCP_BROKER_INTERLEAVINGS_SEED={seed} fails"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_other_instances_while_one_owes_its_listing() {
    let servers = ScriptedServers::new();
    let program = "/scripted/instances".to_owned();
    // The process without a listing must not be ended for it here.
    let source = json!({"command": [program], "instances": 2, "relist_interval": 0, "startup_timeout": 3600});
    let mut history = History::with(servers.clone(), program, source, Random(1));
    sleep(QUIET).await;
    let processes = servers.alive();
    assert_eq!(processes.len(), 2);
    let withhold = |at: usize, withholds: bool| {
        processes[at].withholds.store(withholds, Ordering::SeqCst);
        processes[at].announced.send_modify(|count| *count += 1);
    };
    withhold(0, true);
    sleep(Duration::from_secs(11)).await;
    let health = history.core.services().health().sources[0].clone();
    let shown = |one: &InstanceHealth| (one.state, one.cause);
    let instances: Vec<_> = health.instances.iter().map(shown).collect();
    let pending = ("starting", Some("recheck_pending"));
    assert_eq!(
        (health.state, instances),
        ("ready", vec![pending, ("ready", None)])
    );
    for _ in 0..10 {
        assert!(history.succeeds(ECHO).await);
    }
    assert!(
        locked(&servers.executed)
            .values()
            .all(|process| *process == 1)
    );
    withhold(1, true);
    sleep(Duration::from_secs(11)).await;
    let health = history.core.services().health().sources[0].clone();
    assert_eq!((health.state, health.cause), pending);
    history.call(ECHO, 0);
    let (_, refused) = history.calls.pop().unwrap();
    let error = refused.await.unwrap().unwrap_err();
    assert_eq!(error.code, CallCode::SourceUnavailable);
    assert_eq!(error.details.unwrap()["cause"], "recheck_pending");
    withhold(0, false);
    sleep(Duration::from_secs(2)).await;
    assert!(history.succeeds(ECHO).await);
    history.core.close().await;
}

#[tokio::test(start_paused = true)]
async fn call_waiting_for_a_replaced_source_goes_to_the_new_one() {
    let servers = ScriptedServers::new();
    let program = "/scripted/replaced".to_owned();
    let source = |value: &str| json!({"command": [program], "env": {"V": value}});
    let mut history = History::with(servers.clone(), program.clone(), source("1"), Random(1));
    sleep(QUIET).await;
    // The call waits for the successor of a dead process, which lists nothing for now.
    servers.starts_silent.store(true, Ordering::SeqCst);
    servers.alive()[0].killed.send_replace(true);
    sleep(Duration::from_millis(10)).await;
    history.call(ECHO, 0);
    sleep(Duration::from_secs(2)).await;
    let successor = servers.alive().pop().expect("it was started");
    // A candidate becomes active.
    servers.starts_silent.store(false, Ordering::SeqCst);
    let config = config(source("2"), beside(&history.program));
    let environment = Environment::new(BTreeMap::new(), None);
    let prepared = history.core.prepare(&config, &environment, Path::new("."));
    history.core.reload(prepared.unwrap()).await.unwrap();
    // The listing of the first process has no effect now, and no call may reach that process.
    *locked(&successor.listing) = Listing::Breaking;
    successor.withholds.store(false, Ordering::SeqCst);
    servers.lists.send_replace(true);
    let (number, call) = history.calls.pop().unwrap();
    assert!(call.await.unwrap().is_ok());
    assert_eq!(locked(&servers.executed)[&number], 2);
    sleep(QUIET).await;
    assert_eq!(servers.alive().len(), 1);
    history.core.close().await;
}
