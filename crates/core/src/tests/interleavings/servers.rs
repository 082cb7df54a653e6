//! The scripted servers of a history: their processes, the tools that they list, and the calls that they
//! execute. They note calls that must not have been sent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use broker_mcp::Pipes;
use broker_model::snapshot::ListedTool;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::super::fixture::snapshot;
use crate::Core;
use crate::view::View;

/// The listing of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Reviewed,
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
            Self::Reviewed => {}
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
pub(super) struct Process {
    pub(super) listing: Mutex<Listing>,
    /// Whether some listing that it gave has `echo` as it was reviewed.
    offered: AtomicBool,
    /// Whether it answers no listing.
    pub(super) withholds: AtomicBool,
    pub(super) announced: watch::Sender<u64>,
    pub(super) killed: watch::Sender<bool>,
    alive: AtomicBool,
}

/// The orders to the servers of `/a`, and a record of their requests.
pub(super) struct ScriptedServers {
    pub(super) core: OnceLock<Core>,
    pub(super) processes: Mutex<Vec<Arc<Process>>>,
    /// The listing of a new process.
    pub(super) listing: Mutex<Listing>,
    /// Whether listings are answered.
    pub(super) lists: watch::Sender<bool>,
    /// Whether a new process answers no listing until it is ordered to.
    pub(super) starts_silent: AtomicBool,
    /// Which process executed a call.
    pub(super) executed: Mutex<BTreeMap<u64, usize>>,
    /// The view at an earlier moment.
    seen: Mutex<Option<(Instant, Arc<View>)>>,
    pub(super) wrong: Mutex<Vec<String>>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl ScriptedServers {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            core: OnceLock::new(),
            processes: Mutex::default(),
            listing: Mutex::new(Listing::Reviewed),
            lists: watch::Sender::new(true),
            starts_silent: AtomicBool::new(false),
            executed: Mutex::default(),
            seen: Mutex::default(),
            wrong: Mutex::default(),
        })
    }

    pub(super) fn alive(&self) -> Vec<Arc<Process>> {
        let all = locked(&self.processes).clone();
        let alive = |one: &Arc<Process>| one.alive.load(Ordering::SeqCst);
        all.into_iter().filter(alive).collect()
    }

    fn view(&self) -> Option<Arc<View>> {
        self.core
            .get()
            .map(|core| core.0.call_path().fleet.drift_state.view.load_full())
    }

    /// Notes the view a moment from now, when what happens now has been taken in.
    pub(super) fn look_soon(self: &Arc<Self>) {
        let servers = self.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(1)).await;
            if let Some(view) = servers.view() {
                let mut seen = locked(&servers.seen);
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
        let catalog = core.0.call_path().catalog;
        let found = catalog
            .items
            .iter()
            .position(|one| one.source == 0 && one.id == tool);
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

    pub(super) async fn serve(self: Arc<Self>, pipes: Pipes) -> i32 {
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
                if matches!(listing, Listing::Reviewed | Listing::Text) {
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
