//! A connection under any interleaving of requests, answers, timeouts, cancels and ends: over real
//! pipes with a paused clock, compared with a model of the possible outcomes of each request.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use proptest::prelude::*;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::*;
use broker_process::StderrTail;

/// The limits of calls in flight and of queued calls.
const MAX_IN_FLIGHT: usize = 3;
const MAX_QUEUED_CALLS: usize = 4;
const LINE_BYTES: usize = 300;

#[derive(Clone, Debug)]
enum Step {
    /// A caller sends a request with this timeout and padding.
    Ask {
        kind: RequestKind,
        time: u64,
        padding: usize,
    },
    /// The server answers one of the requests that it has read, pending or not.
    Answer(prop::sample::Index, Form),
    /// A caller goes away.
    Leave(prop::sample::Index),
    /// The server reads all available bytes.
    Read,
    Pass(u64),
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Result,
    Error,
    Broken,
    Oversize,
    /// Two answers in one write.
    Twice,
    /// An id that was not used.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum Last {
    Close,
    Exit,
    Stdout,
    Dropped,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![6 => Just(RequestKind::Call), 1 => Just(RequestKind::Internal), 1 => Just(RequestKind::Opening)];
    let form = prop_oneof![
        4 => Just(Form::Result),
        1 => Just(Form::Error),
        1 => Just(Form::Broken),
        1 => Just(Form::Oversize),
        1 => Just(Form::Twice),
        1 => Just(Form::Unknown),
    ];
    // Some lines do not fit into a pipe together with others, so that they wait to be written.
    let padding = prop_oneof![3 => Just(0usize), 1 => Just(40_000)];
    let step = prop_oneof![
        4 => (kind, 1u64..400, padding).prop_map(|(kind, time, padding)| Step::Ask { kind, time, padding }),
        3 => (any::<prop::sample::Index>(), form).prop_map(|(which, form)| Step::Answer(which, form)),
        1 => any::<prop::sample::Index>().prop_map(Step::Leave),
        2 => Just(Step::Read),
        1 => (1u64..200).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..40)
}

/// The state of both ends.
struct ConnectionFixture {
    connection: Option<Arc<Connection>>,
    shared: Arc<ConnectionState>,
    stdin: ChildStdout,
    stdout: Option<PipeWriter>,
    exit: watch::Sender<Option<ExitReport>>,
    _stderr_ended: watch::Sender<bool>,
    /// Bytes that the server has read and not yet parsed.
    read: Vec<u8>,
    seen: BTreeSet<u64>,
    last_call: u64,
    /// The first answer of the server to each request.
    answered: BTreeMap<u64, Form>,
    asked: Vec<Asked>,
}

struct Asked {
    kind: RequestKind,
    id: Arc<Mutex<Option<u64>>>,
    task: JoinHandle<Result<RawResult, RequestError>>,
    left: bool,
}

impl Asked {
    fn id(&self) -> Option<u64> {
        *self.id.lock().unwrap()
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader.into(), writer.into())
}

impl ConnectionFixture {
    fn new() -> Self {
        let (server_in, stdin) = pipe();
        let (stdout, server_out) = pipe();
        let (commands, receiver) =
            mpsc::channel(2 * (MAX_IN_FLIGHT + MAX_QUEUED_CALLS) + MAX_INTERNAL_COMMANDS);
        let (list_sender, list_changes) = watch::channel(0);
        let (end_sender, end) = watch::channel(None);
        let (exit, exit_seen) = watch::channel(None);
        let (stderr_ended, stderr_seen) = watch::channel(true);
        let shared = Arc::new(ConnectionState {
            next_id: AtomicU64::new(1),
            admitted: AtomicUsize::new(0),
            reads: AtomicU64::new(0),
        });
        let task = ConnectionTask {
            lists: Default::default(),
            stdin: Some(ChildStdin::from_std(stdin.into()).unwrap()),
            stdout: ChildStdout::from_std(stdout.into()).unwrap(),
            framer: Framer::new(
                broker_wire::Peer::Server,
                broker_wire::LineLimit::new(LINE_BYTES),
                broker_memory::MemoryBudget::new(usize::MAX).whole_account(),
            ),
            batch: None,
            outgoing: Outgoing::default(),
            table: Table::new(MAX_IN_FLIGHT, MAX_QUEUED_CALLS),
            commands: receiver,
            inbox: Vec::new(),
            shared: shared.clone(),
            counters: Arc::default(),
            list_changes: list_sender,
            end: end_sender,
            exit: exit_seen.clone(),
            stderr_ended: stderr_seen,
            tail: StderrTail::new(broker_model::redact::Redactor::default()),
            masks: crate::masks::Masks::default(),
            stderr_masks: None,
            dropped_stderr: 0,
            source: "/x".to_owned(),
            skips_prefix: true,
            refused: None,
            noise_logged: false,
            repair_logged: false,
        };
        let tasks = TaskTracker::new();
        tasks.spawn(task.run());
        tasks.spawn(announce_exit(exit_seen, commands.downgrade()));
        Self {
            connection: Some(Arc::new(Connection {
                commands,
                shared: shared.clone(),
                list_changes,
                end,
            })),
            shared,
            stdin: ChildStdout::from_std(server_in.into()).unwrap(),
            stdout: Some(server_out.into()),
            exit,
            _stderr_ended: stderr_ended,
            read: Vec::new(),
            seen: BTreeSet::new(),
            last_call: 0,
            answered: BTreeMap::new(),
            asked: Vec::new(),
        }
    }

