//! Reload, drift and death in any order: seeded histories over scripted servers, with the clock stopped.
//! No call is sent after the verdict that withdrew its tool, none that a living process works on is
//! lost, and in the end everything is as it was.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use broker_mcp::Environment;
use broker_mcp::scripted::{self, Pipes};
use broker_model::CallCode;
use broker_model::snapshot::ListedTool;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::fixture::{CALLER, call, config, setup, snapshot};
use crate::listing::view::View;
use crate::{Core, CoreError, InstanceHealth, ReloadError, StartMode};

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

/// The listing of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    CheckSettings,
    /// `echo` asks for more.
    Breaking,
    /// `echo` says that it destroys.
    Security,
    /// `echo` is gone.
    Gone,
    /// `echo` has other words.
    Text,
}

impl Listing {
    fn tools(self) -> Value {
        let listed = snapshot(&["echo", "twin"]).tools;
        let mut tools: Vec<_> = listed.iter().map(ListedTool::read).collect();
        let echo = &mut tools[0];
        match self {
            Self::CheckSettings => {}
            Self::Breaking => echo["inputSchema"]["required"] = json!(["text", "more"]),
            Self::Security => {
                let destroys = json!({"readOnlyHint": false, "destructiveHint": true});
                echo.insert("annotations".to_owned(), destroys);
                echo.insert("description".to_owned(), json!("It\u{200b} hides."));
            }
            Self::Gone => {
                tools.remove(0);
            }
            Self::Text => {
                echo.insert("description".to_owned(), json!("Other words."));
            }
        }
        json!({ "tools": tools })
    }
}

/// One process, as the test moves it.
struct Process {
    listing: Mutex<Listing>,
    /// Whether some listing that it gave has `echo` as it was reviewed.
    offered: AtomicBool,
    /// Whether it answers no listing.
    withholds: AtomicBool,
    announced: watch::Sender<u64>,
    killed: watch::Sender<bool>,
    alive: AtomicBool,
}

/// The orders to the servers of `/a`, and a record of their requests.
struct World {
    core: OnceLock<Core>,
    processes: Mutex<Vec<Arc<Process>>>,
    /// The listing of a new process.
    listing: Mutex<Listing>,
    /// Whether listings are answered.
    lists: watch::Sender<bool>,
    /// Whether a new process answers no listing until it is ordered to.
    starts_silent: AtomicBool,
    /// Which process executed a call.
    executed: Mutex<BTreeMap<u64, usize>>,
    /// The view at an earlier moment.
    seen: Mutex<Option<(Instant, Arc<View>)>>,
    wrong: Mutex<Vec<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            core: OnceLock::new(),
            processes: Mutex::default(),
            listing: Mutex::new(Listing::CheckSettings),
            lists: watch::Sender::new(true),
            starts_silent: AtomicBool::new(false),
            executed: Mutex::default(),
            seen: Mutex::default(),
            wrong: Mutex::default(),
        })
    }

    fn alive(&self) -> Vec<Arc<Process>> {
        let all = locked(&self.processes).clone();
        let alive = |one: &Arc<Process>| one.alive.load(Ordering::SeqCst);
        all.into_iter().filter(alive).collect()
    }

    fn view(&self) -> Option<Arc<View>> {
        self.core
            .get()
            .map(|core| core.0.drift_state.view.load_full())
    }

    /// Notes the view a moment from now, when what happens now has been taken in.
    fn look_soon(self: &Arc<Self>) {
        let world = self.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(1)).await;
            if let Some(view) = world.view() {
                let mut seen = locked(&world.seen);
                if !matches!(&*seen, Some((_, known)) if Arc::ptr_eq(known, &view)) {
                    *seen = Some((Instant::now(), view));
                }
            }
        });
    }

    /// A call has arrived. Nothing on its way takes time, so the view that admitted it is not older
    /// than this moment.
    fn execute(&self, number: u64, process: usize, tool: &str) {
        if locked(&self.executed).insert(number, process).is_some() {
            locked(&self.wrong).push(format!("call {number} was executed twice"));
        }
        let offered = &locked(&self.processes)[process].offered;
        if tool == "echo" && !offered.load(Ordering::SeqCst) {
            let text = format!("call {number} was sent to a process that never offered its tool");
            locked(&self.wrong).push(text);
        }
        let (Some(core), Some(now)) = (self.core.get(), self.view()) else {
            return;
        };
        let catalog = core.0.catalog;
        let found = catalog
            .tools
            .iter()
            .position(|one| one.source == 0 && one.name == tool);
        let at = found.expect("it is a tool of the catalog") as u32;
        if let Some((since, known)) = &*locked(&self.seen)
            && Arc::ptr_eq(known, &now)
            && *since < Instant::now()
            && now.withdrawn(at).is_some()
        {
            locked(&self.wrong).push(format!(
                "call {number} was sent after its tool was withdrawn"
            ));
        }
    }

    async fn serve(self: Arc<Self>, pipes: Pipes) -> i32 {
        let process = Arc::new(Process {
            listing: Mutex::new(*locked(&self.listing)),
            offered: AtomicBool::new(false),
            withholds: AtomicBool::new(self.starts_silent.load(Ordering::SeqCst)),
            announced: watch::Sender::new(0),
            killed: watch::Sender::new(false),
            alive: AtomicBool::new(true),
        });
        let number = {
            let mut all = locked(&self.processes);
            all.push(process.clone());
            all.len() - 1
        };
        let _end = End(process.clone());
        let mut killed = process.killed.subscribe();
        tokio::select! {
            biased;
            _ = killed.wait_for(|killed| *killed) => 9,
            () = self.answer(pipes, &process, number) => 0,
        }
    }

    async fn answer(self: &Arc<Self>, pipes: Pipes, process: &Arc<Process>, number: usize) {
        let mut lines = BufReader::new(pipes.input).lines();
        let mut output = pipes.output;
        let (answers, mut answered) = mpsc::channel::<Value>(64);
        let (mut asked, mut announced) = (self.lists.subscribe(), process.announced.subscribe());
        let mut owed = Vec::new();
        loop {
            let mut say = Vec::new();
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => {
                        let line: Value = serde_json::from_str(&line).unwrap();
                        let id = line["id"].clone();
                        match line["method"].as_str().unwrap() {
                            "initialize" => say.push(result(&id, json!({
                                "protocolVersion": "2025-11-25",
                                "capabilities": {"tools": {}},
                                "serverInfo": {"name": "fixture", "version": "1"},
                            }))),
                            "tools/list" => owed.push(id),
                            "tools/call" => self.work(&line, number, answers.clone()),
                            _ => {}
                        }
                    }
                    _ => return,
                },
                answer = answered.recv() => say.extend(answer),
                _ = announced.changed() => {
                    say.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                }
                _ = asked.changed() => {}
            }
            let lists = *self.lists.borrow() && !process.withholds.load(Ordering::SeqCst);
            if lists && !owed.is_empty() {
                let listing = *locked(&process.listing);
                if matches!(listing, Listing::CheckSettings | Listing::Text) {
                    process.offered.store(true, Ordering::SeqCst);
                }
                say.extend(owed.drain(..).map(|id| result(&id, listing.tools())));
                self.look_soon();
            }
            for message in say {
                let line = format!("{message}\n");
                if output.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    fn work(&self, line: &Value, process: usize, answers: mpsc::Sender<Value>) {
        let text = line["params"]["arguments"]["text"].as_str().unwrap();
        let (number, millis) = text.split_once(' ').unwrap();
        let tool = line["params"]["name"].as_str().unwrap();
        self.execute(number.parse().unwrap(), process, tool);
        let time = Duration::from_millis(millis.parse().unwrap());
        let done = result(&line["id"], json!({"content": []}));
        tokio::spawn(async move {
            sleep(time).await;
            answers.send(done).await.ok();
        });
    }
}