    fn ask(&mut self, kind: RequestKind, time: u64, padding: usize) {
        let connection = self.connection.clone().unwrap();
        let id = Arc::new(Mutex::new(None));
        let known = id.clone();
        let line = move |number: u64| {
            *known.lock().unwrap() = Some(number);
            Bytes::from(format!("ask {number} {}\n", "x".repeat(padding)))
        };
        let task = tokio::spawn(async move {
            connection
                .request(kind, line, Duration::from_millis(time))
                .await
        });
        self.asked.push(Asked {
            kind,
            id,
            task,
            left: false,
        });
    }

    /// Reads until no more messages come.
    async fn drain(&mut self) {
        let mut chunk = vec![0; 64 << 10];
        while let Ok(Ok(read @ 1..)) =
            timeout(Duration::from_millis(1), self.stdin.read(&mut chunk)).await
        {
            self.read.extend_from_slice(&chunk[..read]);
        }
        while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8(self.read.drain(..=end).collect()).unwrap();
            let mut words = line.split(' ');
            if words.next() == Some("ask") {
                let id = words.next().unwrap().parse().unwrap();
                let is_call =
                    |asked: &Asked| asked.id() == Some(id) && asked.kind == RequestKind::Call;
                if self.asked.iter().any(is_call) {
                    assert!(self.last_call < id, "call {id} was overtaken");
                    self.last_call = id;
                }
                assert!(self.seen.insert(id), "request {id} was sent twice");
            } else {
                assert!(line.contains("notifications/cancelled"), "{line}");
            }
        }
    }

    fn answer(&mut self, which: prop::sample::Index, form: Form) {
        let Some(id) = self.seen.iter().nth(which.index(self.seen.len().max(1))) else {
            return;
        };
        let result = format!("{{\"id\":{id},\"result\":{{\"of\":{id}}}}}\n");
        let line = match form {
            Form::Result => result,
            Form::Error => format!("{{\"id\":{id},\"error\":{{\"of\":{id}}}}}\n"),
            Form::Broken => format!("{{\"id\":{id},\"result\":{{}},\"error\":{{}}}}\n"),
            Form::Oversize => {
                format!(
                    "{{\"id\":{id},\"result\":\"{}\"}}\n",
                    "y".repeat(LINE_BYTES)
                )
            }
            Form::Twice => result.repeat(2),
            Form::Unknown => "{\"id\":1000000,\"result\":{\"of\":0}}\n".to_owned(),
        };
        if !matches!(form, Form::Unknown) {
            self.answered.entry(*id).or_insert(form);
        }
        self.stdout
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    /// Checks between two steps: as many calls are in flight as allowed, and ended calls do not count.
    async fn places_are_used(&mut self) {
        // Lets the connection task and the callers run; the clock moves only when all are idle.
        sleep(Duration::from_millis(1)).await;
        let waiting = self.asked.iter().filter(|asked| {
            asked.kind == RequestKind::Call && asked.id().is_some() && !asked.task.is_finished()
        });
        let waiting = waiting.count();
        let admitted = self.shared.admitted.load(Ordering::Relaxed);
        assert_eq!(admitted, waiting, "places held and calls that wait");
    }

    /// Checks that, after the server has read everything, the pending calls are in flight up to the limit.
    fn the_server_has_work(&self) {
        let waiting = self.asked.iter().filter(|asked| {
            asked.kind == RequestKind::Call && asked.id().is_some() && !asked.task.is_finished()
        });
        let ids: Vec<_> = waiting.filter_map(Asked::id).collect();
        let sent = ids.iter().filter(|id| self.seen.contains(id)).count();
        assert_eq!(sent, ids.len().min(MAX_IN_FLIGHT), "calls at the server");
    }

    async fn end(&mut self, last: Last) {
        match last {
            Last::Close => {
                let connection = self.connection.clone().unwrap();
                connection.close(crate::session::stopped()).await;
            }
            Last::Exit => {
                let report = ExitReport {
                    code: None,
                    signal: Some(9),
                };
                self.exit.send_replace(Some(report));
                self.stdout = None;
            }
            Last::Stdout => self.stdout = None,
            Last::Dropped => self.asked.iter_mut().for_each(|asked| {
                asked.left = true;
                asked.task.abort();
            }),
        }
        self.connection = None;
    }

    /// Checks that every request has ended, in a way that is consistent with what the server read and sent.
    async fn settle(mut self) {
        for at in 0..self.asked.len() {
            let asked = &mut self.asked[at];
            let (id, left) = (asked.id(), asked.left);
            let outcome = timeout(Duration::from_secs(60), &mut asked.task).await;
            let outcome = match outcome.expect("every request ends") {
                Ok(outcome) => outcome,
                Err(error) => {
                    assert!(left && error.is_cancelled(), "{error}");
                    continue;
                }
            };
            // Reads further: a blocked line is dropped when the connection ends.
            self.drain().await;
            let seen = id.is_some_and(|id| self.seen.contains(&id));
            let form = id.and_then(|id| self.answered.get(&id));
            match outcome {
                Ok(raw) => {
                    let expected = format!("{{\"of\":{}}}", id.unwrap());
                    assert_eq!(raw.result, expected.as_bytes(), "crossed");
                    assert!(matches!(form, Some(Form::Result | Form::Twice)), "{form:?}");
                }
                Err(RequestError::Error(error)) => {
                    assert_eq!(error, format!("{{\"of\":{}}}", id.unwrap()).as_bytes());
                    assert!(matches!(form, Some(Form::Error)), "{form:?}");
                }
                Err(RequestError::Broken(_)) => assert!(matches!(form, Some(Form::Broken))),
                Err(RequestError::TooLarge) => assert!(matches!(form, Some(Form::Oversize))),
                Err(RequestError::OutOfMemory) => panic!("memory is not bounded here"),
                Err(RequestError::Http(_)) => panic!("the connection is a pipe"),
                Err(RequestError::Overloaded(_)) => assert!(!seen, "a refused call was sent"),
                Err(RequestError::Timeout { begun, .. } | RequestError::Gone { begun, .. }) => {
                    assert!(
                        begun || !seen,
                        "request {id:?} was sent, and that was denied"
                    );
                    assert!(begun || !self.begins_with(id), "a part of it was sent");
                }
            }
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(
            self.shared.admitted.load(Ordering::Relaxed),
            0,
            "places lost"
        );
    }

    /// Whether the unfinished line that the server has is of this request.
    fn begins_with(&self, id: Option<u64>) -> bool {
        id.is_some_and(|id| self.read.starts_with(format!("ask {id} ").as_bytes()))
    }
}

async fn play(steps: Vec<Step>, last: Last) {
    let mut fixture = ConnectionFixture::new();
    for step in steps {
        match step {
            Step::Ask {
                kind,
                time,
                padding,
            } => fixture.ask(kind, time, padding),
            Step::Answer(which, form) => fixture.answer(which, form),
            Step::Leave(which) if !fixture.asked.is_empty() => {
                let at = which.index(fixture.asked.len());
                fixture.asked[at].left = true;
                fixture.asked[at].task.abort();
            }
            Step::Leave(_) => {}
            Step::Read => {
                fixture.drain().await;
                fixture.the_server_has_work();
            }
            Step::Pass(millis) => sleep(Duration::from_millis(millis)).await,
        }
        fixture.places_are_used().await;
    }
    fixture.end(last).await;
    fixture.settle().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn request_ends_exactly_once_in_any_interleaving(
        steps in steps(),
        last in prop_oneof![Just(Last::Close), Just(Last::Exit), Just(Last::Stdout), Just(Last::Dropped)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(play(steps, last));
    }
}