/// The end of a process, whatever ends it.
struct End(Arc<Process>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.alive.store(false, Ordering::SeqCst);
    }
}

fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

type Outcome = Result<(), Box<CoreError>>;

/// One history.
struct History {
    random: Random,
    world: Arc<World>,
    core: Core,
    program: String,
    calls: Vec<(u64, JoinHandle<Outcome>)>,
    next_call: u64,
    reloads: JoinSet<Result<(), ReloadError>>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let world = World::new();
        let program = "/scripted/interleavings".to_owned();
        let served = world.clone();
        scripted::register(&program, move |pipes| served.clone().serve(pipes));
        let members = members(&program, &mut random);
        Self::with(world, program, members, random)
    }

    fn with(world: Arc<World>, program: String, members: Value, random: Random) -> Self {
        let quiet = World::new();
        let beside_program = format!("{program}/beside");
        scripted::register(&beside_program, move |pipes| quiet.clone().serve(pipes));
        let core = setup(StartMode::Tolerant, members, beside(&program)).unwrap();
        assert!(world.core.set(core.clone()).is_ok());
        core.start();
        Self {
            random,
            world,
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
        let (core, world) = (self.core.clone(), self.world.clone());
        self.reloads.spawn(async move {
            let outcome = core.reload(prepared.unwrap()).await;
            world.look_soon();
            outcome.map(|_| ())
        });
    }

    async fn step(&mut self) {
        let pause = self.random.of(&[0, 0, 1, 10, 300, 1000, 3000, 11_000]);
        match pause {
            0 => tokio::task::yield_now().await,
            millis => sleep(Duration::from_millis(millis)).await,
        }
        let alive = self.world.alive();
        match self.random.below(10) {
            0..=3 => {
                let path = self.random.of(&[ECHO, ECHO, TWIN]);
                let millis = self.random.of(&[0, 1, 500, 2000, 14_000]);
                self.call(path, millis);
            }
            4 | 5 => {
                let listing = self.random.of(&[
                    Listing::CheckSettings,
                    Listing::Breaking,
                    Listing::Security,
                    Listing::Gone,
                    Listing::Text,
                ]);
                *locked(&self.world.listing) = listing;
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
                self.world.lists.send_replace(lists);
            }
            _ => self.reload(),
        }
    }

    /// Every server lists what was reviewed, and says so.
    fn settle(&self) {
        self.world.lists.send_replace(true);
        *locked(&self.world.listing) = Listing::CheckSettings;
        for process in self.world.alive() {
            *locked(&process.listing) = Listing::CheckSettings;
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
            let process = locked(&self.world.executed).get(&number).copied();
            let killed = process
                .map(|at| *locked(&self.world.processes)[at].killed.borrow())
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
        let health = self.core.health();
        let source = &health.sources[0];
        assert_eq!((source.state, source.withdrawn), ("ready", 0), "{source:?}");
        let count = source.instances.len();
        assert!(
            source.instances.iter().all(|one| one.state == "ready"),
            "{source:?}"
        );
        assert_eq!(
            self.world.alive().len(),
            count,
            "processes are left or lost"
        );
        assert!(
            self.core.0.extra_upstreams().is_empty(),
            "a source outside the slots is left"
        );
        assert!(self.succeeds(ECHO).await && self.succeeds(TWIN).await);
        self.disagree().await;
        let core = self.core.clone();
        core.close().await;
        assert_eq!(self.world.alive().len(), 0, "a process outlived the broker");
        let wrong = locked(&self.world.wrong).clone();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// A tool that one process may not serve is served by none, until that process is gone or lists the
    /// reviewed tools again.
    async fn disagree(&mut self) {
        let alive = self.world.alive();
        let one = &alive[self.random.below(alive.len())];
        *locked(&one.listing) = self.random.of(&[Listing::Breaking, Listing::Gone]);
        one.announced.send_modify(|count| *count += 1);
        sleep(QUIET).await;
        assert_eq!(self.core.health().sources[0].withdrawn, 1);
        for _ in 0..2 * alive.len() {
            assert!(!self.succeeds(ECHO).await && self.succeeds(TWIN).await);
        }
        if self.random.below(2) == 0 {
            one.killed.send_replace(true);
        } else {
            self.settle();
        }
        sleep(QUIET).await;
        assert_eq!(self.core.health().sources[0].withdrawn, 0);
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
    let world = World::new();
    let program = "/scripted/instances".to_owned();
    let served = world.clone();
    scripted::register(&program, move |pipes| served.clone().serve(pipes));
    // The process without a listing must not be ended for it here.
    let source = json!({"command": [program], "instances": 2, "relist_interval": 0, "startup_timeout": 3600});
    let mut history = History::with(world.clone(), program, source, Random(1));
    sleep(QUIET).await;
    let processes = world.alive();
    assert_eq!(processes.len(), 2);
    let withhold = |at: usize, withholds: bool| {
        processes[at].withholds.store(withholds, Ordering::SeqCst);
        processes[at].announced.send_modify(|count| *count += 1);
    };
    withhold(0, true);
    sleep(Duration::from_secs(11)).await;
    let health = history.core.health().sources[0].clone();
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
        locked(&world.executed)
            .values()
            .all(|process| *process == 1)
    );
    withhold(1, true);
    sleep(Duration::from_secs(11)).await;
    let health = history.core.health().sources[0].clone();
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
    let world = World::new();
    let program = "/scripted/replaced".to_owned();
    let served = world.clone();
    scripted::register(&program, move |pipes| served.clone().serve(pipes));
    let source = |value: &str| json!({"command": [program], "env": {"V": value}});
    let mut history = History::with(world.clone(), program.clone(), source("1"), Random(1));
    sleep(QUIET).await;
    // The call waits for the successor of a dead process, which lists nothing for now.
    world.starts_silent.store(true, Ordering::SeqCst);
    world.alive()[0].killed.send_replace(true);
    sleep(Duration::from_millis(10)).await;
    history.call(ECHO, 0);
    sleep(Duration::from_secs(2)).await;
    let successor = world.alive().pop().expect("it was started");
    // A candidate becomes active.
    world.starts_silent.store(false, Ordering::SeqCst);
    let config = config(source("2"), beside(&history.program));
    let environment = Environment::new(BTreeMap::new(), None);
    let prepared = history.core.prepare(&config, &environment, Path::new("."));
    history.core.reload(prepared.unwrap()).await.unwrap();
    // The listing of the first process has no effect now, and no call may reach that process.
    *locked(&successor.listing) = Listing::Breaking;
    successor.withholds.store(false, Ordering::SeqCst);
    world.lists.send_replace(true);
    let (number, call) = history.calls.pop().unwrap();
    assert!(call.await.unwrap().is_ok());
    assert_eq!(locked(&world.executed)[&number], 2);
    sleep(QUIET).await;
    assert_eq!(world.alive().len(), 1);
    history.core.close().await;
}
